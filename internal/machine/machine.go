// Package machine has the record of a node that one call carries through, and what is done to every machine: the walk through its provision
// states, the one loop that waits, verbs, power, steps of cleaning and service, the question to the guard, and the slot of the limit. It does not
// depend on Terraform.
package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/marks"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/states"
)

// Write sends a patch that Ironic may refuse, and updates the record.
func (m *Machine) Write(ctx context.Context, patch ironic.Patch) error {
	node, err := m.site.Ironic.PatchNode(ctx, m.node.UUID, patch)
	if err == nil {
		m.applyAnswer(node)
	}
	return err
}

// Machine is the record of a node that one call carries through: read once, then updated by every answer to the call's own writes
// and by every poll. Its methods act on the node and update the record, also on error. Only an operation that can do harm reads
// the node again, immediately before: a verb that boots or writes, a power change, and a deletion. A Machine is not safe for
// concurrent use.
type Machine struct {
	site *Site
	node *ironic.Node
	// unconfirmed are edits of extra that no read has confirmed yet: Ironic loses concurrent edits of one map.
	unconfirmed ironic.Patch
	asked       time.Time    // when the request of the last poll began; zero if the record has changed since
	switched    bool         // Ironic has accepted a power change
	unanswered  *unanswered  // the last request that moves the machine, if its answer is lost; nil: none
	cut         string       // why SwitchOff has cut the power; empty: it has not
	marks       []marks.Mark // the marks of this run that the node had when the record began

	macs []string // of the cards from which the machine may boot; nil: not looked up

	quarantine *marks.Quarantine // the only reason for which the machine is being undeployed; nil: it is undeployed in any state

	tell func(status string) // is told of every change of state; may be nil
	told string
}

// Machine reads a node, by UUID or name, and returns the record of its machine.
func (s *Site) Machine(ctx context.Context, ref string) (*Machine, error) {
	node, err := s.Ironic.Node(ctx, ref)
	if err != nil {
		return nil, err
	}
	m := s.Record(node)
	m.logState(ctx)
	return m, nil
}

// Record returns the record of a machine from an answer that contains the whole node, such as the answer to its creation.
func (s *Site) Record(node *ironic.Node) *Machine {
	statesOf(s).begin(node)
	return &Machine{site: s, node: node, marks: s.marksOn(node)}
}

// marksOn returns the marks of this run on a node.
func (s *Site) marksOn(node *ironic.Node) (ours []marks.Mark) {
	for _, key := range marks.All {
		if mark := marks.CreationOf(node.Extra, key); mark != nil && mark.Run == s.Run.ID {
			ours = append(ours, key)
		}
	}
	return ours
}

// Node returns the node as last seen.
func (m *Machine) Node() *ironic.Node { return m.node }

// Site returns the site of the machine.
func (m *Machine) Site() *Site { return m.site }

// Carries records that this run has put a mark on the node, or is about to.
func (m *Machine) Carries(key marks.Mark) { m.marks = append(m.marks, key) }

// OnlyIn lets the walks of the machine go on only while the node is in a quarantine, until the caller calls end.
func (m *Machine) OnlyIn(q *marks.Quarantine) (end func()) {
	m.quarantine = q
	return func() { m.quarantine = nil }
}

// State returns the provision state as last seen.
func (m *Machine) State() ironic.State { return ironic.State(m.node.ProvisionState) }

// Refresh reads the node now. It repeats edits of extra that other clients have overwritten.
func (m *Machine) Refresh(ctx context.Context) error {
	node, err := m.site.Ironic.Node(ctx, m.node.UUID)
	if err != nil {
		return err
	}
	m.node = node
	m.logState(ctx)
	return m.confirm(ctx)
}

