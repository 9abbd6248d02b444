package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
)

func TestAskerNeedsAYes(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{"y\n": true, "YES\n": true, "\n": false, "n\n": false, "": false} {
		var out bytes.Buffer
		if got := cli.AskerOf(strings.NewReader(answer), &out, true).Yes("Enable %s?", "it"); got != want || out.String() != "Enable it? [y/N] " {
			t.Errorf("%q: %v, asked %q", answer, got, out.String())
		}
	}
	if cli.AskerOf(strings.NewReader("y\n"), &bytes.Buffer{}, false).Yes("Enable?") {
		t.Error("it is yes without a terminal")
	}
}

func TestAskerReadsALineForEachQuestion(t *testing.T) {
	t.Parallel()
	ask := cli.AskerOf(strings.NewReader("rack1-07\ny\n"), &bytes.Buffer{}, true)
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
		got, err := cli.AskerOf(strings.NewReader(" pass word \r\n"), &out, tt.terminal).Secret("Password:")
		if err != nil || got != tt.want || out.String() != tt.says {
			t.Errorf("%q, %v; it says %q", got, err, out.String())
		}
	}
}
