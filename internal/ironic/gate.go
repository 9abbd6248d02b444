package ironic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// Scope says which hosts share a limit.
type Scope string

// The scopes: all hosts of an Ironic, those of a conductor group, those of a shard.
const (
	ScopeAll            Scope = "all"
	ScopeConductorGroup Scope = "conductor_group"
	ScopeShard          Scope = "shard"
)

// Coordination says over what a limit is exact.
type Coordination string

// The coordinations: over all runs that share an Ironic, by a lock record in it, or within this process.
const (
	CoordinationIronic  Coordination = "ironic"
	CoordinationProcess Coordination = "process"
)

// Count says which hosts at work count.
type Count string

// The ways to count: every busy host, or only those whose agent has reported (driver_internal_info.agent_url).
const (
	CountBusy  Count = "busy"
	CountAgent Count = "agent"
)

// Limit is how much work a site is given at once. The zero Limit is none.
type Limit struct {
	throttle.Limit
	Scope        Scope        // "" means ScopeAll
	Coordination Coordination // "" means CoordinationProcess
	Count        Count        // "" means CountBusy
	// Exempt are patterns (path.Match) of boot interfaces whose hosts need no slot and take none.
	Exempt []string
}

// Times of admission. A round stops admitting after workBudget; a lock is everybody's after lease. What a conductor or
// a network delays longer than that is the one hole (reference discovery-boot-limit.md 4.3).
const (
	lease       = 60 * time.Second
	workBudget  = 20 * time.Second
	backOffFrom = 10 * time.Second // after Ironic's own limit was met
)

// gate lets verbs pass that make a machine boot or write: as many as the limit has room for, in the order of the queue.
type gate struct {
	c     *Client
	limit Limit

	mu       sync.Mutex
	waiting  map[*applicant]struct{}
	running  bool
	stop     context.CancelFunc
	ended    <-chan struct{} // closed when the rounds are over
	started  map[string]bool // hosts that this process has put to work
	unlocked bool            // the lock record may not be written: the limit holds in this process only
	stats    stats
}

// applicant is a walk that waits at the gate.
type applicant struct {
	ticket throttle.Ticket
	turn   chan turn
	failed chan error    // why nobody is admitted any more
	gone   chan struct{} // closed when it has left
}

// turn is leave to send a verb now.
type turn struct {
	until time.Time    // after which it must not be sent any more
	done  chan<- error // what became of it
}

// errAgain says that a turn was over before the verb was sent.
var errAgain = errors.New("the turn is over")

// pass sends a verb when there is room for its host. Hosts that are exempt or at work already do not wait. When ctx ends
// first, it returns ctx's error, and when nobody can be admitted any more, why; the host has left the queue then.
func (g *gate) pass(ctx context.Context, node *Node, failures int, send func(context.Context) error) error {
	if g.limit.Max == 0 || g.exempt(node) || busy(State(node.ProvisionState)) {
		return send(ctx)
	}
	a := &applicant{
		ticket: throttle.Ticket{ID: node.UUID, Scope: g.scope(node), Failures: failures, Queued: time.Now()},
		turn:   make(chan turn, 1), failed: make(chan error, 1), gone: make(chan struct{}),
	}
	if err := g.c.LimitRequires(ctx); err != nil {
		return err
	}
	g.join(ctx, a)
	defer g.leave(ctx, a)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-a.failed:
			return &QueueError{Err: err}
		case t := <-a.turn:
			err := g.take(ctx, a, t, send)
			t.done <- err
			if !errors.Is(err, errAgain) && !isCapacityError(err) {
				return err
			}
		}
	}
}

// take uses a turn.
func (g *gate) take(ctx context.Context, a *applicant, t turn, send func(context.Context) error) error {
	within, cancel := context.WithDeadline(ctx, t.until)
	defer cancel()
	if within.Err() != nil {
		return errAgain
	}
	err := send(within)
	if err == nil {
		g.mu.Lock()
		g.started[a.ticket.ID] = true
		g.stats.admitted(time.Since(a.ticket.Queued), g.c.cfg.PollInterval)
		g.mu.Unlock()
	}
	return err
}

func (g *gate) join(ctx context.Context, a *applicant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting[a] = struct{}{}
	if !g.running {
		g.start(ctx)
	}
}

