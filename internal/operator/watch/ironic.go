package watch

import (
	"cmp"
	"context"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/selection"
)

// fields are the fields of a list.
var fields = []string{
	"uuid", "name", "provision_state", "target_power_state", "provision_updated_at", "fault", "last_error", "reservation",
	"instance_uuid", "extra", "health",
}

// List reads the machines of a selection in one list of nodes, and, if one of them has a new reservation, the list of allocations.
func List(ctx context.Context, client *ironic.Client, s *selection.Following) (Sample, error) {
	listed, err := s.List(ctx, client, fields)
	if err != nil {
		return Sample{}, err
	}
	return sampleOf(ctx, client, listed, s)
}

// sampleOf converts the nodes of a list of a selection, and adds the names of their allocations.
func sampleOf(ctx context.Context, client *ironic.Client, listed []ironic.Node, chosen *selection.Following) (Sample, error) {
	sample := Sample{Taken: client.ServerNow().Local(), HasLeft: chosen.HasLeft}
	names, err := chosen.NamesOf(ctx, client, listed)
	if err != nil {
		return Sample{}, err
	}
	for i := range listed {
		m := machineOf(&listed[i], client.ServerNow())
		m.Allocation = names[m.Instance]
		sample.Machines = append(sample.Machines, m)
	}
	return sample, nil
}

// machineOf converts a node. A failure whose reason Ironic is still writing counts as in progress (reference/ironic.md#state-and-lock).
func machineOf(n *ironic.Node, now time.Time) Machine {
	failed := states.OperationFailed(n)
	ending := failed && n.Reservation != "" && n.LastError == ""
	m := Machine{
		ID: n.UUID, Name: n.Name, State: n.ProvisionState, Power: n.TargetPowerState, Since: n.ProvisionUpdatedAt.Local(),
		InProgress: states.IsInProgress(n) || ending,
		Failed:     failed && !ending,
		Pending:    machine.Pending(n),
		Instance:   n.InstanceUUID,
		Class:      n.ResourceClass, Group: n.ConductorGroup, Health: n.Health,
	}
	if check := notes.CheckOf(n, now); check != nil && !m.InProgress && !m.Failed {
		m.Checked, m.InProgress, m.Since = true, true, check.Since.Local()
	}
	if check := notes.NotReadyOf(n); check != nil && !m.InProgress && !m.Failed {
		m.NotReady, m.Failed, m.Step, m.Since = true, true, stateChecked, check.Failed.Local()
		m.Why.Words = "the ready check has failed: " + check.Target
	}
	m.Name = cmp.Or(m.Name, n.UUID)
	for _, note := range notes.TurnsOf(n) {
		m.takeTurn(note, note.Instance == n.InstanceUUID, now)
	}
	m.Operation = m.operation()
	if m.Failed {
		if why := machine.FailureOf(n); why != nil && m.Why.Words == "" {
			m.Why = *why
			m.Why.Words = api.FirstLine(why.Words)
		}
		m.Step = cmp.Or(m.Step, states.FailedStep(n))
	}
	return m
}

// operation names the operation that is in progress or held; empty: none.
func (m *Machine) operation() string {
	state := ironic.State(m.State)
	switch {
	case m.Checked:
		return stateChecked
	case states.Held(state), m.InProgress && states.OperationIn(state) != "" && (m.Power == "" || states.InProgress(state)):
		return states.OperationIn(state)
	case m.Power != "":
		return "power"
	}
	return ""
}

// takeTurn adds what the note of a rollout says. same: the machine has the same reservation. A note without an operation in progress may be
// that of a killed run, which says nothing (reference/rollout.md#other-runs).
func (m *Machine) takeTurn(note *notes.Turn, same bool, now time.Time) {
	switch {
	case note.Failed && same && !m.InProgress:
		m.Turn, m.Stops = note.Group+" waits for it", note.Group
		if !m.Failed {
			m.Failed, m.Step = true, stateChecked
			m.Why.Words = "Ironic reports no failure, but the machine was not ready, or its change has failed"
			if note.Service {
				m.Step = "service"
				m.Why.Words = "Ironic has ended a service that failed: the machine may lack its BIOS settings or firmware"
			}
		}
	case note.Rest(now) > 0 && same && !m.InProgress && !m.Failed:
		until := " until " + now.Add(note.Rest(now)).Local().Format(clock)
		m.Turn, m.Pauses = "pause of "+note.Group+until, note.Group+" pauses"+until
	case !m.InProgress || !note.Until.IsZero():
	case note.Canary:
		m.Turn = "canary of " + note.Group
	default:
		m.Turn = "turn of " + note.Group
	}
}
