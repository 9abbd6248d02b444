package doctor

import (
	"fmt"
	"io"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

func are(n int, noun string) string { return withVerb(n, noun, "is", "are") }

func needs(n int, noun string) string { return withVerb(n, noun, "needs", "need") }

func have(n int, noun string) string { return withVerb(n, noun, "has", "have") }

func withVerb(n int, noun, one, more string) string {
	if n == 1 {
		return words.Count(n, noun) + " " + one
	}
	return words.Count(n, noun) + " " + more
}

func label(n *ironic.Node) string { return ironic.NodeLabel(n) }

// there says how many of something there are.
func there(n int, noun string) string {
	if n == 1 {
		return "There is 1 " + noun
	}
	return fmt.Sprintf("There are %d %ss", n, noun)
}

// marksOf are what the table shows of results.
var marksOf = map[Result]string{OK: "ok", Warning: "WARNING", Problem: "PROBLEM", Unknown: "unknown"}

// Write writes the report for people: a paragraph for each check, and what to do.
func (r *Report) Write(to io.Writer) error {
	var text strings.Builder
	width := 0
	for _, c := range r.Checks {
		width = max(width, len(c.Name))
	}
	tally := make(map[Result]int)
	for _, c := range r.Checks {
		tally[c.Result]++
		fmt.Fprintf(&text, "%-7s  %-*s  %s\n", marksOf[c.Result], width, c.Name, c.Fact)
		indent := strings.Repeat(" ", len("unknown")+width+4)
		for _, detail := range c.Details {
			fmt.Fprintf(&text, "%s- %s\n", indent, detail)
		}
		if c.Next != "" {
			fmt.Fprintf(&text, "%s> %s\n", indent, c.Next)
		}
	}
	fmt.Fprintf(&text, "\n%d ok, %s, %s, %d unknown\n", tally[OK], words.Count(tally[Warning], "warning"),
		words.Count(tally[Problem], "problem"), tally[Unknown])
	_, err := io.WriteString(to, text.String())
	return err
}
