package machine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/marks"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/sitetest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/states"
)

// cleaned makes a manageable node available, and returns it with the note of its cleaning.
func cleaned(t *testing.T, fake *fakeironic.Server, patch ironic.Patch) (*ironic.Node, *marks.Erasure, error) {
	t.Helper()
	fake.StepTime = time.Minute
	client := sitetest.NewClient(fake)
	fake.Set("node-000", "provision_state", "manageable")
	fake.Set("node-000", "deploy_interface", "direct")
	fake.ResetRequests()
	_, err := client.Of(t.Context(), "node-000", func(m *machine.Machine) error {
		err := m.Reach(t.Context(), states.GoalAvailable, time.Hour)
		if patched := m.Patch(t.Context(), patch); patched != nil {
			t.Error(patched)
		}
		m.NoteErasure(t.Context())
		return err
	})
	node, read := client.Ironic.Node(t.Context(), "node-000")
	if read != nil {
		t.Fatal(read)
	}
	return node, marks.ErasureOf(node), err
}

// writes counts the edits of the node.
func writes(fake *fakeironic.Server) (n int) {
	for _, r := range fake.Requests() {
		if r.Method == "PATCH" {
			n++
		}
	}
	return n
}

// A run that watches a cleaning leaves a record of it on the node: with another write to extra, or else with one write of its own.
func TestErasure_isNotedOnTheNode(t *testing.T) {
	t.Parallel()
	for name, patch := range map[string]ironic.Patch{"alone": nil, "with another write": ironic.Patch{}.With("/extra/a", "b")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				node, note, err := cleaned(t, fake, patch)
				if err != nil || note == nil {
					t.Fatalf("%v %+v", err, note)
				}
				if note.Failed || !slices.Equal(note.Steps, []string{"deploy.erase_devices_metadata", "deploy.erase_devices"}) {
					t.Errorf("the note is %+v", note)
				}
				if took := note.Ended.Sub(note.Began); took != 3*time.Minute || !note.Ended.Equal(node.ProvisionUpdatedAt) {
					t.Errorf("it has taken %s, until %s", took, note.Ended)
				}
				if n := writes(fake); n != 1 {
					t.Errorf("%d writes", n)
				}
			})
		})
	}
}

// A cleaning that fails is noted, too, and so is the next one. What is skipped leaves the note of the cleaning before.
func TestErasure_failsAndIsRepeated(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		breaks := true
		fake.Fail = func(_ fakeironic.Node, verb string) (failed string) {
			if breaks && verb == "provide" {
				failed = "the disk is broken"
			}
			return failed
		}
		if _, note, err := cleaned(t, fake, nil); err == nil || note == nil || !note.Failed {
			t.Fatalf("%v %+v", err, note)
		}
		breaks = false
		_, succeeded, err := cleaned(t, fake, nil)
		if err != nil || succeeded == nil || succeeded.Failed {
			t.Fatalf("%v %+v", err, succeeded)
		}
		fake.Set("node-000", "automated_clean", false)
		if _, note, err := cleaned(t, fake, nil); err != nil || !note.Ended.Equal(succeeded.Ended) || writes(fake) != 0 {
			t.Errorf("%v %+v, %d writes", err, note, writes(fake))
		}
	})
}
