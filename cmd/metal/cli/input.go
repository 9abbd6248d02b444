package cli

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
)

// ErrStopped ends a command that was stopped while it waited for its input, before it has changed anything.
var ErrStopped = &Failure{Code: ExitUnconfirmed, Err: errors.New("stopped before it began. Nothing was done")}

// Input returns the standard input of a command. A read ends when the command is stopped.
func Input(cmd *cobra.Command) io.Reader { return &stoppable{cmd.Context(), cmd.InOrStdin()} }

// ReadFile reads a file; -: standard input.
func ReadFile(cmd *cobra.Command, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(Input(cmd))
	}
	return os.ReadFile(name)
}

// stoppable is a reader whose reads end with ctx.
type stoppable struct {
	ctx  context.Context //nolint:containedctx // the command's
	from io.Reader
}

// Read reads in the background, because a system call for a terminal or a pipe does not end with ctx.
func (s *stoppable) Read(p []byte) (n int, err error) {
	text, err := unlessStopped(s.ctx, func() ([]byte, error) {
		own := make([]byte, len(p))
		n, err := s.from.Read(own)
		return own[:n], err
	})
	return copy(p, text), err
}

// unlessStopped returns what read returns, or ErrStopped when ctx ends before. Then read goes on until the program ends.
func unlessStopped(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, ErrStopped
	}
	var text []byte
	var err error
	done := routine.Go(func() { text, err = read() }, func(panicked *routine.PanicError) { err = panicked })
	select {
	case <-ctx.Done():
		return nil, ErrStopped
	case <-done:
		return text, err
	}
}
