package ironic

// Parked reports whether a node in this state can spare its machine for a while: nothing runs on it, nothing may run on it, and
// Ironic is not at work on it.
func Parked(state State) bool {
	switch nextMove(GoalManageable, state, false).kind {
	case done, send, repair:
		return true
	case wait, refuse:
	}
	return false
}
