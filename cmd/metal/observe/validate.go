package observe

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/reason"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

const aboutValidate = `metal validate asks Ironic whether it could use the hardware interfaces of machines, and says why not. Ironic checks the
settings that each interface needs, such as driver_info; it does not connect to the BMC.

The interfaces power, management, network and storage are needed; so are boot and deploy if an image is chosen for the machine,
which Ironic may ask the image server for. The others are for features that a machine may lack.

  metal validate rack1-07
  metal validate --resource-class gpu --output json`

type validated struct {
	NodeID     string             `json:"node_id"`
	NodeName   string             `json:"node_name"`
	Interfaces map[string]verdict `json:"interfaces"`
}

// verdict is the validation of an interface.
type verdict struct {
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"`
	Reason string `json:"reason,omitempty"` // of the table of reasons; "": none has Ironic's words
	Words  string `json:"words,omitempty"`  // Ironic's, why it is not valid
}

func newValidate(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "validate [NODE...]", Short: "Let Ironic validate the interfaces of machines", Long: aboutValidate}
	return newReport(s, cmd, func(client *ironic.Client, nodes []ironic.Node, output string) (err error) {
		var all []validated
		failed := 0
		for i := range nodes {
			results, err := client.Validate(cmd.Context(), nodes[i].UUID)
			if err != nil {
				return s.Unread("the validation of node "+ironic.NodeLabel(&nodes[i]), err)
			}
			all = append(all, judge(&nodes[i], results))
			if all[i].failed() {
				failed++
			}
		}
		if output == "json" {
			err = rest.WriteJSON(cmd.OutOrStdout(), all)
		} else {
			err = writeValidated(cmd.OutOrStdout(), all)
		}
		if failed > 0 {
			err = errors.Join(err, &cli.Failure{Code: cli.ExitNodesFailed, Err: fmt.Errorf("%s failed validation; see above",
				words.Count(failed, "machine"))})
		}
		return err
	})
}

// judge says of each validated interface of a node whether it is needed.
func judge(node *ironic.Node, results map[string]ironic.Validity) validated {
	needed := []string{"power", "management", "network", "storage"}
	if node.InstanceInfo["image_source"] != nil || node.InstanceInfo["boot_iso"] != nil {
		needed = append(needed, "boot", "deploy")
	}
	v := validated{NodeID: node.UUID, NodeName: node.Name, Interfaces: map[string]verdict{}}
	for name, result := range results {
		i := verdict{OK: result.OK, Needed: slices.Contains(needed, name), Words: result.Reason}
		if why := reason.Of(result.Reason); why != nil && i.Needed && !i.OK { // what is not needed is often left out on purpose
			i.Reason = why.ID
		}
		v.Interfaces[name] = i
	}
	return v
}

func (v *validated) failed() bool {
	for _, i := range v.Interfaces {
		if i.Needed && !i.OK {
			return true
		}
	}
	return false
}

func writeValidated(to io.Writer, all []validated) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODE\tINTERFACE\tOK\tNEEDED\tREASON\tIRONIC SAYS")
	for _, v := range all {
		for _, name := range slices.Sorted(maps.Keys(v.Interfaces)) {
			i := v.Interfaces[name]
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", rest.OneLine(cmp.Or(v.NodeName, v.NodeID)), name, yesNo(i.OK),
				yesNo(i.Needed), cmp.Or(i.Reason, "-"), cmp.Or(rest.OneLine(i.Words), "-"))
		}
	}
	return errors.Join(table.Flush(), writeReasons(to, all))
}

// writeReasons says of each reason in the table what it means, and what to do.
func writeReasons(to io.Writer, all []validated) (err error) {
	for _, known := range reason.All() {
		if slices.ContainsFunc(all, func(v validated) bool {
			return slices.ContainsFunc(slices.Collect(maps.Values(v.Interfaces)), func(i verdict) bool { return i.Reason == known.ID })
		}) {
			_, wrong := fmt.Fprintf(to, "\n%s: %s\n%s\n", known.ID, known.Meaning, known.Next)
			err = errors.Join(err, wrong)
		}
	}
	return err
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
