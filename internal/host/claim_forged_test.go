package host_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// Each user who may edit extra may write a mark. A node of another owner or lessee, one that others have reserved, and one whose mark is
// old are not taken over: the error names the node and says how to import it, and nothing is written to the node.
func TestCreation_markAloneTakesNothingOver(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(fake *fakeironic.Server, node string){
		"owner is project p3":  func(fake *fakeironic.Server, node string) { fake.Set(node, "owner", "p3") },
		"lessee is project p3": func(fake *fakeironic.Server, node string) { fake.Set(node, "lessee", "p3") },
		"which no killed run has made": func(fake *fakeironic.Server, node string) {
			fake.Set(node, "provision_state", "available")
			fake.Set(node, "instance_uuid", ironic.NewUUID())
		},
		"more than 24 hours ago": func(*fakeironic.Server, string) { time.Sleep(25 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, who := &fakeironic.Server{}, sitetest.MachineOf(1)
				sitetest.Begin(t, sitetest.NewClient(fake), who)
				change(fake, who.Name)
				time.Sleep(time.Second)
				next, writes := sitetest.NewClient(fake), ironictest.Count(fake, http.MethodPatch, "/v1/nodes/")
				_, err := host.Admit(t.Context(), next.Site, sitetest.TheSame(who), sitetest.InAnHour())
				if !failure.Is(err, host.KindTaken) {
					t.Fatalf("%v, want an error of KindTaken", err)
				}
				if _, detail := failure.Explain("enroll", err); !strings.Contains(detail, name) ||
					!strings.Contains(detail, "terraform import <address of the metal_host> "+who.Name) {
					t.Errorf("the error says %q", detail)
				}
				if now := ironictest.Count(fake, http.MethodPatch, "/v1/nodes/"); now != writes {
					t.Errorf("%d edits were sent", now-writes)
				}
			})
		})
	}
}

// A discovery record of a node that belongs to another project is not believed, either.
func TestAdmit_discoveredNodeOfOtherOwner(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		fake.Set("node-000", "provision_state", "enroll")
		fake.Set("node-000", "extra", map[string]any{"terraform_metal_discovery": map[string]any{
			"v": 1, "owner": "rack",
			"name": "node-000",
		}})
		who := host.Candidate{UUID: ironic.NewUUID(), Name: "node-000", Driver: "redfish"}
		fake.Set("node-000", "owner", "p3")
		if found, err := host.Admit(t.Context(), sitetest.NewClient(fake).Site, who, sitetest.InAnHour()); !failure.Is(err,
			host.KindTaken) || host.TakenOf(err).Obstacle == "" {
			t.Errorf("%+v, %v", found, err)
		}
		fake.Set("node-000", "owner", nil)
		if found, err := host.Admit(t.Context(), sitetest.NewClient(fake).Site, who, sitetest.InAnHour()); err != nil || found == nil {
			t.Errorf("without an owner: %+v, %v", found, err)
		}
	})
}

// A mark for an instance UUID that no run of the provider has made, or for an allocation that the deployment does not name, is forged.
func TestCreation_forgedReservation(t *testing.T) {
	t.Parallel()
	for _, byAllocation := range []bool{false, true} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := ironictest.Fleet(1)
			instanceID := ironic.NewUUID()
			if byAllocation {
				a, err := sitetest.Allocate(t.Context(), sitetest.NewClient(fake), ironic.AllocationSpec{
					UUID: instanceID, Name: "theirs",
					ResourceClass: "baremetal",
				})
				if err != nil {
					t.Fatal(err)
				}
				instanceID = a.UUID
			} else {
				fake.Set("node-000", "instance_uuid", instanceID)
			}
			mark := map[string]any{
				"since": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), "instance": instanceID,
				"origin": "guess",
			}
			fake.Set("node-000", "extra", map[string]any{string(notes.MarkReservation): map[string]any{ironic.NewUUID(): mark}})
			m, err := sitetest.NewClient(fake).Machine(t.Context(), "node-000")
			if err != nil {
				t.Fatal(err)
			}
			if _, by, err := deploy.ReserveNew(t.Context(), m, deploy.Deployment{}, "", sitetest.InAnHour()); !failure.Is(err,
				machine.KindReserved) || by != nil {
				t.Errorf("by an allocation: %t; taken over from %v, %v", byAllocation, by, err)
			}
			if err := errors.Join(m.Refresh(t.Context())); err != nil || deploy.LostDeployment(sitetest.NewClient(fake).Site, m.Node(), "",
				"", true) != nil {
				t.Errorf("the plan announces a take-over, %v", err)
			}
		})
	}
}

// A group does not release an allocation of another project that bears its mark.
func TestGroup_leftoverOfOtherOwner(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(3)
		for name, owner := range map[string]any{"g-1": nil, "g-2": "p3"} {
			mark := map[string]any{"since": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), "group": "g"}
			ironictest.AsOther(t, fake, http.MethodPost, "allocations", map[string]any{
				"name": name, "resource_class": "baremetal", "owner": owner,
				"extra": map[string]any{string(notes.MarkCreation): map[string]any{ironic.NewUUID(): mark}},
			})
		}
		if found, err := allocate.FindLeftovers(t.Context(), sitetest.NewClient(fake).Site, sitetest.GroupOf(1)); err != nil ||
			len(found) != 1 || found[0] != "g-1" {
			t.Errorf("the leftovers are %v (%v), want g-1", found, err)
		}
	})
}
