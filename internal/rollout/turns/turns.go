// Package turns lets the machines of a run change in turns, as package rollout decides. The members of a named group also wait for those of
// other runs, which it finds by the notes on their nodes (reference/rollout.md#other-runs, reference/rollout.md#what-turns-do-not-cover).
package turns

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// tellEach is the time between two log lines of a machine that waits for its turn.
const tellEach = 30 * time.Second

// Change is what is about to be done to a machine.
type Change struct {
	Settings rollout.Settings
	Change   rollout.Change
	Content  string // identifies what the machine gets: without a group, machines that get the same take turns; "": not known
	Node     string // the node as configured
	Away     bool   // the machine is not available anyway
	Checked  bool   // the machine is ready only after its ready check

	Limit time.Duration // how long Take waits for the end of an operation that an earlier run has begun
}

type turns struct {
	site    *machine.Site
	mu      sync.Mutex
	groups  map[string]*group
	settled map[string]rollout.Settings
	created map[string][]string // the nodes of deployments that are new and follow none, by the group that replacements of their image have
	signal  signal
	silent  map[string]time.Time // since when runs are known to give no sign of life
}

// group is a group of a run, with what is known of its members in other runs.
type group struct {
	*rollout.Group
	name    string        // of the settings; "" if the members of other runs do not count
	changed chan struct{} // is closed when anything has changed
	others  []rollout.Absence
	listed  time.Time        // when they were listed; zero: they have to be listed again
	told    []rollout.Reason // for which an error has said what to do
	cause   string           // of the last failure, in one line
}

func of(site *machine.Site) *turns {
	return machine.Kept(site, func(site *machine.Site) *turns {
		return &turns{
			site: site, groups: map[string]*group{}, settled: map[string]rollout.Settings{}, created: map[string][]string{},
			signal: signal{use: make(chan struct{}, 1)}, silent: map[string]time.Time{},
		}
	})
}

// Agree returns an error if another member of the group has other settings in this run.
func Agree(site *machine.Site, s rollout.Settings) error {
	if s.Group == "" {
		return nil
	}
	t := of(site)
	t.mu.Lock()
	defer t.mu.Unlock()
	first, known := t.settled[s.Group]
	if !known {
		t.settled[s.Group] = s
		return nil
	}
	if differs := first.Differs(s); differs != "" {
		return fmt.Errorf("the members of rollout group %q must have the same settings, but another metal_deployment or metal_host has "+
			"another %s. Use one local value for all members", s.Group, differs)
	}
	return nil
}

// group returns the group of a change; mu is held. The settings of its first member hold.
func (t *turns) group(c Change) *group {
	key := c.Settings.Key(c.Change, c.Content)
	g := t.groups[key]
	if g == nil {
		g = &group{Group: rollout.NewGroup(c.Settings.Rules()), changed: make(chan struct{})}
		if c.Settings.MaxUnavailable > 0 && t.site.Config().Limit.Coordination != throttle.CoordinationProcess {
			g.name = c.Settings.Group
		}
		t.groups[key] = g
	}
	return g
}

// follows returns the group in which a member was undeployed for a new deployment, and the ID of that member; mu is held.
func (t *turns) follows(me rollout.Member, c Change) (g *group, was string) {
	if c.Change != rollout.FirstDeployment {
		return nil, ""
	}
	for _, content := range []string{c.Content, ""} {
		if g := t.groups[c.Settings.Key(rollout.Replacement, content)]; g != nil {
			if was, ok := g.Take(me, c.Node); ok {
				return g, was
			}
		}
	}
	key := c.Settings.Key(rollout.Replacement, c.Content)
	t.created[key] = append(t.created[key], c.Node)
	return nil, ""
}

// isSucceeded reports whether the deployment that replaces one was made before, as with create_before_destroy. node is that of the new
// deployment, as configured; "": not known, so that it may follow; mu is held.
func (t *turns) isSucceeded(c Change, node string) bool {
	key := c.Settings.Key(rollout.Replacement, c.Content)
	i := slices.IndexFunc(t.created[key], func(made string) bool { return node != "" && made == node })
	if i < 0 {
		return false
	}
	t.created[key] = slices.Delete(t.created[key], i, i+1)
	return true
}

// wake lets all waiting members decide again; mu is held.
func (g *group) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// Turn is the turn of a machine. A nil Turn is that of a machine that needs none.
type Turn struct {
	Change
	turns   *turns
	group   *group
	m       *machine.Machine
	id      string // of the member
	member  rollout.Member
	was     *notes.Turn  // the note that the node had before
	from    *ironic.Node // as the turn began
	shared  bool         // the members of other runs count, and this one counts for them
	follows bool         // the member was undeployed before
	canary  bool         // it is one of those that go first
	ended   bool
	back    bool   // the change has failed, but the machine runs as before
	done    func() // ends the sign of life of the run
}

// again returns how long a member waits until it decides again although nothing has happened; mu is held.
func (t *turns) again(g *group, at time.Time) time.Duration {
	wait := tellEach
	if !at.IsZero() {
		wait = min(wait, time.Until(at))
	}
	if len(g.others) > 0 {
		wait = min(wait, time.Until(g.listed.Add(t.site.Ironic.PollInterval())))
	}
	return wait
}

// leave removes a member that waits no more; mu is held.
func (t *turns) leave(g *group, id string, yields bool) {
	if yields {
		g.Yield(id, time.Now())
	}
	g.Leave(id)
	g.wake()
}

// forget lets the members of other runs be listed again once that list is old.
func (t *turns) forget(g *group) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g.name != "" && time.Since(g.listed) >= t.site.Ironic.PollInterval() {
		g.others, g.listed = nil, time.Time{}
	}
}

// few joins names, at most five of them.
func few(names []string) string {
	if len(names) > 5 {
		return strings.Join(names[:5], ", ") + fmt.Sprintf(" and %d others", len(names)-5)
	}
	return strings.Join(names, ", ")
}
