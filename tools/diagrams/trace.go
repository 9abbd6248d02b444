package main

import (
	_ "embed" // the trace
	"encoding/json"
	"fmt"
	"strings"
)

// recorded is a trace that tools/traces has recorded.
//
//go:embed trace.json
var recorded []byte

// recordedSpan is a span of it. Times are in milliseconds.
type recordedSpan struct {
	Name   string `json:"name"`
	Node   string `json:"node"`
	Depth  int    `json:"depth"`
	Begins int    `json:"begins"`
	Ends   int    `json:"ends"`
}

// applyAsTrace shows the spans of an apply with max_concurrent = 1, as tools for traces do.
func applyAsTrace() *canvas {
	const left, top, rowHeight, barHeight, indent = 218, 56, 22, 14, 12
	c := newCanvas("The trace of an apply of two deployments with max_concurrent = 1",
		"The spans of the run: below it those of calls, operations on machines, waits for a slot, verbs, provision states and ready "+
			"checks. The second machine waits for its slot until the first is ready.")
	c.legend(16, []entry{{plain, "run, calls"}, {ours, "operations"}, {restart, "states"}, {muted, "waits"}, {safe, "ready check"}})
	var spans []recordedSpan
	if err := json.Unmarshal(recorded, &spans); err != nil || len(spans) == 0 {
		c.problem("trace.json: %w", err)
		return c
	}
	scale := float64(width-margin-left) / float64(spans[0].Ends)
	x := func(milliseconds int) int { return left + int(float64(milliseconds)*scale) }
	y := top
	for _, s := range spans {
		name, nameX := s.Name, margin+s.Depth*indent
		c.fits(name, small, left-nameX-4)
		c.line(plain, small, "start", nameX, y+12, name)
		barX := min(x(s.Begins), width-margin-3)
		c.rect(toneOf(s), barX, y, max(3, x(s.Ends)-barX), barHeight)
		if s.Name == "deploy" {
			c.line(plain, small, "start", x(s.Begins)+6, y+12, s.Node)
		}
		y += rowHeight
	}
	c.arrow(muted, [2]int{left, y + 6}, [2]int{width - margin, y + 6})
	for seconds := 5; x(seconds*1000) < width-margin-20; seconds += 5 {
		c.line(muted, small, "middle", x(seconds*1000), y+26, fmt.Sprintf("%d s", seconds))
	}
	c.bottom = y + 26
	return c
}

// toneOf is the tone of a kind of spans.
func toneOf(s recordedSpan) tone {
	switch {
	case s.Name == "wait for a slot", s.Name == "state available", s.Name == "state active":
		return muted
	case s.Name == "ready check":
		return safe
	case strings.HasPrefix(s.Name, "state "):
		return restart
	case s.Depth <= 1:
		return plain
	}
	return ours
}
