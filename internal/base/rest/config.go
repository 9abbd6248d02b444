package rest

import "fmt"

// UnknownConfigError says that the provider's configuration depends on a value that Terraform knows only after apply.
type UnknownConfigError struct{ Attribute string }

// Error names the attribute.
func (e *UnknownConfigError) Error() string {
	return fmt.Sprintf("the provider's configuration is not known yet: %s depends on something that does not exist yet", e.Attribute)
}

// Advice says what to do.
func (e *UnknownConfigError) Advice() string {
	return "Apply what it depends on first, with -target, or set the value directly."
}
