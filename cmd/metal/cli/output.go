package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// CheckOutput returns the error in the value of --output.
func CheckOutput(format string) error {
	if format != "table" && format != "json" {
		return fmt.Errorf("--output is %q; it must be table or json", format)
	}
	return nil
}

// LogRequests lets the client of Ironic log where a command logs, and tell Ironic the name and version of this program.
func (s *Settings) LogRequests(cmd *cobra.Command) {
	s.Ironic.Logger, s.Ironic.UserAgent = s.Logger(cmd.ErrOrStderr(), false, cmd.Flags().Changed("log-level")), "metal/"+s.Version
	s.TellSilence(cmd)
}

// TellSilence lets a command that writes no log say on standard error that Ironic does not answer.
func (s *Settings) TellSilence(cmd *cobra.Command) {
	if !cmd.Flags().Changed("log-level") {
		s.Ironic.Silent = func(text string) { Line(cmd.ErrOrStderr(), "%s", text) }
	}
}
