package observe

import (
	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/timeline"
)

const aboutHistory = `metal history tells what Ironic has written to the history of machines, and what the provider and metal have noted on them, the
oldest first. Ironic keeps a limited number of events for each machine. Ironic 21.4 records failures only; newer ones also
record the steps of cleanings and deployments. For one machine, metal timeline tells more.

  metal history rack1-07
  metal history --resource-class gpu --provision-state 'deploy failed' --output json`

func newHistory(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "history [NODE...]", Short: "Show the history of machines, and notes on them", Long: aboutHistory}
	return newReport(s, cmd, func(client *ironic.Client, nodes []ironic.Node, output string) error {
		facts, err := timeline.ReadHistory(cmd.Context(), client, nodes)
		if err != nil {
			return s.Unread("the history", err)
		}
		life := timeline.History(facts)
		if output == "json" {
			return life.JSON(cmd.OutOrStdout())
		}
		return life.Text(cmd.OutOrStdout())
	})
}
