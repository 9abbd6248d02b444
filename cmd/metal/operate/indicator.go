package operate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
)

const aboutIndicator = `metal indicator switches a light of machines on or off, or lets it blink, so that a technician finds them in the rack. It
works in every state of a machine, and nothing notices it. Without a state, the last argument, it lists what lights there are.

Without --component and --indicator it switches the light of the system, or that of the chassis if the system has none.

  metal indicator rack1-07 blink
  metal indicator rack1-07
  metal indicator rack1-07 on --component disk --indicator RAID.1:Disk.3`

// indicates are the states that an operator names, as Ironic names them.
var indicates = map[string]ironic.IndicatorState{
	"on": ironic.IndicatorOn, "off": ironic.IndicatorOff, "blink": ironic.IndicatorBlinking,
}

func newIndicator(s *cli.Settings) *cobra.Command {
	var choice machine.IndicatorChoice
	var state ironic.IndicatorState
	f := &operationFlags{}
	cmd := &cobra.Command{
		Use: "indicator [NODE...] [on|off|blink]", Short: "Switch lights of machines, or list them", Long: aboutIndicator,
	}
	f.command(s, cmd, operate.BMCTimeout, func(*sharing.Pool) (operate.Operation, error) { return operate.Indicate(choice, state), nil })
	switches := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if last := len(args) - 1; last >= 0 && indicates[args[last]] != "" {
			state = indicates[args[last]]
			return switches(cmd, args[:last])
		}
		which, err := f.selection.Selection(cmd, args)
		if err := errors.Join(err, cli.CheckOutput(f.output)); err != nil {
			return err
		}
		return showEach(cmd, s, which, f.output, "indicators", func(client *ironic.Client, n *ironic.Node) (shownIndicators, bool) {
			shown := shownIndicators{NodeID: n.UUID, NodeName: n.Name, Indicators: []ironic.Indicator{}}
			all, err := client.Indicators(cmd.Context(), n.UUID)
			if err != nil && !machine.NoIndicators(err) {
				_, shown.Error = failure.Explain("", err)
				return shown, false
			}
			shown.Indicators = append(shown.Indicators, all...)
			return shown, true
		}, writeIndicators)
	}
	cmd.Flags().StringVar(&choice.Component, "component", "", "`part` with the light: system, chassis, or disk")
	cmd.Flags().StringVar(&choice.Name, "indicator", "", "`name` of the light, if the part has several")
	return cmd
}

// shownIndicators are the indicators of a machine in JSON; none, if its driver has none.
type shownIndicators struct {
	NodeID     string             `json:"node_id"`
	NodeName   string             `json:"node_name"`
	Indicators []ironic.Indicator `json:"indicators"`
	Error      string             `json:"error,omitempty"`
}

func writeIndicators(to io.Writer, shown []shownIndicators) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODE\tCOMPONENT\tINDICATOR\tSTATES\tDETAILS")
	for _, s := range shown {
		name := rest.OneLine(cmp.Or(s.NodeName, s.NodeID))
		for _, i := range s.Indicators {
			details := map[bool]string{true: "read-only"}[i.ReadOnly]
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", name, rest.OneLine(i.Component), rest.OneLine(i.Name),
				strings.Trim(fmt.Sprint(i.States), "[]"), details)
		}
		if len(s.Indicators) == 0 {
			fmt.Fprintf(table, "%s\t-\t-\t-\t%s\n", name, rest.OneLine(cmp.Or(s.Error, "none that Ironic can switch")))
		}
	}
	return table.Flush()
}
