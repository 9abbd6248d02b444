package cli

import (
	"errors"

	"golang.org/x/sys/unix"
)

// readHidden reads a line that a terminal does not show. Afterwards the terminal is as before, also if the command is stopped: the read,
// which goes on in the background, does not change the terminal.
func (a *Asker) readHidden(terminal int) (line string, err error) {
	before, err := unix.IoctlGetTermios(terminal, unix.TCGETS)
	if err != nil {
		return "", err
	}
	hides := *before
	hides.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(terminal, unix.TCSETS, &hides); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unix.IoctlSetTermios(terminal, unix.TCSETS, before)) }()
	return a.line()
}
