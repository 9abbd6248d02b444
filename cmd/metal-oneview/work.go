package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// progressEvery is how often long work says how far it is.
const progressEvery = 10 * time.Second

// work is a command at work: both sides, and where to tell about it.
type work struct {
	*command
	pool      *oneview.Pool
	log       *slog.Logger
	closePool func(context.Context)
	lines     bool      // changes are lines on standard output; else they are in the log
	told      time.Time // when progress was last told
}

func newWork(c *command, pool *oneview.Pool, log *slog.Logger, closePool func(context.Context)) *work {
	return &work{command: c, pool: pool, log: log, closePool: closePool, told: time.Now()}
}

// report tells of one node: what was done, or would be, on standard output or in the log, all else in the log.
func (w *work) report(f oneview.Finding) {
	node := []any{"node", f.NodeID}
	if f.NodeName != "" {
		node = append(node, "name", f.NodeName)
	}
	switch f.Outcome {
	case oneview.Changed:
		if w.lines {
			fmt.Fprintf(w.stdout, "%s: %s\n", f.Node(), f.Text)
			return
		}
		w.log.Info(f.Text, node...)
	case oneview.Unchanged, oneview.Skipped:
		w.log.Info(string(f.Outcome)+": "+f.Text, node...)
	case oneview.Warned:
		w.log.Warn(f.Text, node...)
	case oneview.Failed:
		w.log.Error("failed to "+f.Text, append(node, "error", f.Err)...)
	}
}

// changedKey is how the log calls what was changed, or would be.
func changedKey(dryRun bool) string {
	if dryRun {
		return "would_change"
	}
	return "changed"
}

// progress tells how far long work is, now and then.
func (w *work) progress(doing string, done, total int) {
	if now := time.Now(); now.Sub(w.told) >= progressEvery && done < total {
		w.told = now
		w.log.Info(doing, "done", done, "of", total)
	}
}
