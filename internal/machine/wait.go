package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// poll waits for the next poll of the node. It returns api.ErrNoPoll if the deadline comes first, an error of KindUnwatched if the node
// cannot be read, and one of KindStuck if its operation has lost its conductor.
func (m *Machine) poll(ctx context.Context, deadline time.Time) error {
	polled, asked, err := m.site.Ironic.PollNode(m.operation.Within(ctx), m.node.UUID, time.Until(deadline))
	if err != nil {
		return m.unwatched(ctx, err)
	}
	before := m.node
	m.applyPoll(polled)
	m.watchWork()
	m.site.limiter.Moved(before, m.node)
	m.logState(ctx)
	m.logStill(ctx)
	m.asked = asked
	if m.unattended.poll(m.node) {
		return stuckError(m.node, m.unattended.words)
	}
	return nil
}

// watchWork adds a poll to the record of an automated cleaning or a service.
func (m *Machine) watchWork() {
	if m.erases {
		m.erasure.now(m.erasure.work.SeeErasure(m.node, m.site.Run.ID))
	}
	if m.serves {
		m.service.now(m.service.work.SeeService(m.node, m.site.Run.ID))
	}
}

// unattended is an operation that may have lost its conductor, by the polls of one record.
type unattended struct {
	as    string    // what the machine does
	since time.Time // when polls first showed that; zero: a conductor works on it
	last  time.Time // when a poll last showed it
	// of Ironic, the first line of last_error. From Ironic 39 on, the next look at the power of the machine empties last_error
	words string
}

// How long an operation may be without a conductor: if Ironic has written an error during that time, and if it has not.
const (
	stuckFor      = 2 * time.Minute
	unattendedFor = 10 * time.Minute
)

// poll records a poll of the machine, and reports whether waiting for the end of its operation is in vain. It begins anew if the
// last poll was long ago.
func (l *unattended) poll(n *ironic.Node) bool {
	as, now := n.ProvisionState+" "+states.StepName(n.DeployStep), time.Now()
	if !states.IsUnattended(n) {
		*l = unattended{}
		return false
	}
	if l.as != as || now.Sub(l.last) >= unattendedFor {
		*l = unattended{as: as, since: now}
	}
	l.last = now
	switch l.words = cmp.Or(api.FirstLine(n.LastError), l.words); {
	case l.words != "":
		return now.Sub(l.since) >= stuckFor
	case ironic.State(n.ProvisionState) == nodes.Inspecting: // below API 1.39, Ironic shows inspect wait as this state
		return false
	}
	return now.Sub(l.since) >= unattendedFor
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

// AwaitUnlocked waits until no conductor has locked the node.
func (m *Machine) AwaitUnlocked(ctx context.Context, deadline time.Time) error {
	for states.IsLocked(m.node) {
		err := m.poll(ctx, deadline)
		if errors.Is(err, api.ErrNoPoll) {
			return fmt.Errorf("node %s is still locked by conductor %s", ironic.NodeLabel(m.node),
				cmp.Or(m.node.Reservation, "of an unknown name"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// AwaitEnd waits, at most for the limit, until Ironic has no operation in progress that changes the provision state, such as one that a
// killed run has begun. It sends no request if there is none.
func (m *Machine) AwaitEnd(ctx context.Context, limit time.Duration) error {
	for deadline := time.Now().Add(limit); states.InProgress(m.State()); {
		err := m.poll(ctx, deadline)
		if errors.Is(err, api.ErrNoPoll) {
			return Late(m.node, "", limit, m.macs)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lockedFor is how long an edit waits for the end of an operation that locks the node, such as a power change that an interrupted
// run has begun. It is longer than any power change takes.
const lockedFor = 10 * time.Minute

// Unlocked sends a request that changes the node. While Ironic refuses it because a conductor has locked the node, it waits for that and
// sends the request again.
func (m *Machine) Unlocked(ctx context.Context, send func() error) error {
	return m.UnlockedWithin(ctx, lockedFor, send)
}

// UnlockedWithin is Unlocked with a time-out.
func (m *Machine) UnlockedWithin(ctx context.Context, timeout time.Duration, send func() error) error {
	for deadline := time.Now().Add(timeout); ; {
		err := send()
		if !api.IsLocked(err) || m.poll(ctx, deadline) != nil || m.AwaitUnlocked(ctx, deadline) != nil {
			return err
		}
	}
}

// restFor is how long a node rests before another run may continue its creation. A run that is alive sends the next request sooner.
const restFor = 10 * time.Second

// AtRest waits until no operation is in progress on the node. If it has to wait, the run that began the operation may be alive, so it waits
// until the node has been at rest for restFor.
func (m *Machine) AtRest(ctx context.Context, deadline time.Time) error {
	var moved time.Time
	for {
		if states.InProgress(m.State()) || states.IsLocked(m.node) {
			moved = time.Now()
		} else if moved.IsZero() || time.Since(moved) >= restFor {
			return nil
		}
		err := m.poll(ctx, deadline)
		if errors.Is(err, api.ErrNoPoll) {
			return fmt.Errorf("node %s, whose creation another run has begun, is still in state %q. Apply again when that operation has "+
				"ended, or raise timeouts", ironic.NodeLabel(m.node), m.node.ProvisionState)
		}
		if err != nil {
			return err
		}
	}
}

// awaitLeft waits until the machine has left a state and no conductor has locked it.
func (m *Machine) awaitLeft(ctx context.Context, from ironic.State, deadline time.Time) error {
	for m.State() == from || states.IsLocked(m.node) {
		if err := m.poll(ctx, deadline); err != nil {
			return err
		}
	}
	return nil
}

// unwatched returns the error of a wait for the machine: an error of KindUnwatched if the read has failed, unless the run was stopped.
func (m *Machine) unwatched(ctx context.Context, err error) error {
	return failure.Unwatched(ctx, "node "+ironic.NodeLabel(m.node), m.node.ProvisionState, err)
}

// Unwatched returns an error of KindUnwatched for an error that says nothing about the machine, if something is deployed on the machine or
// an operation on it is in progress: the rights of the user have ended, or Ironic does not answer. It returns other errors unchanged.
func (m *Machine) Unwatched(ctx context.Context, err error) error {
	begun := states.InProgress(m.State()) || states.Occupied(m.State()) && !states.Failed(m.State())
	if !begun || !failure.IsAccess(err) {
		return err
	}
	return m.unwatched(ctx, err)
}
