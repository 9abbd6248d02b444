package conductor

import (
	"slices"
)

// State is a provision state.
type State string

// The provision states of Ironic.
const (
	Enroll       State = "enroll"
	Verifying    State = "verifying"
	Manageable   State = "manageable"
	Available    State = "available"
	Active       State = "active"
	Deploying    State = "deploying"
	DeployWait   State = "wait call-back"
	DeployFail   State = "deploy failed"
	DeployHold   State = "deploy hold"
	Cleaning     State = "cleaning"
	CleanWait    State = "clean wait"
	CleanFail    State = "clean failed"
	CleanHold    State = "clean hold"
	Inspecting   State = "inspecting"
	InspectWait  State = "inspect wait"
	InspectFail  State = "inspect failed"
	Deleting     State = "deleting"
	Errored      State = "error"
	Adopting     State = "adopting"
	AdoptFail    State = "adopt failed"
	Rescuing     State = "rescuing"
	RescueWait   State = "rescue wait"
	Rescued      State = "rescue"
	RescueFail   State = "rescue failed"
	Unrescuing   State = "unrescuing"
	UnrescueFail State = "unrescue failed"
	Servicing    State = "servicing"
	ServiceWait  State = "service wait"
	ServiceFail  State = "service failed"
	ServiceHold  State = "service hold"
)

// Verb is a target of PUT states/provision.
type Verb string

// The verbs of Ironic. deploy and undeploy are newer names of active and deleted.
const (
	VerbManage   Verb = "manage"
	VerbProvide  Verb = "provide"
	VerbInspect  Verb = "inspect"
	VerbActive   Verb = "active"
	VerbDeploy   Verb = "deploy"
	VerbDeleted  Verb = "deleted"
	VerbUndeploy Verb = "undeploy"
	VerbRebuild  Verb = "rebuild"
	VerbClean    Verb = "clean"
	VerbAbort    Verb = "abort"
	VerbAdopt    Verb = "adopt"
	VerbRescue   Verb = "rescue"
	VerbUnrescue Verb = "unrescue"
	VerbService  Verb = "service"
	VerbUnhold   Verb = "unhold"
)

// Transient reports whether Ironic works on a node in this state.
func (s State) Transient() bool {
	switch s {
	case Verifying, Deploying, DeployWait, Cleaning, CleanWait, Inspecting, InspectWait, Deleting, Adopting, Rescuing, RescueWait,
		Unrescuing, Servicing, ServiceWait:
		return true
	case Enroll, Manageable, Available, Active, DeployFail, DeployHold, CleanFail, CleanHold, InspectFail, Errored, AdoptFail,
		Rescued, RescueFail, UnrescueFail, ServiceFail, ServiceHold:
		return false
	}
	return false
}

// waiting reports whether Ironic waits for the ramdisk. It does not lock the node then.
func (s State) waiting() bool {
	return s == DeployWait || s == CleanWait || s == InspectWait || s == RescueWait || s == ServiceWait
}

// WaitsForRamdisk reports whether a ramdisk finds a node in this state; with fast track also one that idles.
func (s State) WaitsForRamdisk(fastTrack bool) bool {
	works := s.Transient() && s != Verifying && s != Deleting && s != Adopting && s != Unrescuing && (s != Servicing || fastTrack)
	return works || fastTrack && (s == Enroll || s == Manageable || s == Available)
}

// PatchableInTransition reports whether Ironic accepts patches of a node in this state that has a target_provision_state.
func (s State) PatchableInTransition() bool {
	switch s {
	case DeployFail, Inspecting, InspectFail, InspectWait, CleanFail, Errored, Verifying, AdoptFail, Rescued, RescueFail, UnrescueFail,
		ServiceFail:
		return true
	case Enroll, Manageable, Available, Active, Deploying, DeployWait, DeployHold, Cleaning, CleanWait, CleanHold, Deleting, Adopting,
		Rescuing, RescueWait, Unrescuing, Servicing, ServiceWait, ServiceHold:
		return false
	}
	return false
}

// Deletable reports whether Ironic deletes a node in this state that is not in maintenance.
func (s State) Deletable() bool {
	return s == Manageable || s == Enroll || s == AdoptFail || s == Available
}

