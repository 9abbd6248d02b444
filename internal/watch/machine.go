package watch

import "time"

// Machine is a machine in a list.
type Machine struct {
	ID, Name   string
	State      string    // its provision state
	Power      string    // the power state that it is being changed to; empty: no power change is in progress
	Since      time.Time // when it entered the provision state, or when its ready check began
	Checked    bool      // a run waits until what is deployed on it answers
	InProgress bool      // an operation or a ready check is in progress
	Failed     bool      // the last operation has failed
	Pending    bool      // at rest, with an operation to come
	Reason     string    // Ironic's message about the last failure, in one line
	Turn       string    // what it does in a rollout, for people; empty: nothing
	Stops      string    // the rollout group that waits until the machine is repaired; empty: none
	Pauses     string    // the rollout group that pauses after the machine, and until when, for people; empty: none
	Instance   string    // instance_uuid: its reservation; empty: none

	Class, Group string // its resource class and conductor group; List leaves them empty
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
		return m.State
	case "power on":
		return m.State + ", switching on"
	case "power off", "soft power off":
		return m.State + ", switching off"
	}
	return m.State + ", restarting"
}

// Phase is the state that gives the machine its colour.
func (m Machine) Phase() string {
	if m.Checked {
		return stateChecked
	}
	return m.State
}

// stateChecked is shown as the state of machines whose ready check is in progress.
const stateChecked = "ready check"

// stateDeleted is shown as the state of machines that Ironic does not have any more.
const stateDeleted = "deleted"

// stateLeft is shown as the state of machines that have left the selection, because an allocation of others has them now.
const stateLeft = "reserved by others"

// gone reports whether the machine is not in the list any more.
func (m Machine) gone() bool { return m.State == stateDeleted || m.State == stateLeft }
