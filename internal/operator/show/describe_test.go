package show_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/show"
)

var describedAt = time.Date(2026, 5, 1, 3, 0, 0, 0, time.UTC)

// rich returns a node of which everything is known, with secrets where nodes have them.
func rich() *ironic.Node {
	return &ironic.Node{
		UUID: "1be26c0b-03f2-4d2e-ae87-c02d7f33c123", Name: "rack1-07", ProvisionState: "deploying", TargetProvisionState: "active",
		ProvisionUpdatedAt: describedAt.Add(-time.Minute),
		Driver:             "redfish", DriverInfo: map[string]any{
			"redfish_address": "https://10.0.0.7", "redfish_username": "root",
			"redfish_password": "s3cret-bmc",
		},
		Properties:   map[string]any{"cpu_arch": "x86_64", "cpus": json.Number("16"), "memory_mb": "65536"},
		InstanceUUID: "a1", AllocationUUID: "a1", DeployStep: map[string]any{"interface": "deploy", "step": "write_image"},
		InstanceInfo: map[string]any{
			"image_source": "https://user:s3cret-url@images.example.com/t/s3cret-path/debian.qcow2?token=s3cret-token#s3cret-part",
			"configdrive":  "s3cret-drive",
		},
		Extra: map[string]any{
			notes.KeyFailures: float64(2),
			notes.KeyErasure: map[string]any{
				"run": "r", "steps": []string{"deploy.erase_devices"},
				"began": describedAt.Add(-2 * time.Hour), "ended": describedAt.Add(-time.Hour),
			},
			string(notes.MarkReservation): map[string]any{"7d9ab9ef-7a4b-4d5d-9d6a-2f7f0b3f3f11": map[string]any{
				"since": describedAt.Add(-3 * time.Hour), "instance": "a1",
			}},
		},
	}
}

func TestOf_hasNoSecret(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(show.Describe(rich(), nil, nil, nil, describedAt))
	if err != nil || strings.Contains(string(text), "s3cret") {
		t.Errorf("%v: %s", err, text)
	}
	if !strings.Contains(string(text), "images.example.com/…/debian.qcow2") {
		t.Errorf("the image is missing: %s", text)
	}
}

func TestOf_tellsWhatIsKnown(t *testing.T) {
	t.Parallel()
	allocation := &ironic.Allocation{
		UUID: "a1", Name: "web-3",
		Extra: map[string]any{"team": "web", "terraform_metal_creation": map[string]any{}},
	}
	var history []ironic.Event
	for i := range 7 {
		history = append(history, ironic.Event{
			CreatedAt: describedAt.Add(time.Duration(i) * time.Second), Severity: "ERROR",
			Event: "failed",
		}, ironic.Event{Severity: "INFO", Event: "deployed"})
	}
	got := show.Describe(rich(), []string{"52:54:00:01:00:01"}, allocation, history, describedAt)
	for what, pair := range map[string][2]any{
		"hardware":   {got.Hardware, "x86_64, 16 CPUs, 65536 MiB"},
		"BMC":        {got.BMC, "10.0.0.7"},
		"cards":      {strings.Join(got.MACs, " "), "52:54:00:01:00:01"},
		"operation":  {got.Operation, "deploying, on the way to active, step deploy.write_image"},
		"failures":   {got.Failures, 2},
		"events":     {len(got.History), 5},
		"last event": {got.History[4], "2026-05-01T03:00:06Z failed"},
		"allocation": {got.Held.AllocationName, "web-3"},
		"its extra":  {len(got.Held.AllocationExtra), 1},
		"run": {got.Held.Run, "run 7d9ab9ef-7a4b-4d5d-9d6a-2f7f0b3f3f11, which began at 2026-05-01T00:00:00Z, and is at work " +
			"or was killed"},
		"notes":         {len(got.Notes), 2},
		"newest note":   {got.Notes[1].Text, "the provider noted: automated cleaning (deploy.erase_devices)"},
		"what to do":    {len(got.Next), 1},
		"what runs now": {got.Image, "https://images.example.com/…/debian.qcow2"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %v, want %v", what, pair[0], pair[1])
		}
	}
}
