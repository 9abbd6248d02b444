package keystonetest_test

import (
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// A lessee writes our mark of a reservation on a machine that its owner has reserved. Another run of the lessee takes nothing over.
func TestKeystone_forgedMarkTakesNothingOver(t *testing.T) {
	t.Parallel()
	s := start(t, ironicVariable)
	machine := s.node("kept")
	owner := site.StartAt(t, os.Getenv(ironicVariable), tokenOf(t, "a-member"))
	allocation := site.Text(owner.Must(http.MethodPost, "allocations",
		map[string]any{"name": s.Name("owner"), "resource_class": s.Class()})["uuid"])
	s.Await(machine, "instance_uuid", allocation)
	forger := site.StartAt(t, os.Getenv(ironicVariable), tokenOf(t, "b-member"))
	forger.Patch(machine, "add", "/extra/terraform_metal_reservation", map[string]any{
		"forged": map[string]any{"since": time.Now().Add(-time.Minute).UTC().Format(time.RFC3339), "instance": allocation},
	})
	w := workspace(t, openrc("b-admin"), life(s, "", acctest.Quoted(machine), "one"))
	timed(t, "the refusal", func() {
		if output, code := w.Run(acctest.Apply()...); code == 0 {
			t.Errorf("the lessee deployed over the allocation of the owner:\n%s", output)
		}
	})
	if n := s.Node(machine); n["provision_state"] != "available" || n["instance_uuid"] != allocation {
		t.Errorf("the machine is %v, reserved by %v, want %v", n["provision_state"], n["instance_uuid"], allocation)
	}
	w.Must("destroy", "-auto-approve")
	if n := s.Node(machine); n["instance_uuid"] != allocation {
		t.Errorf("after a destroy the machine is reserved by %v, want %v", n["instance_uuid"], allocation)
	}
	owner.Must(http.MethodDelete, "allocations/"+allocation, nil)
	s.Await(machine, "instance_uuid", nil)
	s.Patch(machine, "remove", "/extra/terraform_metal_reservation", nil)
}

// Two tenants use the limit at once. Neither waits for the other, whose machines it may not see, and neither fails.
func TestKeystone_twoTenantsWithALimit(t *testing.T) {
	t.Parallel()
	s := start(t, ironicVariable)
	var running []*acctest.Running
	for _, user := range []string{"a-member", "b-admin"} {
		machine := site.AddNode(t, s.Site, user, map[string]any{"owner": id(t, tenant(user))})
		w := workspace(t, openrc(user), provider("provisioning_limit = { max_concurrent = 1 }")+acctest.Deployment(acctest.Quoted(machine),
			acctest.Image("one")))
		defer w.Must("destroy", "-auto-approve")
		running = append(running, w.Start(acctest.Apply()...))
	}
	timed(t, "both", func() {
		for _, r := range running {
			if output, code := r.Wait(); code != 0 {
				t.Errorf("exit code %d\n%s", code, output)
			}
		}
	})
}

// A name that another tenant has is refused, at once, without the advice to import what cannot be seen.
func TestKeystone_nameOfAnotherTenant(t *testing.T) {
	t.Parallel()
	s := start(t, ironicVariable)
	site.AddNode(t, s.Site, "taken", map[string]any{"owner": id(t, "tenant-b")})
	w := workspace(t, openrc("a-admin"), provider()+acctest.HostBlock(s.Name("taken"), `driver = "fake-hardware"`))
	defer w.Must("destroy", "-auto-approve")
	timed(t, "the refusal", func() {
		acctest.NeverMention(t, acctest.Fails(t, w, acctest.Apply(), s.Name("taken")), "terraform import")
	})
}