// confirm repeats the unconfirmed edits of extra that the node, which was just read, does not have.
func (m *Machine) confirm(ctx context.Context) error {
	if len(m.unconfirmed) == 0 || m.unconfirmed.Holds(m.node.Extra) {
		m.unconfirmed = nil
		return nil
	}
	node, err := m.site.PatchNode(ctx, m.node.UUID, m.unconfirmed)
	if node != nil {
		m.node = node
	}
	m.unconfirmed = nil
	return err
}

// freshFor is how long a poll serves as the read before an operation that can do harm. The list of a round of admissions, which
// serves the verbs that it admits, may be as old.
const freshFor = 500 * time.Millisecond

// isFresh reports whether the record comes from a poll that was requested just now.
func (m *Machine) isFresh() bool { return time.Since(m.asked) < freshFor && len(m.unconfirmed) == 0 }

// applyPoll updates the record from a poll or a short list, which contain only the fields that waiting needs.
func (m *Machine) applyPoll(polled *ironic.Node) {
	n := *m.node
	if polled.InstanceUUID != n.InstanceUUID {
		// Ironic clears instance_info with the instance. That of another instance is unknown until the next full read.
		n.AllocationUUID, n.InstanceInfo = "", nil
	}
	n.Name, n.InstanceUUID, n.Reservation = polled.Name, polled.InstanceUUID, polled.Reservation
	n.ProvisionState, n.TargetProvisionState, n.ProvisionUpdatedAt = polled.ProvisionState, polled.TargetProvisionState, polled.ProvisionUpdatedAt
	n.PowerState, n.TargetPowerState = polled.PowerState, polled.TargetPowerState
	n.Maintenance, n.Fault, n.LastError = polled.Maintenance, polled.Fault, polled.LastError
	n.Hidden.Reservation, n.Hidden.LastError = polled.Hidden.Reservation, polled.Hidden.LastError
	n.DeployStep = polled.DeployStep
	if !n.Maintenance {
		n.MaintenanceReason = ""
	}
	if polled.Extra != nil {
		n.Extra = polled.Extra
	}
	m.node = &n
}

// applyAnswer updates the record from the answer to a write. Such an answer has times in whole seconds, and shows the lock that
// Ironic held during the write.
func (m *Machine) applyAnswer(node *ironic.Node) {
	if node.ProvisionState == m.node.ProvisionState && node.ProvisionUpdatedAt.Unix() == m.node.ProvisionUpdatedAt.Unix() {
		node.ProvisionUpdatedAt = m.node.ProvisionUpdatedAt
	}
	node.Reservation = ""
	m.node, m.asked = node, time.Time{}
}

// Patch applies edits to the node; an empty patch sends nothing. It returns an error of KindSuperseded, and changes nothing, if another run
// has taken over a creation of this run.
func (m *Machine) Patch(ctx context.Context, patch ironic.Patch) error {
	if len(patch) == 0 {
		return nil
	}
	patch = m.site.Run.ForgetCreations(patch, m.node.Extra)
	guarded := m.guarded(patch)
	var node *ironic.Node
	err := m.Unlocked(ctx, func() (err error) {
		node, err = m.site.Ironic.PatchNode(ctx, m.node.UUID, guarded)
		return err
	})
	if len(guarded) > len(patch) && api.IsStatus(err, http.StatusBadRequest, "") {
		if lost := m.CheckCreation(ctx); lost != nil {
			return lost
		}
		node, err = m.site.Ironic.PatchNode(ctx, m.node.UUID, m.guarded(patch)) // another client may have removed the mark
	}
	if err != nil {
		return m.site.ExplainDriver(ctx, driverOf(patch), failure.Unseen(ctx, m.site.Ironic, err))
	}
	m.applyAnswer(node)
	m.logState(ctx)
	for _, edit := range patch.OfExtra() {
		if marks.IsMark(edit.Path) {
			continue // another run may have replaced it for good
		}
		m.unconfirmed = append(slices.DeleteFunc(m.unconfirmed, func(e nodes.UpdateOperation) bool { return e.Path == edit.Path }), edit)
	}
	for _, key := range m.site.marksOn(node) {
		if !slices.Contains(m.marks, key) {
			m.marks = append(m.marks, key)
		}
	}
	return nil
}

