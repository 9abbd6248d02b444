package observe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/describe"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rest"
)

const aboutHistory = `metal history tells what Ironic has written to the history of machines, and what runs of Terraform have noted on them, the
newest last. Ironic keeps a limited number of events for each machine, mostly of failures.

  metal history rack1-07
  metal history --class gpu --state 'deploy failed' --output json`

// entry is an event or a note of a machine.
type entry struct {
	NodeID   string     `json:"node_id"`
	NodeName string     `json:"node_name"`
	At       *time.Time `json:"at"` // null: not known
	Source   string     `json:"source"`
	Severity string     `json:"severity"`
	Type     string     `json:"type"`
	Text     string     `json:"text"`
}

// newHistory returns the command metal history.
func newHistory(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "history [NODE...]", Short: "Show the history of machines, and notes of runs", Long: aboutHistory}
	return newReport(s, cmd, func(client *ironic.Client, nodes []ironic.Node, output string) error {
		all := []entry{}
		for i := range nodes {
			events, err := historyOf(cmd.Context(), client, nodes[i].UUID)
			if err != nil {
				return unread("the history of node "+ironic.NodeLabel(&nodes[i]), s, err)
			}
			all = append(all, entriesOf(&nodes[i], events)...)
		}
		if output == "json" {
			return cli.WriteJSON(cmd.OutOrStdout(), all)
		}
		for _, e := range all {
			cli.Line(cmd.OutOrStdout(), "%s", e)
		}
		return nil
	})
}

// String returns the entry as a line.
func (e entry) String() string {
	at := "-"
	if e.At != nil {
		at = e.At.Format(time.RFC3339)
	}
	what := strings.TrimSpace(e.Severity + " " + e.Type)
	return fmt.Sprintf("%-20s  %s  %s: %s", at, cmp.Or(e.NodeName, e.NodeID), cmp.Or(what, "note"), rest.OneLine(e.Text))
}

// entriesOf returns the events and notes of a node, the newest last.
func entriesOf(node *ironic.Node, events []ironic.Event) (all []entry) {
	for _, note := range describe.Notes(node) {
		all = append(all, entry{NodeID: node.UUID, NodeName: node.Name, At: note.At, Source: "note", Text: note.Text})
	}
	for _, e := range events {
		at := e.CreatedAt.UTC()
		all = append(all, entry{NodeID: node.UUID, NodeName: node.Name, At: &at, Source: "ironic", Severity: e.Severity, Type: e.Type, Text: e.Event})
	}
	slices.SortStableFunc(all, func(a, b entry) int {
		switch {
		case a.At == nil && b.At == nil:
			return 0
		case a.At == nil:
			return -1
		case b.At == nil:
			return 1
		}
		return a.At.Compare(*b.At)
	})
	return all
}