// start starts the rounds; g.mu is held.
func (g *gate) start(ctx context.Context) {
	g.running = true
	ended := make(chan struct{})
	g.ended = ended
	ctx, g.stop = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(ended)
		g.run(ctx)
	}()
}

// leave takes a walk out of the queue; the last one stops the rounds. When it was interrupted, the process may end right
// after: it waits a moment, lest the lock stays behind.
func (g *gate) leave(ctx context.Context, a *applicant) {
	close(a.gone)
	g.mu.Lock()
	delete(g.waiting, a)
	last, ended := len(g.waiting) == 0, g.ended
	if last {
		g.stop()
	}
	g.mu.Unlock()
	if !last || ctx.Err() == nil {
		return
	}
	select {
	case <-ended:
	case <-time.After(2 * answerGrace):
	}
}

// run holds rounds while somebody waits: at once when there may be room, else whenever a look at the fleet, which the
// other waiters share, shows some. The queue costs no request of its own. A round that fails for a passing reason is repeated;
// what would fail again ends the wait of all.
func (g *gate) run(ctx context.Context) {
	mayHaveRoom := true
	for g.goOn(ctx) {
		again, err := g.try(ctx, mayHaveRoom)
		mayHaveRoom = again
		if err == nil || ctx.Err() != nil {
			continue
		}
		g.c.cfg.Logger.WarnContext(ctx, "a round of admissions failed", "error", g.c.secrets.redact(err.Error()))
		if !isTransient(err) && !errors.Is(err, errPanic) {
			g.fail(err)
		}
		_ = sleep(ctx, g.c.cfg.PollInterval) // goOn looks at ctx
		mayHaveRoom = true
	}
}

// fail tells all who wait why nobody is admitted.
func (g *gate) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for a := range g.waiting {
		select {
		case a.failed <- err:
		default: // it has been told, and is leaving
		}
	}
}

// errPanic says that a round panicked: that is no reason for others to give up.
var errPanic = errors.New("panic")

// try holds a round if there may be room. That it panics is an error of this round, not the end of all walks that wait.
func (g *gate) try(ctx context.Context, mayHaveRoom bool) (again bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errPanic, r)
		}
	}()
	if !mayHaveRoom {
		fleet, err := g.c.fleet.nextAll(ctx)
		if err != nil {
			return false, fmt.Errorf("count the hosts at work: %w", err)
		}
		if d := g.decide(fleet); len(d.Go) == 0 {
			return false, nil
		}
	}
	return g.round(ctx)
}

// goOn reports whether somebody waits; if not, the run is over.
func (g *gate) goOn(ctx context.Context) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) > 0 && ctx.Err() == nil {
		return true
	}
	g.running = false
	if len(g.waiting) > 0 { // somebody came as the last one left
		g.start(ctx)
	}
	return false
}

// round holds a round and, when Ironic's own limit was met, stays away for a while: others may be let in meanwhile, who do not
// hit that limit. It reports whether there may be room for more.
func (g *gate) round(ctx context.Context) (again bool, err error) {
	again, err = g.admit(ctx)
	if isCapacityError(err) {
		return true, sleep(ctx, backOffFrom+rand.N(2*backOffFrom)) //nolint:gosec // jitter
	}
	return again, err
}

