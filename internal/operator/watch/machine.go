package watch

import (
	"cmp"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Machine is a machine in a list.
type Machine struct {
	ID, Name   string
	State      string          // its provision state
	Power      string          // the power state that it is being changed to; empty: no power change is in progress
	Since      time.Time       // when it entered the provision state, or when its ready check began or failed
	Checked    bool            // a run waits until what is deployed on it answers
	NotReady   bool            // the last ready check of what is deployed on it has failed
	InProgress bool            // an operation or a ready check is in progress
	Failed     bool            // the last operation has failed
	Pending    bool            // at rest, with an operation to come
	Why        machine.Failure // of the last failure; its words are in one line
	Turn       string          // what it does in a rollout, for people; empty: nothing
	Stops      string          // the rollout group that waits until the machine is repaired; empty: none
	Pauses     string          // the rollout group that pauses after the machine, and until when, for people; empty: none
	Instance   string          // instance_uuid: its reservation; empty: none
	Allocation string          // the name of the allocation that has reserved it; empty: none, or not known

	Class, Group string // its resource class and conductor group; List leaves them empty
	Health       string // as its BMC reports it; empty: Ironic does not tell
	Operation    string // in progress or held; empty: none
	Step         string // that has failed, or the operation or the fault
}

// doing is what the machine does, for people: its state, the power change in progress, and its part in a rollout.
func (m Machine) doing() string {
	if m.Turn != "" {
		return m.working() + ", " + m.Turn
	}
	return m.working()
}

// working is doing without the rollout.
func (m Machine) working() string {
	switch m.Power {
	case "":
		if m.Checked {
			return m.State + ", " + stateChecked
		}
		if m.NotReady {
			return m.State + ", not ready"
		}
		return m.State
	case "power on":
		return m.State + ", switching on"
	case "power off", "soft power off":
		return m.State + ", switching off"
	}
	return m.State + ", restarting"
}

// Phase is the provision state, or that a ready check is in progress.
func (m Machine) Phase() string {
	if m.Checked {
		return stateChecked
	}
	return m.State
}

// looks is what gives the machine its colour: its phase, or a change of power while no other operation is in progress.
func (m Machine) looks() string {
	if m.Power != "" && !states.InProgress(ironic.State(m.State)) {
		return statePower
	}
	return m.Phase()
}

// label is the name of the machine for people, with that of its allocation, or of the one that had it before.
func (m Machine) label(before string) string { return labelled(m.Name, cmp.Or(m.Allocation, before)) }

// stateChecked is shown as the state of machines whose ready check is in progress.
const stateChecked = "ready check"

// statePower is what a machine looks like while its power changes.
const statePower = "power change"

// stateDeleted is shown as the state of machines that Ironic does not have any more.
const stateDeleted = "deleted"

// stateLeft is shown as the state of machines that have left the selection, because an allocation of others has them now.
const stateLeft = "reserved by others"

func (m Machine) gone() bool { return m.State == stateDeleted || m.State == stateLeft }
