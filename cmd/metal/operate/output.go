package operate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rest"
)

// outcome is the result of one machine in JSON.
type outcome struct {
	NodeID         string  `json:"node_id"`
	NodeName       string  `json:"node_name"`
	Outcome        string  `json:"outcome"`
	ProvisionState string  `json:"provision_state"`
	PowerState     string  `json:"power_state"`
	Does           string  `json:"does"`
	Error          string  `json:"error,omitempty"`
	Seconds        float64 `json:"seconds"`
}

// write writes the results: a line each, or a JSON array.
func write(to io.Writer, format string, results []operate.Result) error {
	if format == "json" {
		all := make([]outcome, len(results))
		for i, r := range results {
			all[i] = outcome{r.Node.UUID, r.Node.Name, string(r.Outcome), r.Node.ProvisionState, r.Node.PowerState, r.Plan.Does, errorText(r), r.Took.Round(time.Millisecond).Seconds()}
		}
		encoder := json.NewEncoder(to)
		encoder.SetIndent("", "  ")
		return encoder.Encode(all)
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODE\tSTATE\tPOWER\tRESULT\tDETAILS")
	for _, r := range results {
		details := errorText(r)
		if details == "" && r.Outcome == operate.Planned {
			details = r.Plan.Does
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", rest.OneLine(cmp.Or(r.Node.Name, r.Node.UUID)), r.Node.ProvisionState, cmp.Or(machine.Power(r.Node), "-"), r.Outcome, rest.OneLine(details))
	}
	return table.Flush()
}

// errorText returns what went wrong with a machine; empty: nothing.
func errorText(r operate.Result) string {
	if r.Err == nil {
		return ""
	}
	_, detail := failure.ExplainAction("", r.Node, r.Err)
	return detail
}

// progress tells what happens to the machines, a line each.
type progress struct {
	mu    sync.Mutex
	out   io.Writer
	total int
	ended int
}

// tell tells what a machine does.
func (p *progress) tell(node *ironic.Node, status string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cli.Line(p.out, "%s: %s", label(node), status)
}

// end tells how the operation on a machine has ended.
func (p *progress) end(r operate.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended++
	cli.Line(p.out, "%s: %s (%d of %d)", label(r.Node), r.Outcome, p.ended, p.total)
}
