package operate

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
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
	Note           string  `json:"note,omitempty"`
	Seconds        float64 `json:"seconds"`
}

// write writes the results: a line each, or a JSON array.
func write(to io.Writer, format string, results []operate.Result) error {
	if format == "json" {
		all := make([]outcome, len(results))
		for i, r := range results {
			all[i] = outcome{
				r.Node.UUID, r.Node.Name, string(r.Outcome), r.Node.ProvisionState, r.Node.PowerState, r.Plan.Does,
				errorText(r), r.Note, r.Took.Round(time.Millisecond).Seconds(),
			}
		}
		return rest.WriteJSON(to, all)
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODE\tSTATE\tPOWER\tRESULT\tDETAILS")
	for _, r := range results {
		details := cmp.Or(errorText(r), r.Note)
		if details == "" && r.Outcome == operate.Planned {
			details = r.Plan.Does
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", rest.OneLine(cmp.Or(r.Node.Name, r.Node.UUID)), r.Node.ProvisionState,
			cmp.Or(machine.Power(r.Node), "-"), r.Outcome, rest.OneLine(details))
	}
	return table.Flush()
}

// errorText returns what went wrong with a machine; empty: nothing.
func errorText(r operate.Result) string {
	switch {
	case r.Err == nil:
		return ""
	case r.Outcome == operate.Interrupted && r.Plan == operate.Plan{}: // it was not decided again
		return "The command was stopped before it sent anything."
	}
	_, detail := failure.ExplainAction("", r.Node, r.Err, r.Left)
	return detail
}

// progress tells what happens to the machines: in one line that is redrawn if standard error is a terminal, otherwise in a line each.
type progress struct {
	mu      sync.Mutex
	out     io.Writer
	line    io.Writer // the terminal; nil: there is none
	width   func() int
	command string

	total, ended, failed int
	drawn                bool
}

func newProgress(cmd *cobra.Command, command string, total int) *progress {
	p := &progress{out: cmd.ErrOrStderr(), command: command, total: total}
	to := p.out
	if printer, ok := to.(*rest.Printer); ok {
		to = printer.To // which leaves the control sequences; the texts of others are made printable here
	}
	if width, _ := cli.TerminalSize(to); width > 0 {
		p.line, p.width = to, func() int { width, _ := cli.TerminalSize(to); return width }
	}
	return p
}

func (p *progress) tell(_ *ironic.Node, status string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.line == nil {
		cli.Line(p.out, "%s", status)
		return
	}
	p.draw(status)
}

// end tells how the operation on a machine has ended.
func (p *progress) end(r operate.Result) { p.ends("node "+ironic.NodeLabel(r.Node), r.Outcome) }

// ends tells how something has ended. A terminal keeps a line for each that has not succeeded.
func (p *progress) ends(what string, outcome operate.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended++
	text := fmt.Sprintf("%s: %s (%d of %d)", what, outcome, p.ended, p.total)
	if outcome != operate.Done && outcome != operate.Unchanged {
		p.failed++
	} else if p.line != nil {
		p.draw(text)
		return
	}
	p.wipe()
	cli.Line(p.out, "%s", text)
}

// uuidInBrackets is the UUID of a node behind its name.
var uuidInBrackets = regexp.MustCompile(` \([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\)`)

// draw redraws the line of the terminal. It leaves out the UUID of a node with a name, so that its state fits into the line.
func (p *progress) draw(last string) {
	last = uuidInBrackets.ReplaceAllString(last, "")
	text := rest.OneLine(fmt.Sprintf("metal %s: %d of %d ended, %d not done; %s", p.command, p.ended, p.total, p.failed, last))
	fmt.Fprintf(p.line, "\r%.*s\x1b[K", max(0, p.width()-1), text)
	p.drawn = true
}

// wipe empties the line of the terminal.
func (p *progress) wipe() {
	if p.drawn {
		fmt.Fprint(p.line, "\r\x1b[K")
		p.drawn = false
	}
}

func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
}
