package oneview

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

// pool has the clients and the reporter of the commands of metal oneview.
type pool struct {
	*sharing.Pool
	*reporter
	ironicName string // in messages
	version    string // of the program
	log        *slog.Logger
	close      func() // logs out of the appliance
}

// open reads the settings and creates the clients. It makes no request. A service logs its changes; other commands write lines.
func open(s *cli.Settings, cmd *cobra.Command, service bool) (*pool, error) {
	if err := s.Complete(cmd.Flags()); err != nil {
		return nil, err
	}
	log := s.Logger(cmd.ErrOrStderr(), service, cmd.Flags().Changed("log-level"))
	if !service {
		s.TellSilence(cmd)
	}
	_, shared, done, err := s.Open(cmd, log)
	if err != nil {
		return nil, err
	}
	p := &pool{
		Pool:     shared,
		reporter: &reporter{stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(), told: time.Now()},
		log:      log, ironicName: s.IronicName(), version: s.Version, close: done,
	}
	if service {
		p.service = log
	}
	return p, nil
}

// requireHardware returns a failure if no node names server hardware in OneView. Most likely the endpoint is wrong, or the operator has
// not prepared the nodes.
func (p *pool) requireHardware(ctx context.Context) error {
	nodes, err := p.Site.Ironic.ListNodeFields(ctx, ironic.NodeFilter{}, []string{"uuid", "name", "driver_info"})
	if err != nil {
		return stopped(ctx, fmt.Errorf("list nodes: %w", err))
	}
	for i := range nodes {
		if binding, _ := sharing.BindingOf(&nodes[i]); binding.HardwareURI != "" {
			return nil
		}
	}
	return &cli.Failure{
		Code: cli.ExitNothing,
		Err: fmt.Errorf("no node names server hardware in OneView: of %s in %s, none has server_hardware_uri in its driver_info. Set it "+
			"in driver_info of metal_host, or by: baremetal node set NODE --driver-info server_hardware_uri=URI",
			words.Count(len(nodes), "node"), p.ironicName),
	}
}

// stopped returns the failure of a whole command.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = errors.New("stopped before the end; run it again to continue")
	}
	return &cli.Failure{Code: cli.ExitError, Err: err}
}

// outcome returns the failure of a command by the counts of its findings. The command has reported the findings already.
func outcome(tally sharing.Tally, dryRun bool) error {
	switch {
	case tally.Failed > 0:
		return &cli.Failure{Code: cli.ExitNodesFailed}
	case dryRun && tally.Changed > 0:
		return &cli.Failure{Code: cli.ExitWouldChange}
	}
	return nil
}
