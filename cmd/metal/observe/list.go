package observe

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/selection"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/show"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

const aboutList = `metal list lists nodes or allocations, sorted by name: a line for each, or with --output json all that is known of them.
Without flags it lists all that you may see. It sends one or two requests, however many there are, and changes nothing.

  metal list nodes
  metal list nodes --resource-class gpu --provision-state active
  metal list nodes --output json | jq -r '.[] | select(.maintenance) | .node_name'
  metal list allocations --name-regex '^web-'`

func newList(s *cli.Settings) *cobra.Command {
	group := cli.NewGroup("list", "List nodes or allocations", aboutList)
	group.AddCommand(newListNodes(s), newListAllocations(s))
	return group
}

func newListNodes(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "nodes [NODE...]", Short: "List nodes"}
	list := func(client *ironic.Client, nodes []ironic.Node, output string) error {
		names, err := selection.Selection{}.Follow().NamesOf(cmd.Context(), client, nodes)
		if err != nil {
			return s.Unread("the allocations", err)
		}
		slices.SortStableFunc(nodes, func(a, b ironic.Node) int { return words.CompareNames(a.Name, b.Name) })
		all := make([]show.Listed, len(nodes))
		for i := range nodes {
			all[i] = show.List(&nodes[i], names[nodes[i].InstanceUUID])
		}
		if output == "json" {
			return rest.WriteJSON(cmd.OutOrStdout(), all)
		}
		return writeNodes(cmd.OutOrStdout(), all)
	}
	return reportWith(s, cmd, (*cli.SelectionFlags).DeclareForList, show.ListedFields, list)
}

// Widths from which the table cuts a class and the name of what has a machine, and the UUID of a reservation.
const (
	widestHolder = 20
	shortUUID    = 9
)

// writeNodes writes a line for each node. Health has a column if Ironic tells it of a node.
func writeNodes(to io.Writer, all []show.Listed) error {
	healths := slices.ContainsFunc(all, func(l show.Listed) bool { return l.Health != "" })
	rows := [][]string{{"NODE", "STATE", "CLASS", "HELD BY"}}
	if healths {
		rows[0] = append(rows[0], "HEALTH")
	}
	rows[0] = append(rows[0], "TROUBLE")
	for i := range all {
		l := &all[i]
		row := []string{
			cmp.Or(l.NodeName, l.NodeID), l.ProvisionState, words.Fit(l.ResourceClass, widestHolder),
			words.Fit(cmp.Or(l.AllocationName, words.Fit(l.InstanceUUID, shortUUID)), widestHolder),
		}
		if healths {
			row = append(row, l.Health)
		}
		rows = append(rows, append(row, l.Trouble()))
	}
	return writeTable(to, rows)
}

// listedAllocation is an allocation in JSON.
type listedAllocation struct {
	AllocationID   string   `json:"allocation_id"`
	AllocationName string   `json:"allocation_name"`
	State          string   `json:"state"`
	NodeID         string   `json:"node_id,omitempty"`
	NodeName       string   `json:"node_name,omitempty"`
	ResourceClass  string   `json:"resource_class"`
	Traits         []string `json:"traits,omitempty"`
	Owner          string   `json:"owner,omitempty"`
	LastError      string   `json:"last_error,omitempty"`
	CreatedAt      string   `json:"created_at"`
}

func newListAllocations(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "allocations [ALLOCATION...]", Short: "List allocations", Args: cobra.ArbitraryArgs}
	var selects cli.SelectionFlags
	selects.DeclareForAllocations(cmd)
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		selected, wrong := selects.Selection(cmd, nil)
		if len(args) > 0 && !selected.IsEmpty() {
			wrong = errors.Join(wrong, errors.New("name allocations, or select them with flags, but not both"))
		}
		selected.Allocations = args
		client, err := open(cmd, s, *output)
		if err := errors.Join(wrong, err); err != nil {
			return err
		}
		found, err := selected.ListAllocations(cmd.Context(), client)
		if err := s.Listed("allocation", len(found), selected, err); err != nil {
			return err
		}
		nodes := map[string]*ironic.Node{}
		if slices.ContainsFunc(found, func(a ironic.Allocation) bool { return a.NodeUUID != "" }) {
			listed, err := client.ListNodeFields(cmd.Context(), ironic.NodeFilter{}, []string{"uuid", "name"})
			if err != nil && !api.IsForbidden(err) {
				return s.Unread("the nodes", err)
			}
			nodes = ironic.ByUUID(listed, func(n *ironic.Node) string { return n.UUID })
		}
		slices.SortStableFunc(found, func(a, b ironic.Allocation) int { return words.CompareNames(a.Name, b.Name) })
		all := make([]listedAllocation, len(found))
		for i, a := range found {
			all[i] = listedAllocation{
				a.UUID, a.Name, string(a.State), a.NodeUUID, "", a.ResourceClass, a.Traits, a.Owner, a.LastError, a.CreatedAt,
			}
			if n := nodes[a.NodeUUID]; n != nil {
				all[i].NodeName = n.Name
			}
		}
		if *output == "json" {
			return rest.WriteJSON(cmd.OutOrStdout(), all)
		}
		return writeAllocations(cmd.OutOrStdout(), all)
	}
	return cmd
}

func writeAllocations(to io.Writer, all []listedAllocation) error {
	rows := [][]string{{"ALLOCATION", "STATE", "NODE", "CLASS", "OWNER", "TROUBLE"}}
	for i := range all {
		a := &all[i]
		rows = append(rows, []string{
			cmp.Or(a.AllocationName, a.AllocationID), a.State, cmp.Or(a.NodeName, a.NodeID), words.Fit(a.ResourceClass, widestHolder),
			words.Fit(a.Owner, widestHolder), api.FirstLine(a.LastError),
		})
	}
	return writeTable(to, rows)
}

// shortestLast is the width of the last column of a table, however wide the others are.
const shortestLast = 20

// writeTable writes rows, the first of which is the heading, in the width of the terminal: it cuts the last column.
func writeTable(to io.Writer, rows [][]string) error {
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i := range row {
			row[i] = cmp.Or(rest.OneLine(row[i]), "-")
		}
		_, _ = io.WriteString(table, strings.Join(row, "\t")+"\n") // text never fails
	}
	_ = table.Flush()
	heading, _, _ := strings.Cut(text.String(), "\n")
	last := utf8.RuneCountInString(heading) - utf8.RuneCountInString(rows[0][len(rows[0])-1])
	var err error
	for line := range strings.Lines(text.String()) {
		_, wrong := io.WriteString(to, words.Fit(strings.TrimRight(line, "\n"), max(cli.Width(to), last+shortestLast))+"\n")
		err = errors.Join(err, wrong)
	}
	return err
}
