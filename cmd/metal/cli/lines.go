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
