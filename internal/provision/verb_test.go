package provision_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// beforeVerb is a guard that calls itself right before a verb is sent.
type beforeVerb func() error

func (f beforeVerb) Check(_ context.Context, step provision.Step) error {
	if step.Stage == provision.BeforeVerb {
		return f()
	}
	return nil
}

// read returns a node as the client sees it.
func read(t *testing.T, client *site, ref string) *ironic.Node {
	t.Helper()
	node, err := client.Node(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func TestVerb_manageReservedNode(t *testing.T) {
	t.Parallel()
	fake := fleet(1)
	client := newClient(fake)
	fake.Set("node-000", "instance_uuid", "11111111-1111-1111-1111-111111111111")
	if err := client.Manage(t.Context(), read(t, client, "node-000")); err != nil {
		t.Fatal(err)
	}
	if node := nodeOf(t, fake, "node-000"); node.ProvisionState != "manageable" {
		t.Errorf("the node is %s, want manageable", node.ProvisionState)
	}
}

func TestProvide_doesNotAwaitCleaning(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(1, time.Hour)
		client := run(fake, upTo(1))
		start := time.Now()
		if err := client.Provide(t.Context(), read(t, client, "node-000"), time.Minute, nil); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("it took %s", took)
		}
		if node := nodeOf(t, fake, "node-000"); node.ProvisionState != "cleaning" {
			t.Errorf("the node is %s, want cleaning", node.ProvisionState)
		}
	})
}

func TestProvide_noSlot(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(2, time.Hour)
		client := run(fake, upTo(1))
		if err := client.Provide(t.Context(), read(t, client, "node-000"), time.Minute, nil); err != nil {
			t.Fatal(err)
		}
		prepared := false
		err := client.Provide(t.Context(), read(t, client, "node-001"), time.Minute, beforeVerb(func() error { prepared = true; return nil }))
		if !errors.Is(err, provision.ErrNoSlot) {
			t.Errorf("error = %v, want %v", err, provision.ErrNoSlot)
		}
		if prepared {
			t.Error("the second node was prepared though there was no room for it")
		}
		if sent := verbs(t, fake, read(t, client, "node-001").UUID); len(sent) > 0 {
			t.Errorf("the second node was sent %v", sent)
		}
	})
}

func TestProvide_limitOfIronic(t *testing.T) {
	t.Parallel()
	for _, limit := range []throttle.Limit{{}, upTo(5)} {
		inVirtualTime(t, func(t *testing.T) {
			fake := manageableFleet(2, time.Hour)
			fake.MaxConcurrentClean = 1
			fake.Reject = times(100, http.MethodPut, provisionPath(nodeOf(t, fake, "node-001").UUID), fault(http.StatusServiceUnavailable,
				"Unable to process request at this time. The concurrent action limit for cleaning has been reached."))
			client := run(fake, limit)
			err := client.Provide(t.Context(), read(t, client, "node-001"), time.Minute, nil)
			if !errors.Is(err, provision.ErrNoSlot) {
				t.Errorf("with a limit of %d hosts: error = %v, want %v", limit.Max, err, provision.ErrNoSlot)
			}
		})
	}
}

func TestProvide_failedPreparation(t *testing.T) {
	t.Parallel()
	fake := manageableFleet(1, time.Hour)
	client := run(fake, throttle.Limit{})
	wrong := errors.New("wrong")
	node := read(t, client, "node-000")
	if err := client.Provide(t.Context(), node, time.Minute, beforeVerb(func() error { return wrong })); !errors.Is(err, wrong) {
		t.Errorf("error = %v, want %v", err, wrong)
	}
	if sent := verbs(t, fake, node.UUID); len(sent) > 0 {
		t.Errorf("the node was sent %v", sent)
	}
}

func TestProvide_lostAnswer(t *testing.T) {
	t.Parallel()
	fake := manageableFleet(1, time.Hour)
	client := newClient(fake)
	node := read(t, client, "node-000")
	fake.Reject = once(http.MethodPut, provisionPath(node.UUID), lost())
	if err := client.Provide(t.Context(), node, time.Minute, nil); err != nil {
		t.Errorf("Provide: %v", err)
	}
	if sent := verbs(t, fake, node.UUID); !slices.Equal(sent, []string{"provide"}) {
		t.Errorf("the node was sent %v, want provide once", sent)
	}
}

func TestVerb_wrongStateIsBusy(t *testing.T) {
	t.Parallel()
	fake := manageableFleet(1, time.Hour)
	client := newClient(fake)
	node := read(t, client, "node-000")
	fake.Set("node-000", "provision_state", "deploying")
	if err := client.Manage(t.Context(), node); !provision.IsBusy(err) {
		t.Errorf("error = %v, want one that says busy", err)
	}
	if provision.IsBusy(&ironic.StatusError{Status: http.StatusBadRequest, Message: "no such argument"}) {
		t.Error("a wrong argument counts as busy")
	}
}
