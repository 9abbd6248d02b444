package ironic_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// losses are the ways in which the answer to a request that took effect does not arrive, and in which it took none.
var losses = map[string]*fakeironic.Rejection{
	"answer reset":          lost(),
	"answer a bad gateway":  {Status: http.StatusBadGateway, After: true},
	"request reset":         {Drop: true},
	"request a bad gateway": {Status: http.StatusBadGateway},
	"request refused":       answerOf(http.StatusServiceUnavailable, "Resource temporarily unavailable, please retry."),
}

// creations are the POSTs that must not happen twice; each returns a problem, or nil.
var creations = map[string]struct {
	path   string
	create func(ctx context.Context, client *ironic.Client, fake *fakeironic.Server) error
}{
	"node": {"/v1/nodes", func(ctx context.Context, client *ironic.Client, fake *fakeironic.Server) error {
		node, err := client.CreateNode(ctx, ironic.NewUUID(), ironic.Settings{"name": "web", "driver": "fake-hardware"})
		if err == nil && (node.Name != "web" || len(fake.Nodes()) != 2) {
			err = fmt.Errorf("node %+v, %d nodes", node, len(fake.Nodes()))
		}
		return err
	}},
	"allocation": {"/v1/allocations", func(ctx context.Context, client *ironic.Client, _ *fakeironic.Server) error {
		spec := ironic.AllocationSpec{UUID: ironic.NewUUID(), Name: "web", ResourceClass: "baremetal"}
		a, err := client.CreateAllocation(ctx, spec)
		if err == nil && a.UUID != spec.UUID {
			err = fmt.Errorf("allocation %+v", a)
		}
		if err == nil {
			_, err = client.Allocation(ctx, spec.UUID)
		}
		return err
	}},
	"port": {"/v1/ports", func(ctx context.Context, client *ironic.Client, fake *fakeironic.Server) error {
		id := fake.Nodes()[0].UUID
		_, err := client.CreatePort(ctx, id, ironic.PortSpec{Address: "52:54:00:aa:bb:01"})
		if err != nil {
			return err
		}
		ports, err := client.Ports(ctx, id)
		if err == nil && (len(ports) != 3 || ports["52:54:00:aa:bb:01"].NodeUUID != id) {
			err = fmt.Errorf("ports %v", ironic.Addresses(ports))
		}
		return err
	}},
}

func TestCreate_lostAnswer(t *testing.T) {
	t.Parallel()
	for what, creation := range creations {
		for how, loss := range losses {
			t.Run(what+", "+how, func(t *testing.T) {
				t.Parallel()
				inVirtualTime(t, func(t *testing.T) {
					fake := fleet(1)
					fake.Reject = times(2, http.MethodPost, creation.path, loss)
					if err := creation.create(t.Context(), newClient(fake), fake); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

func TestCreate_givesUp(t *testing.T) {
	t.Parallel()
	for what, creation := range creations {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				fake := fleet(1)
				fake.Reject = times(1000, http.MethodPost, creation.path, &fakeironic.Rejection{Status: http.StatusBadGateway})
				err := creation.create(t.Context(), newClient(fake), fake)
				if n := count(fake, http.MethodPost, creation.path); err == nil || n < 2 || n > 10 {
					t.Errorf("%d tries, %v", n, err)
				}
			})
		})
	}
}

func TestCreate_takenName(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(2)
		client := newClient(fake)
		start := time.Now()
		var status *api.StatusError
		_, err := client.CreateNode(t.Context(), ironic.NewUUID(), ironic.Settings{"name": "node-000", "driver": "fake-hardware"})
		if !errors.As(err, &status) || status.Status != http.StatusConflict {
			t.Errorf("Enroll = %v, want a conflict", err)
		}
		mac := "52:54:00:00:00:00" // of node-000
		if _, err := client.CreatePort(t.Context(), nodeOf(t, fake, "node-001").UUID, ironic.PortSpec{Address: mac}); !errors.As(err,
			&status) || status.Status != http.StatusConflict {
			t.Errorf("CreatePort = %v, want a conflict", err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("it took %s", took)
		}
	})
}

func TestCreate_interrupted(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(1)
		fake.Reject = times(1000, http.MethodPost, "/v1/nodes", &fakeironic.Rejection{Drop: true})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, err := newClient(fake).CreateNode(ctx, ironic.NewUUID(), ironic.Settings{"name": "web", "driver": "fake-hardware"})
		if took := time.Since(start); !api.IsInterrupted(err) || took != time.Second {
			t.Errorf("Enroll = %v after %s, want an interruption", err, took)
		}
	})
}

func TestCreate_enrollmentIsComplete(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	_, err := newClient(fake).CreateNode(t.Context(), ironic.NewUUID(), ironic.Settings{
		"name": "web", "driver": "fake-hardware",
		"driver_info": map[string]any{"deploy_kernel": "http://images/kernel"}, "extra": map[string]any{"rack": "12"},
		"resource_class": "baremetal", "description": "a machine", "lessee": "team-a", "shard": "s1",
		"properties": map[string]any{"cpus": 8}, "automated_clean": false, "deploy_interface": "direct",
	})
	if err != nil {
		t.Fatal(err)
	}
	node := nodeOf(t, fake, "web").Raw
	for field, want := range map[string]any{
		"driver": "fake-hardware", "resource_class": "baremetal", "description": "a machine", "lessee": "team-a", "shard": "s1",
		"automated_clean":  false,
		"deploy_interface": "direct", "provision_state": "enroll",
		"driver_info": map[string]any{"deploy_kernel": "http://images/kernel"}, "properties": map[string]any{"cpus": 8.0},
		"extra": map[string]any{"rack": "12"},
	} {
		if !ironic.SameJSON(node[field], want) {
			t.Errorf("%s = %v, want %v", field, node[field], want)
		}
	}
}
