package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Asker asks the user of a terminal. A question ends when the command is stopped.
type Asker struct {
	ctx      context.Context //nolint:containedctx // the command's
	in       *bufio.Reader
	out      io.Writer
	terminal bool
	hidden   func() (string, error) // reads a line that the terminal does not show
}

// NewAsker returns an Asker for the standard input and the standard error of a command.
func NewAsker(cmd *cobra.Command) *Asker {
	file, ok := cmd.InOrStdin().(*os.File)
	a := AskerOf(cmd.Context(), cmd.InOrStdin(), cmd.ErrOrStderr(), ok && term.IsTerminal(int(file.Fd())))
	if a.terminal {
		a.hidden = func() (string, error) { return a.readHidden(int(file.Fd())) }
	}
	return a
}

// AskerOf returns an Asker. terminal: a user can answer.
func AskerOf(ctx context.Context, in io.Reader, out io.Writer, terminal bool) *Asker {
	a := &Asker{ctx: ctx, in: bufio.NewReader(&stoppable{ctx, in}), out: out, terminal: terminal}
	a.hidden = a.line
	return a
}

// line reads a line as it is, without its end.
func (a *Asker) line() (string, error) {
	answer, err := a.in.ReadString('\n')
	return strings.TrimRight(answer, "\r\n"), err
}

// Yes asks a question, and reports whether the answer is yes. Without a terminal it is no.
func (a *Asker) Yes(format string, args ...any) bool {
	answer := strings.ToLower(a.Text(format+" [y/N]", args...))
	return answer == "y" || answer == "yes"
}

// Secret asks for a text that the terminal does not show. Without a terminal it is empty.
func (a *Asker) Secret(question string) (string, error) {
	if !a.terminal {
		return "", nil
	}
	fmt.Fprint(a.out, question+" ")
	answer, err := a.hidden()
	fmt.Fprintln(a.out)
	return answer, err
}

// Text asks for a text. Without a terminal, when the command is stopped, or when the input ends before the end of the line, it is empty.
func (a *Asker) Text(format string, args ...any) string {
	if !a.terminal {
		return ""
	}
	fmt.Fprintf(a.out, format+" ", args...)
	answer, err := a.in.ReadString('\n')
	if a.ctx.Err() != nil || err != nil {
		fmt.Fprintln(a.out)
		return ""
	}
	return strings.TrimSpace(answer)
}
