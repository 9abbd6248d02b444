package cli_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
)

// asked is a context that tells when it is asked whether it has ended.
type asked struct {
	context.Context //nolint:containedctx // the purpose of this type
	tell            func()
}

func (a asked) Err() error {
	a.tell()
	return a.Context.Err()
}

// The read goes on after a stop, so that it must not be what hides the input: that would last beyond the end of the command.
func TestAskerHidesTheInputBeforeItReads(t *testing.T) {
	t.Parallel()
	cmd, stop, _ := atTerminal(t)
	terminal := int(cmd.InOrStdin().(*os.File).Fd())
	shows := func() bool {
		now, err := unix.IoctlGetTermios(terminal, unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		return now.Lflag&unix.ECHO != 0
	}
	begun := false
	cmd.SetContext(asked{cmd.Context(), func() {
		begun = true
		if shows() {
			t.Error("the terminal shows the input when the read begins")
		}
		stop()
	}})
	if _, err := cli.NewAsker(cmd).Secret("Password:"); !begun || !errors.Is(err, cli.ErrStopped) {
		t.Errorf("the read has begun: %t; %v", begun, err)
	}
	if !shows() {
		t.Error("the terminal does not show what is typed")
	}
}
