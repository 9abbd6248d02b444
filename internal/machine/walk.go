package machine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/slots"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// Reach walks the machine to a goal and waits until it is reached. For instances use Deploy and Undeploy. The time-out does not
// include the time that the machine waits for a slot. It returns an error of KindFailed, KindTimeout or KindRefused,
// ctx's error, or Ironic's answer.
func (m *Machine) Reach(ctx context.Context, goal states.Goal, timeout time.Duration) error {
	return m.Walk(ctx, goal, "", ironic.Order{}, timeout)
}

// Walk is the one loop over provision states: it waits or sends a verb until the goal is reached. instance is the reservation for
// which the machine is deployed, rebuilt or undeployed. The order belongs to the goal's own verb.
func (m *Machine) Walk(ctx context.Context, goal states.Goal, instance string, with ironic.Order, timeout time.Duration) (err error) {
	ctx, traced := m.begin(ctx, goal.Operation())
	defer func() { m.end(traced, err) }()
	w := &walk{
		Machine: m, goal: goal, instance: instance, order: with, timeout: timeout, begun: time.Now(), deadline: time.Now().Add(timeout),
		failures: notes.Failures(m.node),
	}
	m.erases = goal == states.GoalAvailable || goal == states.GoalUndeployed
	m.site.limiter.Begin(m.node.UUID)
	defer m.site.limiter.End()
	for arrived := false; !arrived && err == nil; {
		if arrived, err = w.step(ctx); errors.Is(err, errFailed) {
			err = w.fail(ctx)
		}
	}
	if err != nil && ctx.Err() != nil && !failure.Is(err, failure.KindFailed) { // what has failed has, though the user stops the run
		m.lastRead(ctx)
		if failure.Is(err, failure.KindQueued) {
			return err
		}
		return stopped(m.node, goal, w.waiting, ctx.Err())
	}
	m.countFailures(ctx, err)
	switch {
	case err == nil && w.sent != "":
		failingsOf(m.site).ended(m.node, goal, succeeded)
	case failure.Is(err, failure.KindTimeout):
		failingsOf(m.site).ended(m.node, goal, unknown)
	}
	if err == nil && goal == states.GoalInspected {
		return m.Refresh(ctx) // polls do not contain the results of the inspection
	}
	return err
}

// Withdraw deletes the node from Ironic. It first waits for an operation in progress, at most for the time-out, and repairs a
// failed one as far as the deletion needs it. It returns an error of KindRefused if something is deployed on the node or the node is
// reserved, even where Ironic would delete it, as it does in maintenance (reference/ironic.md#deleting-a-node). It succeeds if the
// node does not exist any more.
func (s *Site) Withdraw(ctx context.Context, id string, timeout time.Duration) error {
	m, err := s.Machine(ctx, id)
	if api.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !states.Deletable(m.node) {
		err := m.Reach(ctx, states.GoalManageable, timeout)
		if failure.Is(err, KindRefused) && states.IsOccupied(m.node) && !states.UndeployUnfinished(m.node) {
			return keptMachine(m.node)
		}
		if err != nil {
			return err
		}
	}
	if states.Deployed(m.node) {
		return keptMachine(m.node)
	}
	return s.Ironic.DeleteNode(ctx, id)
}

// keptMachine returns the error of the deletion of a node that is in use. It says first how to keep what runs on the machine.
func keptMachine(node *ironic.Node) error {
	use := "something is deployed on it"
	if !states.IsOccupied(node) {
		use = "it is reserved by " + node.InstanceUUID
	}
	err := &failure.Error{Kind: KindRefused, Node: node, Fact: fmt.Sprintf("node %s is in state %q, and %s: its host cannot be deleted",
		ironic.NodeLabel(node), node.ProvisionState, use)}
	err.Advice = "To keep the machine as it is: leave out -replace, run terraform untaint if the host is tainted, or add the host to the " +
		"configuration again. To forget the host, apply on_destroy = \"forget\" for it first, or use a removed block with destroy = " +
		"false.\n\nOnly if the machine may be wiped: destroy its metal_deployment and metal_allocation first."
	return err
}

// lastRead reads the node once more after the user has stopped the run, or after a time-out, because a verb may have been sent since the
// last poll. It gives up after two seconds.
func (m *Machine) lastRead(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_ = m.Refresh(ctx) // on failure the record stays as last seen
}

type walk struct {
	*Machine
	goal     states.Goal
	instance string
	order    ironic.Order
	timeout  time.Duration
	deadline time.Time
	begun    time.Time
	failures int // how often operations on the machine failed before this walk

	sent    ironic.Verb  // the last verb that this walk sent
	from    ironic.State // the state from which it was sent
	began   time.Time    // when Ironic accepted it, by Ironic's clock
	waiting bool         // for a slot
	since   time.Time    // since when it waits to send a verb; zero: it does not
	again   uint         // how often it has begun anew after a failure that passes by itself

	deployStep string // the last one that a poll has seen
}

