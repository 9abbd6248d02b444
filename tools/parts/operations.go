package main

import (
	"fmt"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
)

// answers are the flags that answer what a command asks before it does so much harm.
var answers = map[operate.Harm]string{
	operate.Harmless: "nothing", operate.Restarts: "`--yes`", operate.Cuts: "`--yes-erase`", operate.Erases: "`--yes-erase`",
}

// operations returns the table of the operations that commands and actions do.
func operations() string {
	var b strings.Builder
	b.WriteString("| Action of Terraform 1.14 | `metal` | Needs at most | `baremetal` |\n|---|---|---|---|\n")
	for _, op := range operate.All() {
		action := "none"
		if name, is := strings.CutPrefix(op.Action, provider+"_"); is {
			action = fmt.Sprintf("[`%s`](../actions/%s.md)", op.Action, name)
		}
		instead := "none"
		if op.Instead != "" {
			instead = "`" + strings.ReplaceAll(op.Instead, ", ", "`, `") + "`"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", action, op.Command, answers[op.Worst], instead)
	}
	return b.String()
}
