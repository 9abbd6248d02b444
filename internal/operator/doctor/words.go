package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// count returns a number with its noun, such as "1 node" or "2 nodes".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// are is count with the verb "are".
func are(n int, noun string) string {
	if n == 1 {
		return count(n, noun) + " is"
	}
	return count(n, noun) + " are"
}

// needs is count with the verb "need".
func needs(n int, noun string) string {
	if n == 1 {
		return count(n, noun) + " needs"
	}
	return count(n, noun) + " need"
}

// have is count with the verb "have".
func have(n int, noun string) string {
	if n == 1 {
		return count(n, noun) + " has"
	}
	return count(n, noun) + " have"
}

// label names a machine.
func label(n *ironic.Node) string { return ironic.NodeLabel(n) }

// ago says how long ago a time was.
func ago(at, now time.Time) string {
	return fmt.Sprintf("%s ago (%s)", max(0, now.Sub(at)).Round(time.Second), at.UTC().Format(time.RFC3339))
}

// there says how many of something there are.
func there(n int, noun string) string {
	if n == 1 {
		return "There is 1 " + noun
	}
	return fmt.Sprintf("There are %d %ss", n, noun)
}

// short is a duration without units that are zero.
func short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if before, found := strings.CutSuffix(text, zero); found {
			text = before + zero[:1]
		}
	}
	return text
}
