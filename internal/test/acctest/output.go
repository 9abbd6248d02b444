package acctest

import (
	"strings"
	"testing"
)

// Wrapped returns a regular expression for a text that the CLI may have broken into lines.
func Wrapped(text string) string {
	return strings.ReplaceAll(text, " ", `[\s│]+`)
}

// Mention fails a test unless a CLI's output has all texts. Line breaks do not count.
func Mention(t *testing.T, output string, texts ...string) {
	t.Helper()
	flat := unwrapped(output)
	for _, text := range texts {
		if !strings.Contains(flat, text) {
			t.Errorf("the output does not say %q:\n%s", text, output)
		}
	}
}

// NeverMention fails a test if a CLI's output has one of the texts. Line breaks do not count.
func NeverMention(t *testing.T, output string, texts ...string) {
	t.Helper()
	flat := unwrapped(output)
	for _, text := range texts {
		if strings.Contains(flat, text) {
			t.Errorf("the output says %q:\n%s", text, output)
		}
	}
}

// unwrapped returns a CLI's output as one line, without the frames of messages.
func unwrapped(output string) string {
	return strings.Join(strings.FieldsFunc(output, func(r rune) bool { return strings.ContainsRune(" \n\t│╷╵", r) }), " ")
}

// errorsIn returns the error diagnostics in a CLI's output. A warning is none.
func errorsIn(output string) string {
	var found strings.Builder
	isError := false
	for line := range strings.Lines(output) {
		switch text := strings.TrimPrefix(line, "│ "); {
		case strings.HasPrefix(text, "Error: "):
			isError = true
		case strings.HasPrefix(text, "Warning: "), strings.HasPrefix(text, "╵"):
			isError = false
		}
		if isError {
			found.WriteString(line)
		}
	}
	return found.String()
}
