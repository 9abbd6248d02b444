// Package cli is what all commands of metal share: settings, flags, help, exit codes, lines and questions.
package cli

import (
	"errors"
	"fmt"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
)

// Exit codes.
const (
	ExitDone        = 0
	ExitError       = 1
	ExitUsage       = 2
	ExitFound       = 2 // of lint, and of lock --check
	ExitNodesFailed = 3
	ExitWouldChange = 4
	ExitNothing     = 5
	ExitGoalMissed  = 6
	ExitNoConsole   = 7
	ExitUnconfirmed = 8
)

// ExitCodes describes the exit codes in the help of every command.
const ExitCodes = `
  0  success, or the service or watch was stopped
  1  failure of the command: Ironic or the appliance did not answer or refused the login, or the command was stopped. For
     forecast: it names what it cannot know. For lint: it could not read a file
  2  wrong flags or settings; the command made no request. For lint: it has found keys. For lock --check: machines differ
  3  some nodes failed or were refused, or migrate skipped some; a line for each says why. The command has handled all
     others. With --dry-run: some would be refused, and no other would change. For watch: machines of the selection are in a
     failed state. For doctor: there is a problem
  4  --dry-run would change something
  5  nothing to work on: Ironic has no such machine. For oneview: no node has server_hardware_uri in its driver_info
  6  watch has ended because of --until-idle, and not all machines have reached --goal
  7  console has nothing to show: the node has no console, it is not enabled, Ironic tells no address of it, or reading the
     address would end the session of another user
  8  a confirmation is missing, or the command was stopped at a question: it has changed nothing
`

// Failure ends a command with an exit code. An error of another type means that the command line is wrong.
type Failure struct {
	Code int
	Err  error // message for standard error; nil: the command has written it already
}

// Unread ends a command that could not read something, before it has begun.
func (s *Settings) Unread(what string, err error) error {
	if api.IsInterrupted(err) {
		return &Failure{Code: ExitError, Err: errors.New("stopped before it began. Nothing was done")}
	}
	_, detail := failure.Explain("", err)
	return &Failure{Code: ExitError, Err: fmt.Errorf("could not read %s of %s: %s", what, s.IronicName(), detail)}
}

// Error returns the message; empty if the command has written it already.
func (f *Failure) Error() string {
	if f.Err == nil {
		return ""
	}
	return f.Err.Error()
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }
