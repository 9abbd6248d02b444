package oneview

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

const aboutStatus = `metal oneview status shows who uses the server hardware of every node that has server_hardware_uri in its driver_info:

  OWNER    free, ironic or oneview; "unknown" if the command cannot read the hardware; "-" if the node is pre-allocated,
           because the rules do not apply to it
  PROFILE  the server profile on the hardware; "being removed" follows it while OneView removes it: OWNER and NEXT
           change when that has ended
  NEXT     the action of the next pass of sync: take-out (of service), return (to service), report (the deployment has
           failed and a OneView user has the server: do not undeploy the node before the user frees it), or leave, also if
           sync cannot change the node
  STATE    the node's provision state, and the reason of its maintenance

With --output json the command writes an array of objects, which also have the URIs, the power state and the mode of allocation.`

func newStatus(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "status", Short: "Show who uses which server", Long: aboutStatus, Args: cli.OnlyFlags}
	output := cmd.Flags().String("output", "table", "`format` on standard output: table or json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := cli.CheckOutput(*output); err != nil {
			return err
		}
		p, err := open(s, cmd, false)
		if err != nil {
			return err
		}
		ctx := cmd.Context()
		defer p.close()
		all, err := p.Status(ctx)
		if err == nil {
			err = writeStatus(p.stdout, all, *output)
		}
		if err != nil {
			return stopped(ctx, fmt.Errorf("could not show the status: %w", err))
		}
		if len(all) == 0 {
			return p.requireHardware(ctx)
		}
		return p.reportUnread(all)
	}
	return cmd
}

// reportUnread reports the nodes whose hardware could not be read.
func (p *pool) reportUnread(all []sharing.Standing) error {
	var end error
	for _, one := range all {
		if one.Error != "" {
			cli.Line(p.stderr, "error: could not read the hardware of %s: %s", cmp.Or(one.NodeName, one.NodeID), one.Error)
			end = &cli.Failure{Code: cli.ExitNodesFailed}
		}
	}
	return end
}

// writeStatus writes JSON or a table. Without nodes it writes no table.
func writeStatus(to io.Writer, all []sharing.Standing, output string) error {
	switch {
	case output == "json":
		return rest.WriteJSON(to, all)
	case len(all) == 0:
		return nil
	}
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tHARDWARE\tOWNER\tPROFILE\tNEXT\tSTATE")
	for _, one := range all {
		owner := string(one.Owner)
		if one.Mode != sharing.Dynamic && one.Error == "" {
			owner = "-"
		}
		profile := cmp.Or(one.ProfileName, one.ProfileURI, "-")
		if one.Removing {
			profile += ", being removed"
		}
		state := one.ProvisionState
		if one.Maintenance {
			state += ", maintenance: " + cmp.Or(one.MaintenanceReason, "no reason given")
		}
		cells := []string{
			cmp.Or(one.NodeName, one.NodeID), cmp.Or(one.HardwareName, one.HardwareURI), owner, profile, string(one.Next), state,
		}
		for i := range cells {
			cells[i] = rest.OneLine(cells[i])
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}
