package operate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

// question is what a command would do, if that needs a confirmation.
type question struct {
	what string // such as a machine
	plan operate.Plan
	node *ironic.Node // whose name must be typed if the harm is Cuts or worse
}

// String is a line.
func (q question) String() string { return rest.OneLine(q.what + ": " + q.plan.Does) }

// confirmation are the flags that answer questions.
type confirmation struct {
	yes      bool
	yesErase []string
}

// ask asks what the flags have not answered. noun says what the questions are about, such as "machine". Without all answers it returns an
// error that says which flags give them.
func (c confirmation) ask(cmd *cobra.Command, noun string, questions []question) error {
	var typed, asked []question
	for _, q := range questions {
		switch {
		case q.plan.Harm >= operate.Cuts && !isNamed(c.yesErase, q.node):
			typed = append(typed, q)
		case q.plan.Harm == operate.Restarts && !c.yes:
			asked = append(asked, q)
		}
	}
	slices.SortFunc(asked, func(a, b question) int { return strings.Compare(a.what, b.what) })
	ask := cli.NewAsker(cmd)
	for i, q := range typed {
		answer := ask.Text("%s. Type the name of the node to go on:", q)
		if answer == "" || !isNamed([]string{answer}, q.node) {
			return unconfirmed(cmd, noun, typed[i:], asked)
		}
	}
	if len(asked) == 0 || ask.Yes("%s\nGo on with %s?", joined(asked), words.Count(len(asked), noun)) {
		return nil
	}
	return unconfirmed(cmd, noun, nil, asked)
}

func joined(questions []question) string {
	lines := make([]string, len(questions))
	for i, q := range questions {
		lines[i] = q.String()
	}
	return strings.Join(lines, "\n")
}

// isNamed reports whether names has the name or the UUID of a node.
func isNamed(names []string, node *ironic.Node) bool {
	return (node.Name != "" && slices.Contains(names, node.Name)) || slices.Contains(names, node.UUID)
}

// unconfirmed ends a command before it has changed anything. typed and asked lack answers.
func unconfirmed(cmd *cobra.Command, noun string, typed, asked []question) error {
	var flags, names []string
	if len(asked) > 0 {
		flags = append(flags, "--yes")
	}
	for _, q := range typed {
		if name := ironic.NodeArgument(q.node); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		flags = append(flags, "--yes-erase "+strings.Join(names, ","))
	}
	open := slices.Concat(typed, asked)
	return &cli.Failure{Code: cli.ExitUnconfirmed, Err: fmt.Errorf("%s needs a confirmation for %s, such as %s. Use %s. Nothing was done",
		cmd.CommandPath(), words.Count(len(open), noun), open[0], strings.Join(flags, " "))}
}
