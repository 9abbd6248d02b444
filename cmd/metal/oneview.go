package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/sharing"
)

// logoutTimeout is how long logging out of the appliance may take.
const logoutTimeout = 5 * time.Second

const aboutOneView = `metal oneview manages the servers that OpenStack Ironic and HPE OneView share.

A node shares its server hardware if its driver_info has server_hardware_uri and dynamic_allocation = true. If
dynamic_allocation is not set, applied_server_profile_uri must be set. The server profile on the hardware says who uses
it:

  free       the hardware has no profile
  ironic     its profile is the one in applied_server_profile_uri of the node's driver_info
  oneview    it has another profile; the commands change neither this profile nor the server`

// newOneView returns the command metal oneview.
func newOneView(s *settings) *cobra.Command {
	group := newGroup("oneview", "Share servers between Ironic and HPE OneView", aboutOneView)
	group.AddCommand(newStatus(s), newSync(s), newMigrate(s))
	help := newHelp(group)
	help.Hidden = true
	group.AddCommand(help)
	return group
}

// pool has the clients and the reporter of the commands of metal oneview.
type pool struct {
	*sharing.Pool
	*reporter
	ironicName string // in messages
	log        *slog.Logger
}

// open reads the settings and creates the clients. It makes no request. A service logs its changes; other commands write lines.
func (s *settings) open(cmd *cobra.Command, service bool) (*pool, error) {
	if err := s.complete(cmd.Flags()); err != nil {
		return nil, err
	}
	log := s.logger(cmd.ErrOrStderr(), service, cmd.Flags().Changed("log-level"))
	agent := "metal/" + version
	s.ironic.Logger, s.ironic.UserAgent = log, agent
	s.oneview.Logger, s.oneview.UserAgent, s.oneview.Called = log, agent, settingName
	client, err := oneview.New(s.oneview)
	if err != nil {
		return nil, fmt.Errorf("OneView: %w", err)
	}
	_, shared := sharing.New(s.ironic, client)
	p := &pool{
		Pool:     shared,
		reporter: &reporter{stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(), told: time.Now()},
		log:      log, ironicName: s.ironicName(),
	}
	if service {
		p.service = log
	}
	return p, nil
}

// ironicName names Ironic in messages.
func (s *settings) ironicName() string {
	switch {
	case s.ironic.Endpoint != "":
		return "Ironic at " + s.ironic.Endpoint
	case s.ironic.Cloud != "" || s.getenv("OS_CLOUD") != "":
		return "Ironic of cloud " + cmp.Or(s.ironic.Cloud, s.getenv("OS_CLOUD"))
	}
	return "Ironic"
}

// close logs out of the appliance, also after ctx is done.
func (p *pool) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), logoutTimeout)
	defer cancel()
	if err := p.OneView.Close(ctx); err != nil {
		p.log.DebugContext(ctx, "could not log out of OneView; the session ends after its idle time-out", "error", err)
	}
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
	return &failure{exitNoHardware, fmt.Errorf("no node names server hardware in OneView: of %s in %s, none has server_hardware_uri in its driver_info. Set it in driver_info of metal_host, or by: baremetal node set NODE --driver-info server_hardware_uri=URI",
		count(len(nodes), "node"), p.ironicName)}
}

// stopped returns the failure of a whole command.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = errors.New("stopped before the end; run it again to continue")
	}
	return &failure{exitError, err}
}

// outcome returns the failure of a command by the counts of its findings. The command has reported the findings already.
func outcome(tally sharing.Tally, dryRun bool) error {
	switch {
	case tally.Failed > 0:
		return &failure{code: exitNodesFailed}
	case dryRun && tally.Changed > 0:
		return &failure{code: exitWouldChange}
	}
	return nil
}

// count returns a number with its noun, such as "1 node" or "2 nodes".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
