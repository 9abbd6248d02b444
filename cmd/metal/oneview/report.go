package oneview

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

// progressInterval is the shortest time between two reports of progress.
const progressInterval = 10 * time.Second

// reporter reports findings of nodes: a service writes them to its log, other commands to standard output (changes) and standard
// error (all others).
type reporter struct {
	stdout, stderr io.Writer
	service        *slog.Logger // nil: the command is not a service
	told           time.Time    // time of the last report of progress
}

func (r *reporter) report(f sharing.Finding) {
	if r.service != nil {
		logFinding(r.service, f)
		return
	}
	switch f.Outcome {
	case sharing.Changed:
		cli.Line(r.stdout, "%s: %s", f.Node(), f.Text)
	case sharing.Unchanged, sharing.Skipped, sharing.Warned:
		cli.Line(r.stderr, "%s: %s: %s", f.Outcome, f.Node(), f.Text)
	case sharing.Failed:
		cli.Line(r.stderr, "error: %s: could not %s: %v", f.Node(), f.Text, f.Err)
	}
}

func logFinding(log *slog.Logger, f sharing.Finding) {
	node := []any{"node", f.NodeID}
	if f.NodeName != "" {
		node = append(node, "name", f.NodeName)
	}
	switch f.Outcome {
	case sharing.Changed:
		log.Info(f.Text, node...)
	case sharing.Unchanged, sharing.Skipped:
		log.Info(string(f.Outcome)+": "+f.Text, node...)
	case sharing.Warned:
		log.Warn(f.Text, node...)
	case sharing.Failed:
		log.Error("could not "+f.Text, append(node, "error", f.Err)...)
	}
}

// progress reports how many nodes are done, at most once in progressInterval.
func (r *reporter) progress(doing string, done, total int) {
	now := time.Now()
	if now.Sub(r.told) < progressInterval || done >= total {
		return
	}
	r.told = now
	if r.service != nil {
		r.service.Info(doing, "done", done, "of", total)
		return
	}
	fmt.Fprintf(r.stderr, "%s: %d of %d\n", doing, done, total)
}

// tallyText returns the number of nodes with each outcome as text.
func tallyText(tally sharing.Tally, dryRun bool) string {
	changed := "changed"
	if dryRun {
		changed = "would be changed"
	}
	return fmt.Sprintf("%d %s, %s, %d skipped, %d failed", tally.Changed, changed, words.Count(tally.Warned, "warning"),
		tally.Skipped, tally.Failed)
}
