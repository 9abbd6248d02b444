package observe

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
)

// A watch that runs as a service forgets what is older than a day. One that follows an apply does not.
func TestWatch_serviceForgets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args    []string
		forgets bool
	}{
		{[]string{"--quiet", "--metrics-listen", "127.0.0.1:9464"}, true},
		{[]string{"--metrics-listen", "127.0.0.1:9464", "--html", "page.html"}, true},
		{[]string{"--quiet", "--record", "record.jsonl"}, true},
		{[]string{"--record", "record.jsonl"}, false},
		{[]string{"--quiet", "--html", "page.html"}, false},
		{[]string{"--quiet", "--goal", "active"}, false},
		{nil, false},
	} {
		var own watchFlags
		cmd := own.command(&cli.Settings{})
		if err := cmd.ParseFlags(tt.args); err != nil {
			t.Fatal(err)
		}
		if keeps := own.keeps(); keeps > 0 != tt.forgets {
			t.Errorf("%q: it keeps %s", tt.args, keeps)
		}
	}
}
