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

// Write writes the report for people, in lines of a width: one line for what is well, and a paragraph for what is not, with what to do.
func (r *Report) Write(to io.Writer, width int) error {
	const indent = "         "
	var text strings.Builder
	tally := make(map[Result]int)
	for _, c := range r.Checks {
		tally[c.Result]++
		details := c.Details
		if c.Result == OK {
			first, _, _ := strings.Cut(strings.TrimSuffix(c.Fact, "."), ". ")
			text.WriteString(words.Fit(fmt.Sprintf("%-7s  %s: %s.", marksOf[OK], c.Name, first), width) + "\n")
			if !c.telling {
				details = nil
			}
		} else {
			fmt.Fprintf(&text, "%-7s  %s: %s\n", marksOf[c.Result], c.Name, c.Fact)
		}
		for _, detail := range details {
			text.WriteString(indent + "- " + detail + "\n")
		}
		if c.Next != "" && c.Result != OK {
			text.WriteString(indent + "> " + c.Next + "\n")
		}
	}
	fmt.Fprintf(&text, "\n%d ok, %s, %s, %d unknown\n", tally[OK], words.Count(tally[Warning], "warning"),
		words.Count(tally[Problem], "problem"), tally[Unknown])
	_, err := io.WriteString(to, words.Fold(text.String(), width))
	return err
}