// Changed updates the record with a change that Ironic has accepted without returning the node.
func (m *Machine) Changed(change func(n *ironic.Node)) {
	n := *m.node
	change(&n)
	m.node = &n
}

// poll waits for the next poll of the node. It returns api.ErrNoPoll if the deadline comes first, and an error of KindUnwatched if the node cannot
// be read.
func (m *Machine) poll(ctx context.Context, deadline time.Time) error {
	polled, asked, err := m.site.Ironic.PollNode(ctx, m.node.UUID, time.Until(deadline))
	if err != nil {
		return m.unwatched(ctx, err)
	}
	m.applyPoll(polled)
	m.logState(ctx)
	m.logStill(ctx)
	m.asked = asked
	return nil
}

// learnError reads last_error if Ironic has hidden it from the user, who may still see it in the states of the node.
func (m *Machine) learnError(ctx context.Context) error {
	if !m.node.Hidden.LastError {
		return nil
	}
	text, hidden, err := m.site.Ironic.LastError(ctx, m.node.UUID)
	switch {
	case api.IsForbidden(err):
		return nil
	case err != nil:
		return m.unwatched(ctx, err)
	}
	m.Changed(func(n *ironic.Node) { n.LastError, n.Hidden.LastError = text, hidden })
	return nil
}

// lockedFor is how long an edit waits for the end of an operation that locks the node, such as a power change that an interrupted
// run has begun. It is longer than any power change takes.
const lockedFor = 10 * time.Minute

// Unlocked sends a request that changes the node. While Ironic refuses it because a conductor has locked the node, it waits for that and
// sends the request again.
func (m *Machine) Unlocked(ctx context.Context, send func() error) error {
	for deadline := time.Now().Add(lockedFor); ; {
		err := send()
		if !api.IsLocked(err) || m.poll(ctx, deadline) != nil || m.AwaitUnlocked(ctx, deadline) != nil {
			return err
		}
	}
}

