package host_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/identity"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// wantInUse fails the test unless an error says, in seconds, that a machine in use would change hands, and nothing was written since.
func wantInUse(t *testing.T, fake *fakeironic.Server, began time.Time, err error) {
	t.Helper()
	if !failure.Is(err, host.KindTaken) || !host.TakenOf(err).InUse {
		t.Errorf("the error is %v", err)
	}
	if waited := time.Since(began); waited > 10*time.Second {
		t.Errorf("it has waited for %s", waited)
	}
	for _, r := range fake.Requests() {
		if r.Method != http.MethodGet {
			t.Errorf("sent: %s %s", r.Method, r.Path)
		}
	}
}

// What is in use when an apply comes to it never changes hands, though the same run gives its name, BMC and addresses away or deletes it:
// the answer of the plan may be old.
func TestMove_refusesMachinesInUse(t *testing.T) {
	t.Parallel()
	for _, what := range []identity.Kind{identity.Name, identity.BMC, identity.Address, identity.Bond} {
		for _, usesOwn := range []bool{false, true} {
			for _, ends := range []bool{false, true} {
				ironictest.InVirtualTime(t, func(t *testing.T) {
					fake := &fakeironic.Server{}
					site := sitetest.NewClient(fake)
					had := movers(t, site, 2)
					gets, gives := had[0], had[1]
					takes(&gets, what, gives)
					used := gives
					if usesOwn {
						used = gets
					}
					fake.Set(used.UUID, "provision_state", "active")
					host.PlanMove(site.Site, host.Intent{Candidate: host.Candidate{UUID: gives.UUID, Name: "x"}, Open: !ends, Ends: ends})
					fake.ResetRequests()
					began := time.Now()
					wantInUse(t, fake, began, host.Move(t.Context(), site.Site, gets, nil, sitetest.InAnHour()))
				})
			}
		}
	}
}

// A new host does not wait for a machine in use, either, though the same run is about to undeploy it.
func TestAdmit_refusesMachinesInUse(t *testing.T) {
	t.Parallel()
	for _, what := range []identity.Kind{identity.Name, identity.BMC, identity.Address, identity.Bond} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := &fakeironic.Server{}
			site := sitetest.NewClient(fake)
			had := movers(t, site, 1)[0]
			who := host.Intent{Candidate: sitetest.Candidate(7)}
			wantFree(t, site, sitetest.Candidate(8)) // reads the lists, in which the machine is free
			takes(&who, what, had)
			fake.Set(had.UUID, "instance_uuid", "0b5be5de-0000-4000-8000-000000000001")
			defer host.Deleting(site.Site, had.UUID)(false)
			fake.ResetRequests()
			began := time.Now()
			_, err := host.Admit(t.Context(), site.Site, who.Candidate, sitetest.InAnHour())
			wantInUse(t, fake, began, err)
		})
	}
}
