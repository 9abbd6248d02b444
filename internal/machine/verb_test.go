package machine_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// beforeVerb is a guard that calls itself right before a verb is sent.
type beforeVerb func() error

func (f beforeVerb) Check(_ context.Context, step machine.Step) error {
	if step.Stage == machine.BeforeVerb {
		return f()
	}
	return nil
}

// read returns a node as the client sees it.
func read(t *testing.T, client *sitetest.Client, ref string) *ironic.Node {
	t.Helper()
	node, err := client.Ironic.Node(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func TestVerb_manageReservedNode(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(1)
	client := sitetest.NewClient(fake)
	fake.Set("node-000", "instance_uuid", "11111111-1111-1111-1111-111111111111")
	if err := client.Manage(t.Context(), read(t, client, "node-000")); err != nil {
		t.Fatal(err)
	}
	if node := ironictest.NodeOf(t, fake, "node-000"); node.ProvisionState != "manageable" {
		t.Errorf("the node is %s, want manageable", node.ProvisionState)
	}
}

func TestProvide_doesNotAwaitCleaning(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(1, time.Hour)
		client := sitetest.Run(fake, sitetest.UpTo(1))
		start := time.Now()
		if err := client.Provide(t.Context(), read(t, client, "node-000"), time.Minute, nil); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("it took %s", took)
		}
		if node := ironictest.NodeOf(t, fake, "node-000"); node.ProvisionState != "cleaning" {
			t.Errorf("the node is %s, want cleaning", node.ProvisionState)
		}
	})
}

func TestProvide_noSlot(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(2, time.Hour)
		client := sitetest.Run(fake, sitetest.UpTo(1))
		if err := client.Provide(t.Context(), read(t, client, "node-000"), time.Minute, nil); err != nil {
			t.Fatal(err)
		}
		prepared := false
		err := client.Provide(t.Context(), read(t, client, "node-001"), time.Minute, beforeVerb(func() error {
			prepared = true
			return nil
		}))
		if !errors.Is(err, machine.ErrNoSlot) {
			t.Errorf("error = %v, want %v", err, machine.ErrNoSlot)
		}
		if prepared {
			t.Error("the second node was prepared though there was no room for it")
		}
		if sent := ironictest.Verbs(t, fake, read(t, client, "node-001").UUID); len(sent) > 0 {
			t.Errorf("the second node was sent %v", sent)
		}
	})
}

func TestProvide_limitOfIronic(t *testing.T) {
	t.Parallel()
	for _, limit := range []throttle.Limit{{}, sitetest.UpTo(5)} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := manageableFleet(2, time.Hour)
			fake.MaxConcurrentClean = 1
			fake.Reject = ironictest.Times(100, http.MethodPut, ironictest.ProvisionPath(ironictest.NodeOf(t, fake, "node-001").UUID),
				ironictest.Fault(http.StatusServiceUnavailable,
					"Unable to process request at this time. The concurrent action limit for cleaning has been reached."))
			client := sitetest.Run(fake, limit)
			err := client.Provide(t.Context(), read(t, client, "node-001"), time.Minute, nil)
			if !errors.Is(err, machine.ErrNoSlot) {
				t.Errorf("with a limit of %d hosts: error = %v, want %v", limit.Max, err, machine.ErrNoSlot)
			}
		})
	}
}

func TestProvide_failedPreparation(t *testing.T) {
	t.Parallel()
	fake := manageableFleet(1, time.Hour)
	client := sitetest.Run(fake, throttle.Limit{})
	wrong := errors.New("wrong")
	node := read(t, client, "node-000")
	if err := client.Provide(t.Context(), node, time.Minute, beforeVerb(func() error { return wrong })); !errors.Is(err, wrong) {
		t.Errorf("error = %v, want %v", err, wrong)
	}
	if sent := ironictest.Verbs(t, fake, node.UUID); len(sent) > 0 {
		t.Errorf("the node was sent %v", sent)
	}
}

func TestProvide_lostAnswer(t *testing.T) {
	t.Parallel()
	fake := manageableFleet(1, time.Hour)
	client := sitetest.NewClient(fake)
	node := read(t, client, "node-000")
	fake.Reject = ironictest.Once(http.MethodPut, ironictest.ProvisionPath(node.UUID), ironictest.Lost())
	if err := client.Provide(t.Context(), node, time.Minute, nil); err != nil {
		t.Errorf("Provide: %v", err)
	}
	if sent := ironictest.Verbs(t, fake, node.UUID); !slices.Equal(sent, []string{"provide"}) {
		t.Errorf("the node was sent %v, want provide once", sent)
	}
}

func TestVerb_wrongStateIsBusy(t *testing.T) {
	t.Parallel()
	fake := manageableFleet(1, time.Hour)
	client := sitetest.NewClient(fake)
	node := read(t, client, "node-000")
	fake.Set("node-000", "provision_state", "deploying")
	if err := client.Manage(t.Context(), node); !machine.IsBusy(err) {
		t.Errorf("error = %v, want one that says busy", err)
	}
	if machine.IsBusy(&api.StatusError{Status: http.StatusBadRequest, Message: "no such argument"}) {
		t.Error("a wrong argument counts as busy")
	}
}
