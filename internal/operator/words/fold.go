package words

import (
	"strings"
	"unicode/utf8"

	"github.com/mitchellh/go-wordwrap"
)

// PageWidth is the width of a text in columns where there is no terminal.
const PageWidth = 80

// leastColumn is the least width of a column that is folded.
const leastColumn = 30

// Fold breaks the lines of a text that are longer than a width between words. What follows is indented: below the last column that is wide
// enough, which begins after two spaces, or else two spaces deeper than the line, unless that begins a paragraph. Commands stay whole.
func Fold(text string, width int) string {
	var folded strings.Builder
	for line := range strings.Lines(text) {
		body := strings.TrimSuffix(line, "\n")
		folded.WriteString(fold(body, width) + line[len(body):])
	}
	return folded.String()
}

func fold(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	if command, about, found := strings.Cut(strings.TrimPrefix(line, "  "), "  "); strings.HasPrefix(command, "metal ") { // is copied whole
		if found {
			command += "\n" + fold("    "+strings.TrimLeft(about, " "), width)
		}
		return "  " + command
	}
	head, deeper := indentation(line), 2
	if head == "" {
		deeper = 0
	}
	for i := len(head); ; {
		gap := strings.Index(line[i:], "  ")
		if gap < 0 {
			break
		}
		i += gap
		i += len(indentation(line[i:]))
		if utf8.RuneCountInString(line[:i]) > width-leastColumn {
			break
		}
		head, deeper = line[:i], 0
	}
	indent := utf8.RuneCountInString(head) + deeper
	tail := wordwrap.WrapString(line[len(head):], uint(max(leastColumn, width-indent))) //nolint:gosec // not negative
	return head + strings.ReplaceAll(tail, "\n", "\n"+strings.Repeat(" ", indent))
}

// indentation returns the spaces at the beginning of a text.
func indentation(text string) string { return text[:len(text)-len(strings.TrimLeft(text, " "))] }
