package provision

// The golden file shows these errors without a machine that fails.
var (
	FailedOn      = failedOn
	ImageChanged  = imageChanged
	InvalidNode   = invalidNode
	Late          = late
	RefusedFor    = refusedFor
	UnknownDriver = unknownDriver
)

// Err returns the error.
func (e *NoMatch) Err() error { return e.err() }
