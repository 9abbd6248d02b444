//go:build !linux

package cli

import (
	"errors"

	"golang.org/x/term"
)

// readHidden reads a line that a terminal does not show. If the command is stopped, the terminal is as before, unless the read in the
// background has not yet begun to hide the input.
func (a *Asker) readHidden(terminal int) (string, error) {
	before, err := term.GetState(terminal)
	if err != nil {
		return "", err
	}
	answer, err := unlessStopped(a.ctx, func() ([]byte, error) { return term.ReadPassword(terminal) })
	if errors.Is(err, ErrStopped) {
		err = errors.Join(err, term.Restore(terminal, before))
	}
	return string(answer), err
}
