// Package core has what Terraform's core decides without a provider: in which order it does the steps of a run, what it proposes as the
// next state of an object, and which plans and results it rejects.
package core

import (
	"errors"
	"fmt"
)

// Version is the version of Terraform that internal/test/terraformtest behaves as.
const Version = "1.11.4"

// ErrUnsupported says that a command, or the configuration, needs a real CLI. Nothing has happened then.
var ErrUnsupported = errors.New("needs a real CLI")

// Unsupported returns ErrUnsupported with a reason.
func Unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}
