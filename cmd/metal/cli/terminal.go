package cli

import (
	"io"
	"os"
	"runtime"

	"golang.org/x/term"
)

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