// AwaitUnlocked waits until no conductor has locked the node.
func (m *Machine) AwaitUnlocked(ctx context.Context, deadline time.Time) error {
	for states.IsLocked(m.node) {
		err := m.poll(ctx, deadline)
		if errors.Is(err, api.ErrNoPoll) {
			return fmt.Errorf("node %s is still locked by conductor %s", ironic.NodeLabel(m.node), cmp.Or(m.node.Reservation, "of an unknown name"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// PatchNode applies edits to a node and reads it back until Ironic has them, because other clients may edit extra at the same
// time. If it returns a node together with an error, Ironic has applied the patch and only extra may differ from it.
func (s *Site) PatchNode(ctx context.Context, id string, patch ironic.Patch) (*ironic.Node, error) {
	const tries = 6
	for try := 1; ; try++ {
		node, err := s.Ironic.PatchNode(ctx, id, patch)
		if err != nil || len(patch.OfExtra()) == 0 {
			return node, err
		}
		now, err := s.Ironic.Node(ctx, id)
		if err != nil {
			return node, err
		}
		if patch.Holds(now.Extra) {
			return now, nil
		}
		if try == tries {
			return now, fmt.Errorf("node %s: other clients keep overwriting extra", ironic.NodeLabel(now))
		}
	}
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
		if err := m.Reach(ctx, states.GoalManageable, timeout); err != nil {
			return err
		}
	}
	if states.Deployed(m.node) {
		reason := states.ReasonDeployed.String()
		if m.node.InstanceUUID != "" {
			reason = fmt.Sprintf("it is reserved by %s. Destroy its metal_deployment and metal_allocation first", m.node.InstanceUUID)
		}
		return RefusedFor(m.node, reason)
	}
	return s.Ironic.DeleteNode(ctx, id)
}

// InspectedAt returns when a node was last inspected, to the second; zero if it never was.
func InspectedAt(n *ironic.Node) time.Time {
	if n.InspectionFinishedAt == nil {
		return time.Time{}
	}
	return n.InspectionFinishedAt.UTC().Truncate(time.Second)
}

// ReasonChanging is the maintenance reason of a node whose interfaces or ports are being changed.
const ReasonChanging = "terraform-provider-metal: changing interfaces or ports"

// PatchHost is Patch for edits that may change interfaces. While something is deployed on a node, Ironic accepts such edits only
// in maintenance, so that PatchHost makes them there. It also takes a node out of maintenance that a killed run has left in it.
// arrived reports whether Ironic has applied the edits; together with an error it means that only leaving maintenance has failed.
func (m *Machine) PatchHost(ctx context.Context, patch ironic.Patch) (arrived bool, err error) {
	if !m.leftChanging() && (len(patch.OfInterfaces()) == 0 || states.InterfacesChangeable(m.State())) {
		err := m.Patch(ctx, patch)
		return err == nil, err
	}
	err = m.inMaintenance(ctx, func() error {
		err := m.Patch(ctx, patch)
		arrived = err == nil
		return err
	})
	return arrived, err
}

// Reconnect calls change, which changes the connectivity of ports. Ironic accepts that in a few states of the node, and in maintenance
// (reference/ironic.md#changing-a-port). In other states the node is in maintenance while change runs.
func (m *Machine) Reconnect(ctx context.Context, change func() error) error {
	if states.PortsChangeable(m.State()) {
		return change()
	}
	return m.inMaintenance(ctx, change)
}

// Maintenance is the maintenance of a node.
type Maintenance struct {
	On     bool
	Reason string
}

// SetMaintenance puts the node into maintenance, or takes it out, unless it is so.
func (m *Machine) SetMaintenance(ctx context.Context, want Maintenance) error {
	if want.On == m.node.Maintenance && (!want.On || want.Reason == m.node.MaintenanceReason) {
		return nil
	}
	if err := m.site.Ironic.SetMaintenance(ctx, m.node.UUID, want.On, want.Reason); err != nil {
		return err
	}
	m.Changed(func(n *ironic.Node) { n.Maintenance, n.MaintenanceReason = want.On, want.Reason })
	return nil
}

// leftChanging reports whether a killed run has left the node in maintenance.
func (m *Machine) leftChanging() bool {
	return m.node.Maintenance && m.node.MaintenanceReason == ReasonChanging
}

// inMaintenance calls change while the node is in maintenance, and takes the node out again, also if change fails or the run is
// interrupted. Maintenance that others have set stays, also if they set it after the record was read or during the change.
func (m *Machine) inMaintenance(ctx context.Context, change func() error) error {
	if err := m.Refresh(ctx); err != nil {
		return err
	}
	if m.node.Maintenance && !m.leftChanging() {
		return change()
	}
	if !m.node.Maintenance {
		if err := m.SetMaintenance(ctx, Maintenance{On: true, Reason: ReasonChanging}); err != nil {
			return err
		}
	}
	err := change()
	return errors.Join(err, m.endChanging(context.WithoutCancel(ctx)))
}

// endChanging takes the node out of the maintenance of inMaintenance, unless another client has given it another reason.
func (m *Machine) endChanging(ctx context.Context) error {
	if err := m.Refresh(ctx); err != nil {
		return err
	}
	if !m.leftChanging() {
		return nil
	}
	return m.SetMaintenance(ctx, Maintenance{})
}

// CheckDeploy asks the site's guard whether the machine may be deployed, before anything is written for that.
func (m *Machine) CheckDeploy(ctx context.Context) error {
	verb := nodes.TargetActive
	if states.Occupied(m.State()) {
		verb = nodes.TargetRebuild
	}
	return m.site.guard.Check(ctx, Step{Node: m.node, Verb: verb, Stage: BeforeWrite})
}