// admit lets in whoever there is room for, under the lock, from a fresh census. It reports whether there may be room for
// more; the error may be that of Ironic's own limit.
func (g *gate) admit(ctx context.Context) (again bool, err error) {
	until := time.Now().Add(workBudget)
	if g.limit.Coordination == CoordinationIronic && !g.unlocked {
		unlock, err := g.lock(ctx)
		if err != nil {
			return true, fmt.Errorf("take the lock of the limit, a chassis: %w", err)
		}
		defer unlock()
		until = time.Now().Add(workBudget)
	}
	fleet, err := g.c.pollNodes(ctx)
	if err != nil {
		return true, fmt.Errorf("count the hosts at work: %w", err)
	}
	d := g.decide(fleet)
	for _, ticket := range d.Go {
		if time.Now().After(until) || ctx.Err() != nil {
			return true, nil
		}
		if err := g.give(ticket.ID, turn{until: until}); isCapacityError(err) {
			return true, err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for a := range g.waiting {
		if room, known := d.Room[a.ticket.Scope]; !known || room > 0 {
			return true, nil
		}
	}
	return false, nil
}

// give gives a turn to whoever waits for a host, and returns what became of it.
func (g *gate) give(id string, t turn) error {
	g.mu.Lock()
	var a *applicant
	for candidate := range g.waiting {
		if candidate.ticket.ID == id && (a == nil || candidate.ticket.Queued.Before(a.ticket.Queued)) {
			a = candidate
		}
	}
	g.mu.Unlock()
	if a == nil {
		return nil
	}
	done := make(chan error, 1)
	t.done = done
	a.turn <- t
	select {
	case err := <-done:
		return err
	case <-a.gone:
		return nil
	}
}

// decide asks the scheduler about a census of the fleet.
func (g *gate) decide(fleet map[string]*Node) throttle.Decision {
	census := g.census(fleet)
	g.mu.Lock()
	defer g.mu.Unlock()
	var tickets []throttle.Ticket
	for a := range g.waiting {
		tickets = append(tickets, a.ticket)
	}
	d := throttle.Decide(g.limit.Limit, census, tickets)
	g.stats.decided(g, d, census, fleet)
	return d
}

// census counts the hosts at work, by the server's clock.
func (g *gate) census(fleet map[string]*Node) throttle.Census {
	census := throttle.Census{Taken: g.c.serverNow()}
	for id, node := range fleet {
		if g.counts(node) {
			census.Busy = append(census.Busy, throttle.Busy{ID: id, Scope: g.scope(node), Since: node.ProvisionUpdatedAt})
		}
	}
	return census
}

// counts reports whether a host takes a slot. One that Ironic has put into maintenance after a fault does nothing any more.
func (g *gate) counts(node *Node) bool {
	if !busy(State(node.ProvisionState)) || g.exempt(node) || (node.Maintenance && node.Fault != "") {
		return false
	}
	if g.limit.Count == CountAgent {
		url, _ := node.DriverInternalInfo["agent_url"].(string)
		return url != ""
	}
	return true
}

func (g *gate) scope(node *Node) string {
	switch g.limit.Scope {
	case ScopeConductorGroup:
		return node.ConductorGroup
	case ScopeShard:
		return node.Shard
	case ScopeAll:
	}
	return ""
}

// exempt reports whether a host boots in a way that the limit need not protect, such as virtual media.
func (g *gate) exempt(node *Node) bool {
	for _, pattern := range g.limit.Exempt {
		if ok, err := path.Match(pattern, node.BootInterface); ok && err == nil {
			return true
		}
	}
	return false
}

// busy reports whether a machine boots or writes in a state (reference discovery-boot-limit.md 4.4, 2). Verifying and
// adopting boot nothing; a held or failed host waits for people.
func busy(state State) bool {
	switch state { //nolint:exhaustive // all others are at rest
	case nodes.Inspecting, nodes.InspectWait, nodes.Cleaning, nodes.CleanWait, nodes.Deploying, nodes.DeployWait, nodes.Deleting,
		nodes.Rescuing, nodes.RescueWait, nodes.Unrescuing, nodes.Servicing, nodes.ServiceWait:
		return true
	}
	return false
}

// keyFailures is where extra of a node counts how often its work has failed since it last succeeded, so that also the
// next run lets it wait behind fresh hosts.
const keyFailures = "terraform_metal_failures"

func failures(node *Node) int {
	n, _ := node.Extra[keyFailures].(float64)
	return int(n)
}

// remember counts a failed walk, or forgets the failures before one that succeeded. It is a courtesy to the queue: that
// it cannot be written, because the node is busy or gone, is no error of the walk.
func (c *Client) remember(ctx context.Context, node *Node, err error) {
	var failed *FailedError
	var late *TimeoutError
	var patch Patch
	switch {
	case c.gate.limit.Max == 0:
	case errors.As(err, &failed) || errors.As(err, &late):
		patch.Set("/extra/"+keyFailures, failures(node)+1)
	case err == nil && node.Extra[keyFailures] != nil:
		patch.Remove("/extra/" + keyFailures)
	}
	if len(patch) == 0 || busy(State(node.ProvisionState)) {
		return
	}
	if _, err := c.PatchNode(ctx, node.UUID, patch); err != nil {
		c.cfg.Logger.DebugContext(ctx, "failures of a node not written", "node", node.UUID, "error", fmt.Sprint(err))
	}
}