func (w *walk) step(ctx context.Context) (arrived bool, err error) {
	if w.unanswered != nil {
		return false, w.learn(ctx)
	}
	if gone, err := w.instanceGone(); gone || err != nil {
		return gone, err
	}
	state := w.State()
	if w.quarantine != nil && !w.quarantine.Applies(w.node) {
		return false, RefusedFor(w.node, states.ReasonOtherSince.String())
	}
	m := states.NextMove(w.goal, state, states.ReachesGoal(w.sent, w.goal))
	if states.IsLocked(w.node) && m.Kind != states.Wait {
		// Final states become visible before the lock is released and last_error is written (reference/ironic.md#state-and-lock).
		return false, w.next(ctx)
	}
	if (m.Kind == states.Send || m.Kind == states.Repair) && w.keptByReservation(m.Verb) {
		return false, RefusedFor(w.node, fmt.Sprintf("it is reserved by %s. Destroy its metal_allocation first", w.node.InstanceUUID))
	}
	switch m.Kind {
	case states.Done:
		return true, nil
	case states.Refuse:
		return false, Refused(w.node, m.Reason)
	case states.Repair:
		if w.sent != "" {
			return false, errFailed
		}
		if err := w.clearFault(ctx); err != nil {
			return false, err
		}
		return false, w.send(ctx, m.Verb)
	case states.Send:
		// the node returned to the state before the verb, for example to enroll after a failed verification
		if w.sent == m.Verb && w.from == state {
			return false, errFailed
		}
		return false, w.send(ctx, w.fromPool(m.Verb))
	case states.Wait:
		if w.goal == states.GoalInspected && states.BeingInspected(state) {
			w.sent = nodes.TargetInspect // an interrupted run or another client has requested the inspection
		}
		return false, w.next(ctx)
	}
	return false, fmt.Errorf("no move from %q", state)
}

// keptByReservation reports whether the reservation of a node forbids a verb that prepares the machine. A machine that an allocation has
// reserved was available, so it may return to the pool (reference/ironic.md#reserved-nodes-that-leave-the-pool). Any other reservation may
// be for what runs on the machine already. A walk on behalf of the reservation may take the node out of the pool.
func (w *walk) keptByReservation(verb ironic.Verb) bool {
	goal, n := w.goal, w.node
	switch {
	case verb == nodes.TargetManage && n.InstanceUUID == w.instance:
		return false
	case n.InstanceUUID == "" || goal != states.GoalManageable && goal != states.GoalAvailable && goal != states.GoalInspected &&
		goal != states.GoalConfigured:
		return false
	case verb == nodes.TargetProvide:
		return n.AllocationUUID == ""
	}
	return ironic.State(n.ProvisionState) == nodes.Available || states.TouchesHardware(verb)
}

// instanceGone checks at every step which instance has the node, because another client may undeploy, reserve and deploy it
// between two polls. For undeploying it reports true once the instance is gone. A deploy or rebuild without its reservation is an
// error of KindReserved.
func (w *walk) instanceGone() (bool, error) {
	switch w.goal {
	case states.GoalDeployed, states.GoalRebuilt, states.GoalServiced, states.GoalRescued, states.GoalUnrescued, states.GoalAdopted:
		return false, CheckReservation(w.node, w.instance)
	case states.GoalUndeployed:
		reserved := w.node.InstanceUUID != "" && w.node.InstanceUUID != w.instance
		return reserved || states.RunsUnreserved(w.node), nil
	// NextMove refuses these goals where something is deployed
	case states.GoalManageable, states.GoalAvailable, states.GoalInspected, states.GoalConfigured:
	}
	return false, nil
}

// errFailed says that the operation of a walk has failed.
var errFailed = errors.New("the operation has failed")

// fromPool returns the verb that a walk waits for a slot with, where the next one takes the machine out of the pool for it: until there is
// a slot, allocations may reserve the machine. A machine that the guard prepares for a verb before there is a slot leaves the pool first.
func (w *walk) fromPool(next ironic.Verb) ironic.Verb {
	then := states.NextMove(w.goal, nodes.Manageable, false)
	if !w.site.prepares(w.node) && next == nodes.TargetManage && states.InPool(w.node) && then.Kind == states.Send &&
		states.TouchesHardware(then.Verb) {
		return then.Verb
	}
	return next
}

