// Package machine has the record of a node that one call carries through, and what is done to every machine: the walk through its provision
// states, the one loop that waits, verbs, power, steps of cleaning and service, the question to the guard, and the slot of the limit. It
// does not depend on Terraform.
package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/operation"
)

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
	acted       bool         // Ironic has accepted a request that moves the machine, or may have
	down        bool         // Ironic has accepted to shut the machine down for a restart
	started     bool         // Ironic has accepted a power change after which the machine is on
	unanswered  *unanswered  // the last request that moves the machine, if its answer is lost; nil: none
	losses      losses       // requests of the same kind that Ironic has never executed
	unattended  unattended   // the operation in progress, if no conductor has locked the node at the last polls
	cut         string       // why SwitchOff has cut the power; empty: it has not
	marks       []notes.Mark // the marks of this run that the node had when the record began

	gets string // what the machine is about to get; "": not known

	macs []string // of the cards from which the machine may boot; nil: not looked up

	erases  bool    // the walk may clean the machine, and watches that
	serves  bool    // the call services the machine, and watches that
	erasure watched // the last automated cleaning
	service watched // the last service

	preparation *Preparation // of the next verb with an order; nil: none
	qualifies   bool         // it runs the steps of a qualification

	quarantine *notes.Quarantine // the only reason for which the machine is being undeployed; nil: it is undeployed in any state

	operation *operation.Trace // of the operation in progress; nil: none, or no trace is wanted

	tell func(status string) // is told of every change of state; may be nil
	told string
}

// watched is work of Ironic on the machine that this call has watched.
type watched struct {
	work  *notes.Work // nil: none
	noted bool        // the node has the note of it
}

// works returns what this call watches, by the key of its note.
func (m *Machine) works() map[string]*watched {
	return map[string]*watched{notes.KeyErasure: &m.erasure, notes.KeyService: &m.service}
}

// now records what is known of the work. Other work than before has no note yet.
func (w *watched) now(work *notes.Work) {
	if work != w.work {
		*w = watched{work: work}
	}
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

func (s *Site) marksOn(node *ironic.Node) []notes.Mark {
	return slices.DeleteFunc(slices.Clone(notes.All), func(key notes.Mark) bool {
		mark := notes.CreationOf(node.Extra, key)
		return mark == nil || mark.Run != s.Run.ID
	})
}

// Node returns the node as last seen.
func (m *Machine) Node() *ironic.Node { return m.node }

// Acted reports whether Ironic has accepted, in this call, a request that moves the machine: a verb, a power change, or another request to
// its hardware. It also does so if the answer is lost.
func (m *Machine) Acted() bool { return m.acted }

// Site returns the site of the machine.
func (m *Machine) Site() *Site { return m.site }

// KeepSlot lets the machine keep its slot of the provisioning limit after its next operation, until the caller calls release.
func (m *Machine) KeepSlot() (release func()) { return m.site.limiter.Keep(m.node.UUID) }

// Turned tells the limit that the machine begins because another one of its rollout has ended.
func (m *Machine) Turned() { m.site.limiter.Turned(m.node.UUID) }

// Carries records that this run has put a mark on the node, or is about to.
func (m *Machine) Carries(key notes.Mark) { m.marks = append(m.marks, key) }

// superseded compares the marks of this run that the record began with to those of the node as last seen.
func (m *Machine) superseded() error {
	for _, key := range m.marks {
		if err := m.site.Run.Superseded("node "+ironic.NodeLabel(m.node), m.node.Extra, key); err != nil {
			return err
		}
	}
	return nil
}

// OnlyIn lets the walks of the machine go on only while the node is in a quarantine, until the caller calls end.
func (m *Machine) OnlyIn(q *notes.Quarantine) (end func()) {
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

// footing is what must not change between the decision to do something to a machine and the request: who has it, and what Ironic does with
// it.
type footing struct {
	instance, state string
	entered         int64 // the state, in seconds
	maintenance     bool  // by a person: Ironic sets it, too, when it does not reach the BMC
}

func (m *Machine) footing() footing {
	n := m.node
	return footing{n.InstanceUUID, n.ProvisionState, n.ProvisionUpdatedAt.Unix(), n.Maintenance && n.Fault == ""}
}

// confirmUnchanged is confirmAs for a machine that must be as last seen.
func (m *Machine) confirmUnchanged(ctx context.Context, seen *ironic.Node) error {
	return m.confirmAs(ctx, m.footing(), seen)
}

// confirmAs returns errMoved unless the node has the same instance as it had, and has been in the same state since, and an error of
// KindSuperseded if another run has taken over its creation. seen is the node in the list that was just taken for the limit; if it is nil,
// confirmAs reads the node, unless a poll has just done that.
func (m *Machine) confirmAs(ctx context.Context, was footing, seen *ironic.Node) error {
	switch {
	case seen != nil:
		m.applyPoll(seen)
		m.logState(ctx)
		if seen.Extra != nil {
			if err := m.confirm(ctx); err != nil {
				return err
			}
		}
	case m.isFresh():
	default:
		if err := m.Refresh(ctx); err != nil {
			return err
		}
	}
	if err := m.superseded(); err != nil {
		return err
	}
	if m.footing() != was {
		return errMoved
	}
	return nil
}

// errMoved says that the node's instance or state has changed before the verb was sent. The walk then decides the next step again.
var errMoved = errors.New("the node has changed")

// applyPoll updates the record from a poll or a short list, which contain only the fields that waiting needs.
func (m *Machine) applyPoll(polled *ironic.Node) {
	n := *m.node
	if polled.InstanceUUID != n.InstanceUUID {
		// Ironic clears instance_info with the instance. That of another instance is unknown until the next full read.
		n.AllocationUUID, n.InstanceInfo = "", nil
	}
	n.Name, n.InstanceUUID, n.Reservation = polled.Name, polled.InstanceUUID, polled.Reservation
	n.ProvisionState, n.TargetProvisionState, n.ProvisionUpdatedAt = polled.ProvisionState, polled.TargetProvisionState,
		polled.ProvisionUpdatedAt
	n.PowerState, n.TargetPowerState = polled.PowerState, polled.TargetPowerState
	n.Maintenance, n.Fault, n.LastError = polled.Maintenance, polled.Fault, polled.LastError
	n.Hidden.Reservation, n.Hidden.LastError = polled.Hidden.Reservation, polled.Hidden.LastError
	n.DeployStep, n.CleanStep, n.ServiceStep = polled.DeployStep, polled.CleanStep, polled.ServiceStep
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
	for key, w := range m.works() {
		if noted := notes.WorkOf(node, key); noted != nil && w.work != nil {
			w.noted = noted.Ended.Equal(w.work.Ended)
		}
	}
}

// Changed updates the record with a change that Ironic has accepted without returning the node.
func (m *Machine) Changed(change func(n *ironic.Node)) {
	n := *m.node
	change(&n)
	m.node = &n
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

// InspectedAt returns when a node was last inspected, to the second; zero if it never was.
func InspectedAt(n *ironic.Node) time.Time { return notes.InspectedAt(n) }
