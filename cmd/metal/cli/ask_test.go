package cli_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
)

func TestAskerNeedsAYes(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{"y\n": true, "YES\n": true, "\n": false, "n\n": false, "": false, "y": false} {
		var out bytes.Buffer
		asked := "Enable it? [y/N] "
		if !strings.HasSuffix(answer, "\n") { // the end of the input ends no line of the terminal
			asked += "\n"
		}
		if got := cli.AskerOf(t.Context(), strings.NewReader(answer), &out, true).Yes("Enable %s?", "it"); got != want ||
			out.String() != asked {
			t.Errorf("%q: %v, asked %q", answer, got, out.String())
		}
	}
	if cli.AskerOf(t.Context(), strings.NewReader("y\n"), &bytes.Buffer{}, false).Yes("Enable?") {
		t.Error("it is yes without a terminal")
	}
}

func TestAskerReadsALineForEachQuestion(t *testing.T) {
	t.Parallel()
	ask := cli.AskerOf(t.Context(), strings.NewReader("rack1-07\ny\n"), &bytes.Buffer{}, true)
	if name := ask.Text("Name?"); name != "rack1-07" {
		t.Errorf("the first answer is %q", name)
	}
	if !ask.Yes("Go on?") {
		t.Error("the second answer is lost")
	}
}

func TestAskerTakesASecretAsItIs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		terminal   bool
		want, says string
	}{{true, " pass word ", "Password: \n"}, {false, "", ""}} {
		var out bytes.Buffer
		got, err := cli.AskerOf(t.Context(), strings.NewReader(" pass word \r\n"), &out, tt.terminal).Secret("Password:")
		if err != nil || got != tt.want || out.String() != tt.says {
			t.Errorf("%q, %v; it says %q", got, err, out.String())
		}
	}
}

// patience is how long a test waits for what the terminal shows. A busy machine is slow.
const patience = 3 * time.Minute

// atTerminal returns a command whose standard input is a terminal, and what stops the command. seen waits until the terminal shows a text.
func atTerminal(t *testing.T) (cmd *cobra.Command, stop func(), seen func(string)) {
	t.Helper()
	user, terminal, err := pty.Open()
	if err != nil {
		t.Skipf("this computer gives the test no terminal: %v", err)
	}
	t.Cleanup(func() { _, _ = user.Close(), terminal.Close() })
	ctx, stop := context.WithCancel(t.Context())
	cmd = &cobra.Command{}
	cmd.SetContext(ctx)
	cmd.SetIn(terminal)
	cmd.SetErr(terminal)
	return cmd, stop, func(text string) {
		t.Helper()
		if err := user.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		for shown, part := "", make([]byte, 100); !strings.Contains(shown, text); {
			n, err := user.Read(part)
			if err != nil {
				t.Fatalf("the terminal shows %q: %v", shown, err)
			}
			shown += string(part[:n])
		}
	}
}

func TestAskerStopsAtAQuestion(t *testing.T) {
	t.Parallel()
	cmd, stop, seen := atTerminal(t)
	answered := make(chan bool)
	go func() { answered <- cli.NewAsker(cmd).Yes("Go on?") }()
	seen("Go on? [y/N]")
	stop()
	if <-answered {
		t.Error("it is yes")
	}
}

func TestAskerShowsTheInputAgainWhenItIsStoppedAtASecret(t *testing.T) {
	t.Parallel()
	cmd, stop, seen := atTerminal(t)
	terminal := int(cmd.InOrStdin().(*os.File).Fd())
	state := func() *term.State {
		now, err := term.GetState(terminal)
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	before, ended := state(), make(chan error)
	go func() {
		_, err := cli.NewAsker(cmd).Secret("Password:")
		ended <- err
	}()
	seen("Password:")
	for deadline := time.Now().Add(patience); reflect.DeepEqual(state(), before) && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	if reflect.DeepEqual(state(), before) {
		t.Error("the terminal shows the secret")
	}
	stop()
	var failure *cli.Failure
	if err := <-ended; !errors.As(err, &failure) || failure.Code != cli.ExitUnconfirmed {
		t.Errorf("%v", err)
	}
	if !reflect.DeepEqual(state(), before) {
		t.Error("the terminal does not show what is typed")
	}
}

func TestInputEndsWhenTheCommandIsStopped(t *testing.T) {
	t.Parallel()
	cmd, stop, _ := atTerminal(t)
	ended := make(chan error)
	go func() {
		_, err := cli.ReadNames(cmd, "-")
		ended <- err
	}()
	stop()
	var failure *cli.Failure
	if err := <-ended; !errors.As(err, &failure) || failure.Code != cli.ExitUnconfirmed {
		t.Errorf("%v", err)
	}
}
