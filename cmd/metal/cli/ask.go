package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Asker asks the user of a terminal.
type Asker struct {
	in       *bufio.Reader
	out      io.Writer
	terminal bool
}

// NewAsker returns an Asker for the standard input and the standard error of a command.
func NewAsker(cmd *cobra.Command) *Asker {
	file, ok := cmd.InOrStdin().(*os.File)
	return AskerOf(cmd.InOrStdin(), cmd.ErrOrStderr(), ok && term.IsTerminal(int(file.Fd())))
}

// AskerOf returns an Asker. terminal: somebody can answer.
func AskerOf(in io.Reader, out io.Writer, terminal bool) *Asker {
	return &Asker{in: bufio.NewReader(in), out: out, terminal: terminal}
}

// Terminal reports whether somebody can answer.
func (a *Asker) Terminal() bool { return a.terminal }

// Yes asks a question, and reports whether the answer is yes. Without a terminal it is no.
func (a *Asker) Yes(format string, args ...any) bool {
	answer := strings.ToLower(a.Text(format+" [y/N]", args...))
	return answer == "y" || answer == "yes"
}

// Text asks for a text. Without a terminal it is empty.
func (a *Asker) Text(format string, args ...any) string {
	if !a.terminal {
		return ""
	}
	fmt.Fprintf(a.out, format+" ", args...)
	answer, _ := a.in.ReadString('\n') // without a line it is empty
	return strings.TrimSpace(answer)
}
