package ironic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
)

// order is what goes with a verb: the body of PUT states/provision.
type order struct {
	Verb        Verb
	ConfigDrive any
	DeploySteps []DeployStep
}

// ToProvisionStateMap makes the request's body; gophercloud's own knows no vendor_data.
func (o order) ToProvisionStateMap() (map[string]any, error) {
	body := map[string]any{"target": o.Verb}
	if o.ConfigDrive != nil {
		body["configdrive"] = o.ConfigDrive
	}
	if len(o.DeploySteps) > 0 {
		body["deploy_steps"] = o.DeploySteps
	}
	return body, nil
}

// Reach walks a node to a goal and waits until it is there. limit does not include the time in the queue for a slot.
// On error it still returns the node as last seen, if it was seen at all. The errors are FailedError, TimeoutError,
// RefusedError, ctx's, and what Ironic answered.
func (c *Client) Reach(ctx context.Context, id string, goal Goal, limit time.Duration) (*Node, error) {
	return c.walk(ctx, id, goal, "", order{}, limit)
}

// walk is the one loop over provision states: look, move, wait. instance is the reservation for which a node is deployed,
// rebuilt or undeployed; the order goes with the goal's own verb.
func (c *Client) walk(ctx context.Context, id string, goal Goal, instance string, with order, limit time.Duration) (*Node, error) {
	w := &walker{c: c, id: id, goal: goal, instance: instance, order: with, limit: limit, deadline: time.Now().Add(limit)}
	defer c.nodes.invalidate(id)
	c.gate.begin(id)
	defer c.gate.end()
	err := w.look(ctx)
	if err == nil {
		w.failures = failures(w.node)
	}
	for err == nil {
		var arrived bool
		if arrived, err = w.step(ctx); arrived {
			break
		}
	}
	if err != nil && ctx.Err() != nil {
		return c.lastLook(ctx, w.node), fmt.Errorf("%s: %w", goal.Doing(), ctx.Err())
	}
	if w.node != nil { // what was seen last came from a short list
		if full, ferr := c.getNode(ctx, id); ferr == nil {
			w.node = full
			var failed *FailedError
			if errors.As(err, &failed) {
				failed.Node = full
				if full.LastError == "" {
					full.LastError = c.lastEvent(ctx, id)
				}
			}
			c.remember(ctx, full, err)
		}
	}
	return w.node, err
}

// lastEvent is the last error in a node's history, without secrets: Ironic 39 clears last_error when it switches off a machine
// after a failure that is off already. Empty if there is none, or it cannot be read.
func (c *Client) lastEvent(ctx context.Context, id string) string {
	var answer struct {
		History []struct {
			Severity string `json:"severity"`
			Type     string `json:"event_type"`
			Event    string `json:"event"`
		} `json:"history"`
	}
	if version, err := c.Microversion(ctx); err != nil || version < versionHistory {
		return ""
	}
	if err := c.do(ctx, http.MethodGet, "nodes/"+id+"/history?detail=true", nil, &answer); err != nil {
		return ""
	}
	for _, event := range slices.Backward(answer.History) {
		if event.Severity == "ERROR" && !strings.HasSuffix(event.Type, "_end") { // those only say that it was aborted
			return c.secrets.redact(event.Event)
		}
	}
	return ""
}

// lastLook reads a node in full once more after the user has stopped the run, because what was seen last came from a
// short list. It does not keep the user waiting for an Ironic that does not answer.
func (c *Client) lastLook(ctx context.Context, seen *Node) *Node {
	if seen == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if full, err := c.getNode(ctx, seen.UUID); err == nil {
		return full
	}
	return seen
}

// walker is the memory of one walk.
type walker struct {
	c        *Client
	id       string
	goal     Goal
	instance string
	order    order
	limit    time.Duration
	deadline time.Time

	node     *Node // as last seen
	failures int   // how often work on it has failed before

	sent Verb  // the last verb that this walk sent
	from State // the state it was sent from
}

// step takes one step and reports whether the goal is reached.
func (w *walker) step(ctx context.Context) (arrived bool, err error) {
	if gone, err := w.instanceGone(); gone || err != nil {
		return gone, err
	}
	state := State(w.node.ProvisionState)
	m := nextMove(w.goal, state, fulfils(w.sent, w.goal))
	if w.node.Reservation != "" && m.kind != wait {
		// Final states become visible before the lock is released and last_error is written (ironic-facts.md 3.3).
		return false, w.next(ctx)
	}
	if m.kind == send && state == nodes.Available && w.node.InstanceUUID != "" && !deploys(m.verb) {
		m = move{kind: refuse, reason: fmt.Sprintf("it is reserved by %s. Destroy its metal_allocation first", w.node.InstanceUUID)}
	}
	switch m.kind {
	case done:
		return true, nil
	case refuse:
		return false, &RefusedError{Node: w.node, Goal: w.goal, Reason: m.reason}
	case repair:
		if w.sent != "" {
			return false, &FailedError{Node: w.node, Goal: w.goal}
		}
		if err := w.clearFault(ctx); err != nil {
			return false, err
		}
		return false, w.send(ctx, m.verb)
	case send:
		if w.sent == m.verb && w.from == state { // it came back to where it was, such as enroll after verifying
			return false, &FailedError{Node: w.node, Goal: w.goal}
		}
		return false, w.send(ctx, m.verb)
	case wait:
		if w.goal == GoalInspected && (state == nodes.Inspecting || state == nodes.InspectWait) {
			w.sent = nodes.TargetInspect // an interrupted run has asked for it, or somebody else
		}
		return false, w.next(ctx)
	}
	return false, fmt.Errorf("no move from %q", state)
}

