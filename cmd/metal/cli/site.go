package cli

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

// logoutTimeout is how long logging out of the appliance may take.
const logoutTimeout = 5 * time.Second

// OpenSite reads the settings and creates the clients for a command that operates machines. It makes no request. As in the provider, the
// guard of shared hardware decides about every operation; without the settings of OneView, it refuses operations on shared hardware. The
// caller calls done at the end.
func (s *Settings) OpenSite(cmd *cobra.Command) (site *machine.Site, pool *sharing.Pool, done func(), err error) {
	if s.usesOneView(cmd) {
		err = s.Complete(cmd.Flags())
	} else {
		err = s.CompleteIronic(cmd.Flags())
	}
	if err != nil {
		return nil, nil, nil, err
	}
	s.TellSilence(cmd)
	return s.Open(cmd, s.Logger(cmd.ErrOrStderr(), false, cmd.Flags().Changed("log-level")))
}

// Open creates the clients after the settings are complete. It makes no request. Without an appliance, pool is nil. The caller calls done
// at the end, which logs out of the appliance.
func (s *Settings) Open(cmd *cobra.Command, log *slog.Logger) (site *machine.Site, pool *sharing.Pool, done func(), err error) {
	agent := "metal/" + s.Version
	s.Ironic.Logger, s.Ironic.UserAgent = log, agent
	var appliance *oneview.Client
	if s.OneView.Endpoint != "" {
		s.OneView.Logger, s.OneView.UserAgent, s.OneView.Called = log, agent, settingName
		if appliance, err = oneview.New(s.OneView); err != nil {
			return nil, nil, nil, fmt.Errorf("OneView: %w", err)
		}
	}
	site, pool = sharing.New(s.Ironic, appliance)
	return site, pool, func() {
		if appliance == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), logoutTimeout)
		defer cancel()
		if err := appliance.Close(ctx); err != nil {
			log.DebugContext(ctx, "could not log out of OneView; the session ends after its idle time-out", "error", err)
		}
	}, nil
}

// usesOneView reports whether the flags or the environment name an appliance.
func (s *Settings) usesOneView(cmd *cobra.Command) bool {
	return cmd.Flags().Changed("oneview-endpoint") || s.Getenv("ONEVIEW_ENDPOINT") != ""
}
