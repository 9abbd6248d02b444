package operate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/selection"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

const aboutBootDevice = `metal boot-device shows or sets the device from which a machine boots, through its BMC. set makes it boot from the device at its next
start only, or, with --persistent, from now on. Ironic sets the device itself when it deploys or cleans a machine.

  metal boot-device show rack1-07
  metal boot-device set pxe rack1-07 --persistent`

func newBootDevice(s *cli.Settings) *cobra.Command {
	group := cli.NewGroup("boot-device", "Show or set the boot device", aboutBootDevice)
	device, persistent := "", false
	set := newOperation(s, &cobra.Command{Use: "set DEVICE [NODE...]", Short: "Set the boot device"}, operate.BMCTimeout,
		func(*sharing.Pool) (operate.Operation, error) {
			return operate.BootDevice(ironic.Device(device), persistent), nil
		})
	operation := set.RunE
	set.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 || args[0] == "" {
			return errors.New("name the device before the nodes: pxe, disk, cdrom, bios, or another one that the BMC knows")
		}
		device = args[0]
		return operation(cmd, args[1:])
	}
	set.Flags().BoolVar(&persistent, "persistent", false, "from now on, not only at the next start")
	group.AddCommand(newShowBootDevice(s), set)
	return group
}

// shownDevice is the boot device of a machine in JSON.
type shownDevice struct {
	NodeID     string `json:"node_id"`
	NodeName   string `json:"node_name"`
	BootDevice string `json:"boot_device"`
	Persistent *bool  `json:"persistent"`
	Error      string `json:"error,omitempty"`
}

func newShowBootDevice(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "show [NODE...]", Short: "Show the boot device, as the BMC tells it", Args: cobra.ArbitraryArgs}
	var selected cli.SelectionFlags
	flags := cmd.Flags()
	flags.SortFlags = false
	cli.Section(flags, "Flags that select machines, if no NODE is named", func() { selected.DeclareForOnce(cmd) })
	output := flags.String("output", "table", "`format` on standard output: table or json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		which, err := selected.Selection(cmd, args)
		if err := errors.Join(err, cli.CheckOutput(*output)); err != nil {
			return err
		}
		return showEach(cmd, s, which, *output, "boot device", func(client *ironic.Client, n *ironic.Node) (shownDevice, bool) {
			shown := shownDevice{NodeID: n.UUID, NodeName: n.Name}
			device, err := client.BootDevice(cmd.Context(), n.UUID)
			if err != nil {
				_, shown.Error = failure.Explain("", err)
				return shown, false
			}
			shown.BootDevice, shown.Persistent = string(device.Device), device.Persistent
			return shown, true
		}, writeDevices)
	}
	return cmd
}

// showEach reads something of each selected machine, what, and writes it: a table, or a JSON array. read reports whether it could.
func showEach[T any](
	cmd *cobra.Command, s *cli.Settings, which selection.Selection, format, what string,
	read func(*ironic.Client, *ironic.Node) (T, bool), table func(io.Writer, []T) error,
) error {
	site, _, done, err := s.OpenSite(cmd)
	if err != nil {
		return err
	}
	defer done()
	machines, err := s.Machines(cmd.Context(), site.Ironic, which, nil)
	if err != nil {
		return err
	}
	all, failed := make([]T, len(machines)), 0
	for i := range machines {
		ok := false
		if all[i], ok = read(site.Ironic, &machines[i]); !ok {
			failed++
		}
	}
	if format == "json" {
		err = rest.WriteJSON(cmd.OutOrStdout(), all)
	} else {
		err = table(cmd.OutOrStdout(), all)
	}
	if err != nil || failed == 0 {
		return err
	}
	return &cli.Failure{Code: cli.ExitNodesFailed, Err: fmt.Errorf("the %s of %s could not be read; see above", what,
		words.Count(failed, "machine"))}
}

func writeDevices(to io.Writer, shown []shownDevice) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODE\tBOOT DEVICE\tPERSISTENT\tDETAILS")
	for _, d := range shown {
		persistent := "-"
		if d.Persistent != nil {
			persistent = map[bool]string{true: "yes", false: "no"}[*d.Persistent]
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", rest.OneLine(cmp.Or(d.NodeName, d.NodeID)), rest.OneLine(cmp.Or(d.BootDevice, "-")),
			persistent, rest.OneLine(d.Error))
	}
	return table.Flush()
}
