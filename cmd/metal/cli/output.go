package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

// CheckOutput returns the error in the value of --output. Some commands have further formats.
func CheckOutput(format string, further ...string) error {
	formats := append([]string{"table", "json"}, further...)
	if !slices.Contains(formats, format) {
		last := len(formats) - 1
		return fmt.Errorf("--output is %q; it must be %s or %s", format, strings.Join(formats[:last], ", "), formats[last])
	}
	return nil
}

// LogRequests lets the client of Ironic log where a command logs, and tell Ironic the name and version of this program.
func (s *Settings) LogRequests(cmd *cobra.Command) {
	s.Ironic.Logger, s.Ironic.UserAgent = s.Logger(cmd.ErrOrStderr(), false, cmd.Flags().Changed("log-level")), "metal/"+s.Version
	s.TellSilence(cmd)
}

// TellSilence lets a command that writes no log say on standard error that Ironic does not answer.
func (s *Settings) TellSilence(cmd *cobra.Command) {
	if !cmd.Flags().Changed("log-level") {
		s.Ironic.Silent = func(text string) { Line(cmd.ErrOrStderr(), "%s", text) }
	}
}

// Line writes one line: a name or a reason of others cannot begin another one.
func Line(to io.Writer, format string, args ...any) {
	fmt.Fprintln(to, rest.OneLine(fmt.Sprintf(format, args...)))
}

// Error writes a message that ends a command, folded to the terminal. A log gets it in one piece.
func Error(to io.Writer, err error) {
	if printer, is := to.(*rest.Printer); is {
		if width, _ := TerminalSize(printer.To); width > 0 {
			to = folder{to, width}
		}
	}
	fmt.Fprintln(to, "metal:", err)
}

// Width returns the width of a text in columns: that of the terminal, or words.PageWidth where there is none.
func Width(to io.Writer) int {
	if printer, is := to.(*rest.Printer); is {
		to = printer.To
	}
	width, _ := TerminalSize(to)
	return cmp.Or(width, words.PageWidth)
}

// Folded returns a writer of text for people, which folds lines to the width of to. Each text that is written must end with its line.
func Folded(to io.Writer) io.Writer { return folder{to, Width(to)} }

type folder struct {
	to    io.Writer
	width int
}

// Write returns the length of the given text.
func (f folder) Write(text []byte) (int, error) {
	if _, err := io.WriteString(f.to, words.Fold(string(text), f.width)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// TerminalSize returns the size of the terminal that a writer writes to; zeros if it is none. Consoles of Windows count as none,
// because they understand control sequences only in a mode of their own.
func TerminalSize(to io.Writer) (width, height int) {
	file, ok := to.(*os.File)
	if !ok || runtime.GOOS == "windows" || !term.IsTerminal(int(file.Fd())) {
		return 0, 0
	}
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0, 0
	}
	return width, height
}