// instanceGone looks at every step whose the node is, because hours may have passed since the last one, and in one interval of
// looks somebody else may undeploy, reserve and deploy it. Undeploying has arrived when the instance is gone; without it a node
// is neither deployed nor rebuilt: a ReservedError.
func (w *walker) instanceGone() (bool, error) {
	switch w.goal {
	case GoalDeployed, GoalRebuilt:
		return false, CheckReservation(w.node, w.instance)
	case GoalUndeployed:
		state := State(w.node.ProvisionState)
		reserved := w.node.InstanceUUID != "" && w.node.InstanceUUID != w.instance
		running := w.node.InstanceUUID == "" && occupied(state) && state != nodes.Error
		return reserved || running, nil
	case GoalManageable, GoalAvailable, GoalInspected: // nextMove refuses them where something is deployed
	}
	return false, nil
}

// fulfils reports whether having sent a verb is what a goal asks for, where the state alone cannot tell.
func fulfils(sent Verb, goal Goal) bool {
	return (goal == GoalInspected && sent == nodes.TargetInspect) || (goal == GoalRebuilt && deploys(sent))
}

// deploys reports whether a verb puts an instance on a node, and takes what goes with that.
func deploys(verb Verb) bool { return verb == nodes.TargetActive || verb == nodes.TargetRebuild }

// boots reports whether a verb makes a machine boot or write, and so has to pass the gate.
func boots(verb Verb) bool { return verb != nodes.TargetManage && verb != nodes.TargetAbort }

// send sends a verb, through the gate where the machine boots or writes, and looks at what it did.
func (w *walker) send(ctx context.Context, verb Verb) error {
	with := order{Verb: verb}
	if deploys(verb) {
		with = w.order
		with.Verb = verb
	}
	before, queued := w.node, time.Now()
	put := func(ctx context.Context) error {
		if boots(verb) {
			if err := w.stillSo(ctx, queued); err != nil {
				return err
			}
			if err := w.c.guard.Still(ctx, before, verb); err != nil {
				return err
			}
		}
		return w.put(ctx, with)
	}
	var err error
	if boots(verb) {
		if err = w.c.guard.Ready(ctx, w.node, verb); err == nil {
			err = w.c.gate.pass(ctx, w.node, w.failures, put)
		}
		w.deadline = w.deadline.Add(time.Since(queued)) // the time in the queue does not count
	} else {
		err = put(ctx)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if isCapacityError(err) {
		return w.queue(ctx)
	}
	if errors.Is(err, errMoved) {
		return w.look(ctx)
	}
	if err != nil && !isTransient(err) {
		return err
	}
	if err := w.look(ctx); err != nil {
		return err
	}
	moved := w.node.ProvisionState != before.ProvisionState || !w.node.ProvisionUpdatedAt.Equal(before.ProvisionUpdatedAt)
	if err != nil && !moved {
		return w.next(ctx) // the answer was lost or busy, and the verb not taken: ask again at the next look
	}
	w.sent, w.from = verb, State(before.ProvisionState)
	return nil
}

// errMoved says that a node has changed hands or state while it waited for its turn: the next step has to be found anew.
var errMoved = errors.New("the node has changed")

// stillSo is an errMoved unless a node that has waited for its turn for longer than between two looks is as it was seen.
func (w *walker) stillSo(ctx context.Context, queued time.Time) error {
	if time.Since(queued) < w.c.cfg.PollInterval {
		return nil
	}
	now, err := w.c.getNode(ctx, w.id)
	if err == nil && (now.InstanceUUID != w.node.InstanceUUID || now.ProvisionState != w.node.ProvisionState) {
		return errMoved
	}
	return err
}

// queue waits for the next look at a node that Ironic's own limit keeps from starting; that does not count against ours.
func (w *walker) queue(ctx context.Context) error {
	queued := time.Now()
	err := w.next(ctx)
	w.deadline = w.deadline.Add(time.Since(queued))
	return err
}

func (w *walker) put(ctx context.Context, with order) error {
	api, err := w.c.api(ctx)
	if err != nil {
		return err
	}
	return w.c.wrap(nodes.ChangeProvisionState(ctx, api, w.id, with).ExtractErr())
}

func isCapacityError(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && isCapacity(status.Message)
}

// next waits for the next look at the node. That comes from a short list; driver_info, by which the guard knows whose the
// machine is, stays as it was last read.
func (w *walker) next(ctx context.Context) error {
	node, err := w.c.fleet.next(ctx, w.id, time.Until(w.deadline))
	if errors.Is(err, errLimit) {
		return &TimeoutError{Node: w.node, Goal: w.goal, After: w.limit}
	}
	if err != nil {
		return err
	}
	seen := *node // which others look at, too
	seen.DriverInfo = w.node.DriverInfo
	w.node = &seen
	return nil
}

// look reads the node at once.
func (w *walker) look(ctx context.Context) error {
	node, err := w.c.getNode(ctx, w.id)
	if err != nil {
		return err
	}
	w.node = node
	return nil
}

// clearFault takes a node out of the maintenance that Ironic itself has put it into after a failure, because in it the
// failed operation cannot be repeated. Maintenance that somebody has set stays.
func (w *walker) clearFault(ctx context.Context) error {
	if !w.node.Maintenance || w.node.Fault != FaultClean {
		return nil
	}
	return w.c.SetMaintenance(ctx, w.id, false, "")
}

// FaultClean is the fault that a failed clean step leaves (reference ironic-facts.md 3.7).
const FaultClean = "clean failure"
