package framework

// Values of power_state.
const (
	PowerOn  = "on"
	PowerOff = "off"
)
