package doctor

import (
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

// are is words.Count with the verb "are".
func are(n int, noun string) string {
	if n == 1 {
		return words.Count(n, noun) + " is"
	}
	return words.Count(n, noun) + " are"
}

// needs is words.Count with the verb "need".
func needs(n int, noun string) string {
	if n == 1 {
		return words.Count(n, noun) + " needs"
	}
	return words.Count(n, noun) + " need"
}

// have is words.Count with the verb "have".
func have(n int, noun string) string {
	if n == 1 {
		return words.Count(n, noun) + " has"
	}
	return words.Count(n, noun) + " have"
}

func label(n *ironic.Node) string { return ironic.NodeLabel(n) }

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
