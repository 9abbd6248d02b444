package notes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

func TestNotes_ownKey(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"terraform_metal": true, "terraform_metal_allocation": true, "terraform_metal_boot": true, ironic.KeyProbe: true,
		"metal_oneview_returning": true, "metal_oneview_migrating": true,
		"team": false, "terraform": false, "terraform_metallic": false, "metal_oneview": false, "oneview": false, "": false,
	} {
		if got := notes.OwnKey(key); got != want {
			t.Errorf("OwnKey(%q) = %t, want %t", key, got, want)
		}
	}
}

func TestTold_inWords(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 3, 0, 0, 0, time.UTC)
	n := &ironic.Node{ProvisionState: "available", ProvisionUpdatedAt: now, Extra: map[string]any{
		notes.KeyAllocation: map[string]any{"uuid": "a1", "name": "web-3"},
		notes.KeyTurn:       map[string]any{"group": "databases", "run": "r1", "since": now, "failed": true},
		notes.KeyService:    notes.Work{Run: "r2", Steps: []string{"bios.reset"}, Began: now.Add(-time.Minute), Ended: now, Failed: true},
		notes.KeyReady:      notes.Checked{Since: now.Add(time.Minute), Target: "TCP port web-1:22", Failed: now.Add(2 * time.Minute)},
		notes.KeyDiscovery:  map[string]any{"v": 1, "owner": "rack12", "name": "slot-01", "from": "serial", "at": "2026-05-01T02:00:00Z"},
	}}
	var texts []string
	for _, note := range notes.Told(n, now) {
		texts = append(texts, note.String())
	}
	want := "an undeployment is to create allocation web-3 (a1) again; " +
		"2026-05-01T02:00:00Z discovered, and named slot-01 after serial, metal_discovery_import rack12; " +
		"2026-05-01T02:59:00Z the provider noted: service (bios.reset) that failed, run r2, until 2026-05-01T03:00:00Z; " +
		"2026-05-01T03:00:00Z turn of rollout group databases: the change failed, or the machine is not ready, run r1; " +
		"2026-05-01T03:01:00Z ready check of TCP port web-1:22 that failed, until 2026-05-01T03:02:00Z"
	if got := strings.Join(texts, "; "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A note that others have written shows of a URL the server only.
func TestTold_targetOfAReadyCheck(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 3, 0, 0, 0, time.UTC)
	for _, failed := range []time.Time{{}, now} {
		n := &ironic.Node{ProvisionState: "active", Extra: map[string]any{
			notes.KeyReady: notes.Checked{Since: now, Target: "https://u:hunter2@web-1:8443/hunter2/x?hunter2#hunter2", Failed: failed},
		}}
		told := notes.Told(n, now)
		if len(told) != 1 || !strings.Contains(told[0].String(), "ready check of https://web-1:8443") ||
			strings.Contains(told[0].String(), "hunter2") {
			t.Errorf("told %v", told)
		}
	}
}
