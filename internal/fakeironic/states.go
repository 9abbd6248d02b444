package fakeironic

import "slices"

// state is a provision state.
type state string

// The provision states of Ironic.
const (
	enroll       state = "enroll"
	verifying    state = "verifying"
	manageable   state = "manageable"
	available    state = "available"
	active       state = "active"
	deploying    state = "deploying"
	deployWait   state = "wait call-back"
	deployFail   state = "deploy failed"
	deployHold   state = "deploy hold"
	cleaning     state = "cleaning"
	cleanWait    state = "clean wait"
	cleanFail    state = "clean failed"
	cleanHold    state = "clean hold"
	inspecting   state = "inspecting"
	inspectWait  state = "inspect wait"
	inspectFail  state = "inspect failed"
	deleting     state = "deleting"
	errored      state = "error"
	adopting     state = "adopting"
	adoptFail    state = "adopt failed"
	rescuing     state = "rescuing"
	rescueWait   state = "rescue wait"
	rescued      state = "rescue"
	rescueFail   state = "rescue failed"
	unrescuing   state = "unrescuing"
	unrescueFail state = "unrescue failed"
	servicing    state = "servicing"
	serviceWait  state = "service wait"
	serviceFail  state = "service failed"
	serviceHold  state = "service hold"
)

// verb is a target of PUT states/provision.
type verb string

// The verbs of Ironic. deploy and undeploy are newer names of active and deleted.
const (
	verbManage   verb = "manage"
	verbProvide  verb = "provide"
	verbInspect  verb = "inspect"
	verbActive   verb = "active"
	verbDeploy   verb = "deploy"
	verbDeleted  verb = "deleted"
	verbUndeploy verb = "undeploy"
	verbRebuild  verb = "rebuild"
	verbClean    verb = "clean"
	verbAbort    verb = "abort"
	verbAdopt    verb = "adopt"
	verbRescue   verb = "rescue"
	verbUnrescue verb = "unrescue"
	verbService  verb = "service"
	verbUnhold   verb = "unhold"
)

// transient reports whether Ironic works on a node in this state.
func (s state) transient() bool {
	switch s {
	case verifying, deploying, deployWait, cleaning, cleanWait, inspecting, inspectWait, deleting, adopting, rescuing, rescueWait,
		unrescuing, servicing, serviceWait:
		return true
	case enroll, manageable, available, active, deployFail, deployHold, cleanFail, cleanHold, inspectFail, errored, adoptFail,
		rescued, rescueFail, unrescueFail, serviceFail, serviceHold:
		return false
	}
	return false
}

// waiting reports whether Ironic waits for the ramdisk. It does not lock the node then.
func (s state) waiting() bool {
	return s == deployWait || s == cleanWait || s == inspectWait || s == rescueWait || s == serviceWait
}

// patchableInTransition reports whether Ironic accepts patches of a node in this state that has a target_provision_state.
func (s state) patchableInTransition() bool {
	switch s {
	case deployFail, inspecting, inspectFail, inspectWait, cleanFail, errored, verifying, adoptFail, rescued, rescueFail, unrescueFail,
		serviceFail:
		return true
	case enroll, manageable, available, active, deploying, deployWait, deployHold, cleaning, cleanWait, cleanHold, deleting, adopting,
		rescuing, rescueWait, unrescuing, servicing, serviceWait, serviceHold:
		return false
	}
	return false
}

// deletable reports whether Ironic deletes a node in this state that is not in maintenance.
func (s state) deletable() bool {
	return s == manageable || s == enroll || s == adoptFail || s == available
}

// rule is one line of Ironic's state machine: the verb is allowed in the from states and leads to the to state.
type rule struct {
	verb  verb
	from  []state
	to    state
	since int // the server's highest API version must be at least this
}

// rules is the state machine in Ironic's documentation.
var rules = []rule{
	{verbManage, []state{enroll}, verifying, 0},
	{verbManage, []state{available, cleanFail, inspectFail, adoptFail}, manageable, 0},
	{verbProvide, []state{manageable}, cleaning, 0},
	{verbClean, []state{manageable}, cleaning, 0},
	{verbInspect, []state{manageable, inspectFail}, inspecting, 0},
	{verbAdopt, []state{manageable, adoptFail}, adopting, 0},
	{verbActive, []state{available, deployFail}, deploying, 0},
	{verbRebuild, []state{active, deployFail, errored}, deploying, 0},
	{verbDeleted, []state{active, deployFail, errored, deployWait, rescued, rescueFail, rescueWait, unrescueFail}, deleting, 0},
	{verbDeleted, []state{serviceFail, serviceWait}, deleting, 87},
	{verbAbort, []state{cleanWait}, cleanFail, 0},
	{verbAbort, []state{inspectWait}, inspectFail, 0},
	{verbAbort, []state{rescueWait}, rescueFail, 0},
	{verbAbort, []state{cleanHold}, cleanFail, 85},
	{verbAbort, []state{deployHold}, deployFail, 85},
	{verbAbort, []state{serviceWait, serviceHold}, serviceFail, 87},
	{verbAbort, []state{serviceFail}, active, 97},
	{verbAbort, []state{deployWait}, deployFail, 110},
	{verbRescue, []state{active, rescued, rescueFail, unrescueFail}, rescuing, 0},
	{verbRescue, []state{serviceFail}, rescuing, 87},
	{verbUnrescue, []state{rescued, rescueFail, unrescueFail}, unrescuing, 0},
	{verbService, []state{active, serviceFail}, servicing, 87},
	{verbUnhold, []state{cleanHold}, cleaning, 85},
	{verbUnhold, []state{deployHold}, deploying, 85},
	{verbUnhold, []state{serviceHold}, servicing, 87},
}

// next returns the state that the verb leads to, "" if the verb is not allowed in from.
func next(from state, v verb, maxMinor int) state {
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

// verbSince returns the first API version that has the verb, 1 for unknown verbs.
func verbSince(v verb) int {
	switch v {
	case verbManage, verbProvide:
		return 4
	case verbInspect:
		return 6
	case verbAbort:
		return 13
	case verbClean:
		return 15
	case verbAdopt:
		return 17
	case verbRescue, verbUnrescue:
		return 38
	case verbDeploy, verbUndeploy:
		return 73
	case verbUnhold:
		return 85
	case verbService:
		return 87
	case verbActive, verbDeleted, verbRebuild:
		return 1
	}
	return 1
}

// known reports whether Ironic has such a state.
func (s state) known() bool {
	return s.transient() || slices.Contains(restingStates, string(s))
}

// restingStates are the states without an operation in progress.
var restingStates = []string{
	string(enroll), string(manageable), string(available), string(active), string(deployFail), string(deployHold), string(cleanFail),
	string(cleanHold), string(inspectFail), string(errored), string(adoptFail), string(rescued), string(rescueFail),
	string(unrescueFail), string(serviceFail), string(serviceHold),
}

// canonical replaces the newer names of verbs by the older ones.
func (v verb) canonical() verb {
	switch v {
	case verbDeploy:
		return verbActive
	case verbUndeploy:
		return verbDeleted
	case verbManage, verbProvide, verbInspect, verbActive, verbDeleted, verbRebuild, verbClean, verbAbort, verbAdopt, verbRescue,
		verbUnrescue, verbService, verbUnhold:
		return v
	}
	return v
}
