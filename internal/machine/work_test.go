package machine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// cleaned makes a manageable node available, and returns it with the note of its cleaning.
func cleaned(t *testing.T, fake *fakeironic.Server, patch ironic.Patch) (*ironic.Node, *notes.Work, error) {
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
		m.NoteWork(t.Context())
		return err
	})
	node, read := client.Ironic.Node(t.Context(), "node-000")
	if read != nil {
		t.Fatal(read)
	}
	return node, notes.ErasureOf(node), err
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

// serviced services a deployed machine whose steps take a time, and returns the node with the note of its service.
func serviced(t *testing.T, fake *fakeironic.Server) (*ironic.Node, *notes.Work, error) {
	t.Helper()
	client := sitetest.NewClient(fake)
	_, err := client.Of(t.Context(), "node-000", func(m *machine.Machine) error { return m.Service(t.Context(), harmless, time.Hour) })
	node, read := client.Ironic.Node(t.Context(), "node-000")
	if read != nil {
		t.Fatal(read)
	}
	return node, notes.WorkOf(node, notes.KeyService), err
}

// A service is noted with the steps that were requested, also one that ends before the first poll.
func TestService_isNotedOnTheNode(t *testing.T) {
	t.Parallel()
	for _, took := range []time.Duration{0, time.Minute} {
		t.Run(took.String(), func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := operable("active")
				fake.StepTime = took
				before := time.Now().Truncate(time.Second)
				node, note, err := serviced(t, fake)
				if err != nil || note == nil {
					t.Fatalf("%v %+v", err, note)
				}
				if note.Failed || !slices.Equal(note.Steps, []string{"bios.factory_reset"}) || note.Run == "" {
					t.Errorf("the note is %+v", note)
				}
				if note.Began.Before(before) || note.Ended.Sub(note.Began) < took || !note.Ended.Equal(node.ProvisionUpdatedAt) {
					t.Errorf("it is from %s to %s, the machine is active since %s", note.Began, note.Ended, node.ProvisionUpdatedAt)
				}
			})
		})
	}
}

// A service that fails is noted, too, also if Ironic makes the machine active again.
func TestService_failureIsNoted(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := operable("active")
		fake.Fail = func(_ fakeironic.Node, verb string) (failed string) {
			if verb == "service" {
				failed = "the firmware is broken"
			}
			return failed
		}
		if node, note, err := serviced(t, fake); err == nil || note == nil || !note.Failed || node.ProvisionState != "active" {
			t.Fatalf("%v %+v, the machine is %s", err, note, node.ProvisionState)
		}
	})
}

// The run after one that was killed during a service notes the service.
func TestService_ofAKilledRunIsNoted(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := operable("active")
		client := sitetest.NewClient(fake)
		if err := client.Ironic.ChangeProvisionState(t.Context(), "node-000",
			ironic.Order{Verb: "service", Steps: harmless.Steps}); err != nil {
			t.Fatal(err)
		}
		_, err := client.Of(t.Context(), "node-000", func(m *machine.Machine) error {
			err := m.ReachRest(t.Context(), true, time.Hour)
			m.NoteWork(t.Context())
			return err
		})
		node, read := client.Ironic.Node(t.Context(), "node-000")
		if err != nil || read != nil {
			t.Fatal(err, read)
		}
		if note := notes.WorkOf(node, notes.KeyService); note == nil || note.Failed || note.Ended.Sub(note.Began) != time.Minute {
			t.Errorf("the note is %+v", note)
		}
	})
}
