package oneview

// IsNotFound reports whether the appliance answered that the resource does not exist.
func IsNotFound(err error) bool { return false }

// InUseError says that hardware is used by OneView: a profile is applied to it that Ironic does not know.
type InUseError struct {
	Node     string // name and UUID; empty: none
	Hardware *Hardware
	Profile  *Profile // nil: it could not be read
}

// Error names the hardware and the profile.
func (e *InUseError) Error() string { return "" }
