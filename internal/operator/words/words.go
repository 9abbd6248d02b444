// Package words writes numbers and times for the people who use metal.
package words

import (
	"fmt"
	"strings"
	"time"
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
