package cli

import (
	"fmt"
	"io"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

// Line writes one line: a name or a reason of others cannot begin another one.
func Line(to io.Writer, format string, args ...any) {
	fmt.Fprintln(to, rest.OneLine(fmt.Sprintf(format, args...)))
}

// Count returns a number with its noun, such as "1 node" or "2 nodes".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