// rule is one line of Ironic's state machine: the verb is allowed in the from states and leads to the to state.
type rule struct {
	verb  Verb
	from  []State
	to    State
	since int // the server's highest API version must be at least this
}

// rules is the state machine in Ironic's documentation.
var rules = []rule{
	{VerbManage, []State{Enroll}, Verifying, 0},
	{VerbManage, []State{Available, CleanFail, InspectFail, AdoptFail}, Manageable, 0},
	{VerbProvide, []State{Manageable}, Cleaning, 0},
	{VerbClean, []State{Manageable}, Cleaning, 0},
	{VerbInspect, []State{Manageable, InspectFail}, Inspecting, 0},
	{VerbAdopt, []State{Manageable, AdoptFail}, Adopting, 0},
	{VerbActive, []State{Available, DeployFail}, Deploying, 0},
	{VerbRebuild, []State{Active, DeployFail, Errored}, Deploying, 0},
	{VerbDeleted, []State{Active, DeployFail, Errored, DeployWait, Rescued, RescueFail, RescueWait, UnrescueFail}, Deleting, 0},
	{VerbDeleted, []State{ServiceFail, ServiceWait}, Deleting, 87},
	{VerbAbort, []State{CleanWait}, CleanFail, 0},
	{VerbAbort, []State{InspectWait}, InspectFail, 0},
	{VerbAbort, []State{RescueWait}, RescueFail, 0},
	{VerbAbort, []State{CleanHold}, CleanFail, 85},
	{VerbAbort, []State{DeployHold}, DeployFail, 85},
	{VerbAbort, []State{ServiceWait, ServiceHold}, ServiceFail, 87},
	{VerbAbort, []State{ServiceFail}, Active, 97},
	{VerbAbort, []State{DeployWait}, DeployFail, 110},
	{VerbRescue, []State{Active, Rescued, RescueFail, UnrescueFail}, Rescuing, 0},
	{VerbRescue, []State{ServiceFail}, Rescuing, 87},
	{VerbUnrescue, []State{Rescued, RescueFail, UnrescueFail}, Unrescuing, 0},
	{VerbService, []State{Active, ServiceFail}, Servicing, 87},
	{VerbUnhold, []State{CleanHold}, Cleaning, 85},
	{VerbUnhold, []State{DeployHold}, Deploying, 85},
	{VerbUnhold, []State{ServiceHold}, Servicing, 87},
}

// Next returns the state that the verb leads to, "" if the verb is not allowed in from.
func Next(from State, v Verb, maxMinor int) State {
	for _, r := range rules {
		if r.verb != v || maxMinor < r.since {
			continue
		}
		for _, f := range r.from {
			if f == from {
				return r.to
			}
		}
	}
	return ""
}

// VerbSince returns the first API version that has the verb, 1 for unknown verbs.
func VerbSince(v Verb) int {
	switch v {
	case VerbManage, VerbProvide:
		return 4
	case VerbInspect:
		return 6
	case VerbAbort:
		return 13
	case VerbClean:
		return 15
	case VerbAdopt:
		return 17
	case VerbRescue, VerbUnrescue:
		return 38
	case VerbDeploy, VerbUndeploy:
		return 73
	case VerbUnhold:
		return 85
	case VerbService:
		return 87
	case VerbActive, VerbDeleted, VerbRebuild:
		return 1
	}
	return 1
}

// Known reports whether Ironic has such a state.
func (s State) Known() bool {
	return s.Transient() || slices.Contains(restingStates, string(s))
}

// restingStates are the states without an operation in progress.
var restingStates = []string{
	string(Enroll), string(Manageable), string(Available), string(Active), string(DeployFail), string(DeployHold), string(CleanFail),
	string(CleanHold), string(InspectFail), string(Errored), string(AdoptFail), string(Rescued), string(RescueFail),
	string(UnrescueFail), string(ServiceFail), string(ServiceHold),
}

// Canonical replaces the newer names of verbs by the older ones.
func (v Verb) Canonical() Verb {
	switch v {
	case VerbDeploy:
		return VerbActive
	case VerbUndeploy:
		return VerbDeleted
	case VerbManage, VerbProvide, VerbInspect, VerbActive, VerbDeleted, VerbRebuild, VerbClean, VerbAbort, VerbAdopt, VerbRescue,
		VerbUnrescue, VerbService, VerbUnhold:
		return v
	}
	return v
}
