// Package words writes numbers and times for the people who use metal.
package words

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Count writes a number with its noun, such as "1 node" or "2 nodes".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Short writes a time without units that are zero, such as 5m.
func Short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if before, found := strings.CutSuffix(text, zero); found {
			text = before + zero[:1]
		}
	}
	return text
}

// Fit cuts a text to a number of columns; an ellipsis stands for the rest.
func Fit(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	if width < 1 {
		return ""
	}
	return string([]rune(s)[:width-1]) + "…"
}

// CompareNames orders names as people do: node-2 comes before node-10.
func CompareNames(a, b string) int {
	for a != "" && b != "" {
		x, y := leading(a), leading(b)
		if isDigit(x) && isDigit(y) {
			if longer := cmp.Compare(len(strings.TrimLeft(x, "0")), len(strings.TrimLeft(y, "0"))); longer != 0 {
				return longer
			}
		}
		if x != y {
			return cmp.Compare(x, y)
		}
		a, b = a[len(x):], b[len(y):]
	}
	return cmp.Compare(a, b)
}

// leading returns the digits, or the one other byte, with which a name begins.
func leading(s string) string { return s[:max(1, len(s)-len(strings.TrimLeft(s, digits)))] }

const digits = "0123456789"

func isDigit(s string) bool { return strings.Contains(digits, s[:1]) }