// leavePool takes a machine of the pool out of it, for a verb that Ironic does not accept there. Ironic does that at once.
func (w *walk) leavePool(ctx context.Context, verb ironic.Verb) error {
	if !states.InPool(w.node) || verb == nodes.TargetManage || w.fromPool(nodes.TargetManage) != verb {
		return nil
	}
	if err := w.confirmUnchanged(ctx, nil); err != nil { // others may have reserved it since the list of the limit
		return err
	}
	instance := w.node.InstanceUUID
	if err := w.put(ctx, ironic.Order{Verb: nodes.TargetManage}); err != nil {
		return err
	}
	if err := w.Refresh(ctx); err != nil || w.State() != nodes.Manageable || w.node.InstanceUUID != instance {
		return errMoved
	}
	return nil
}

// send sends a verb and waits for the next poll. A verb that boots the machine or writes waits for a slot first.
func (w *walk) send(ctx context.Context, verb ironic.Verb) error {
	if err := w.InVain(w.goal); err != nil {
		return err
	}
	begun := time.Now()
	waited, err := w.Thawed(ctx, w.timeout)
	w.deadline = w.deadline.Add(time.Since(begun)) // waiting for the end of a freeze does not count
	switch {
	case err != nil:
		return err
	case waited:
		return w.next(ctx) // then decide again
	}
	before, from := *w.node, w.State()
	err = w.admitted(ctx, verb, func(ctx context.Context) error {
		if err := w.forgetBegun(ctx); err != nil {
			return err
		}
		if err := w.leavePool(ctx, verb); err != nil {
			return err
		}
		from = w.State()
		if w.preparation == nil || !states.InstallsInstance(verb) && !states.RunsSteps(verb) {
			return w.put(ctx, w.orderOf(verb))
		}
		return w.putPrepared(ctx, verb)
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case slots.IsCapacityError(err):
		queued := time.Now()
		err = w.next(ctx)
		w.deadline = w.deadline.Add(time.Since(queued)) // waiting for Ironic's own timeout does not count
		if seen := failure.AboutOf[error](err, failure.KindUnwatched); seen != nil {
			return seen // nothing has begun
		}
		return err
	case errors.Is(err, errMoved), isUnanswered(err), IsFrozen(err): // the next step finds out what became of the verb, or waits
		return nil
	case err == nil:
		w.accepted(verb, from)
		return w.next(ctx)
	}
	return w.refusedVerb(ctx, verb, &before, err)
}

// Preparation is what a verb needs on the node. It is written when the machine has a slot, right before the verb: a run that is killed
// while its machine waits leaves nothing on the node, which others may use until then.
type Preparation struct {
	Write func(ctx context.Context) error
	Undo  func(ctx context.Context) // after Ironic's own limit has refused the verb, so that the machine waits again; nil: nothing
}

// Preparing lets the walks of the machine write a preparation before their verbs, until the caller calls end.
func (m *Machine) Preparing(p Preparation) (end func()) {
	m.preparation = &p
	return func() { m.preparation = nil }
}

// putPrepared sends a verb after its preparation. The preparation needs the whole node, which polls and lists do not contain.
func (w *walk) putPrepared(ctx context.Context, verb ironic.Verb) error {
	if was := w.footing(); time.Since(w.begun) > freshFor {
		if err := w.Refresh(ctx); err != nil {
			return err
		}
		if w.footing() != was {
			return errMoved
		}
	}
	if err := w.preparation.Write(ctx); err != nil {
		return err
	}
	err := w.put(ctx, w.orderOf(verb))
	if (slots.IsCapacityError(err) || IsFrozen(err)) && w.preparation.Undo != nil {
		w.preparation.Undo(ctx)
	}
	return err
}

// learn finds out what became of a request without an answer, before anything else is sent.
func (w *walk) learn(ctx context.Context) error {
	u := w.unanswered
	executed, err := w.settle(ctx, w.deadline)
	switch late := isUnanswered(err) && time.Until(w.deadline) < unansweredFor; {
	case late && w.losses.tries >= tellLosses-1: // and this request, too
		return w.unsentError()
	case late:
		return w.late(ctx)
	}
	if executed && u.verb != "" {
		w.accepted(u.verb, ironic.State(u.before.ProvisionState))
	}
	return err
}

// accepted records that Ironic has executed a verb, sent from a state. Polls may miss a short service.
func (w *walk) accepted(verb ironic.Verb, from ironic.State) {
	w.sent, w.from, w.began = verb, from, w.site.Ironic.ServerNow()
	if verb == nodes.TargetService {
		w.service.now(&notes.Work{
			Run: w.site.Run.ID, Steps: stepsOf(w.order),
			Began: w.site.Ironic.ServerNow().UTC().Truncate(time.Second),
		})
	}
}

// refusedVerb decides what to do after Ironic has refused a verb: the record may be out of date, or a later repetition may succeed.
func (w *walk) refusedVerb(ctx context.Context, verb ironic.Verb, before *ironic.Node, err error) error {
	transient := api.IsTransient(err)
	if !transient && !IsBusy(err) {
		return invalid(verb, w.node, err)
	}
	rerr := w.Refresh(ctx)
	if rerr != nil && api.MayPass(rerr) {
		rerr = w.next(ctx)
	}
	if rerr != nil {
		return rerr
	}
	moved := w.node.ProvisionState != before.ProvisionState || !w.node.ProvisionUpdatedAt.Equal(before.ProvisionUpdatedAt)
	switch {
	case moved:
		return nil
	case transient:
		return w.next(ctx) // then decide again
	}
	return err
}

// invalid turns Ironic's refusal to deploy an incomplete node into an error of KindInvalid; it returns other errors unchanged.
func invalid(verb ironic.Verb, node *ironic.Node, err error) error {
	var status *api.StatusError
	if states.InstallsInstance(verb) && errors.As(err, &status) && status.Status == http.StatusBadRequest &&
		strings.Contains(status.Message, "alidat") {
		return InvalidNode(node, strings.TrimSuffix(status.Message, "."))
	}
	return err
}

func (w *walk) orderOf(verb ironic.Verb) ironic.Order {
	with := ironic.Order{}
	if states.InstallsInstance(verb) || states.RunsSteps(verb) || verb == nodes.TargetRescue {
		with = w.order
	}
	with.Verb = verb
	return with
}

// admitted calls put. If the verb boots the machine or writes, admitted first asks the guard, waits for a slot, and returns
// errMoved instead if the node does not match the record any more.
func (w *walk) admitted(ctx context.Context, verb ironic.Verb, put func(context.Context) error) error {
	if !states.TouchesHardware(verb) {
		return put(ctx)
	}
	err := w.site.guard.Check(ctx, Step{Node: w.node, Verb: verb, Stage: BeforeQueue, Limit: time.Until(w.deadline)})
	queued := time.Now()
	if err == nil {
		w.waiting = true
		if w.since.IsZero() {
			w.since = queued
		}
		admitted := w.tellQueued()
		defer admitted()
		err = w.site.limiter.Pass(throttle.InPlaceOf(ctx, w.since), w.node, w.failures, func(ctx context.Context, seen *ironic.Node) error {
			w.waiting = false
			admitted()
			if err := w.InVain(w.goal); err != nil {
				return err
			}
			if err := w.confirmUnchanged(ctx, seen); err != nil {
				return err
			}
			if err := w.site.guard.Check(ctx, Step{Node: w.node, Verb: verb, Stage: BeforeVerb}); err != nil {
				return err
			}
			return put(ctx)
		})
	}
	w.deadline = w.deadline.Add(time.Since(queued)) // waiting for a slot does not count
	if !api.IsLocked(err) && !IsFrozen(err) {
		w.since = time.Time{}
	}
	return err
}

func (w *walk) next(ctx context.Context) error {
	err := w.poll(ctx, w.deadline)
	if errors.Is(err, api.ErrNoPoll) {
		if w.sent != "" && w.State() == w.from {
			w.lastRead(ctx) // the record is older than the verb
		}
		return w.late(ctx)
	}
	if step := states.StepName(w.node.DeployStep); step != "" {
		w.deployStep = step
	}
	return err
}

// clearFault ends the maintenance that Ironic has set after a failure, because the operation cannot be repeated in it. Maintenance
// that an operator has set stays.
func (m *Machine) clearFault(ctx context.Context) error {
	if !m.node.Maintenance || m.node.Fault != FaultClean && m.node.Fault != faultService {
		return nil
	}
	return m.site.Ironic.SetMaintenance(ctx, m.node.UUID, false, "")
}

// Faults that a failed step leaves (reference/ironic.md#failed-clean-steps).
const (
	FaultClean   = "clean failure"
	faultService = "service failure"
)

// CheckHardware asks the site's guard whether the hardware of the machine may be touched, before anything is written for that.
func (m *Machine) CheckHardware(ctx context.Context) error {
	return m.site.guard.Check(ctx, Step{Node: m.node, Stage: BeforeWrite})
}

// CheckDeploy asks the site's guard whether the machine may be deployed, and whether that is in vain, before anything is written for that.
func (m *Machine) CheckDeploy(ctx context.Context) error {
	if err := m.InVain(states.GoalDeployed); err != nil {
		return err
	}
	verb := nodes.TargetActive
	if states.Occupied(m.State()) {
		verb = nodes.TargetRebuild
	}
	return m.site.guard.Check(ctx, Step{Node: m.node, Verb: verb, Stage: BeforeWrite})
}
