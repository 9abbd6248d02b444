package selection_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/selection"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// The names of allocations cost a list of them only when a machine has a new reservation.
func TestNamesOf_listsAllocationsOnlyForNewReservations(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(4)
		client := ironic.New(api.Config{Endpoint: "http://ironic.test", Auth: api.AuthNone, Transport: fake}, ironic.Polls{})
		followed := selection.Selection{}.Follow()
		reserve := func(name, node string) {
			ironictest.AsOther(t, fake, http.MethodPost, "allocations", map[string]any{
				"name": name, "resource_class": "baremetal",
				"candidate_nodes": []string{node},
			})
		}
		// names reads the machines twice, and returns the names of allocations by those of the nodes, and how often allocations were
		// listed.
		names := func() (map[string]string, int) {
			fake.ResetRequests()
			got := map[string]string{}
			for range 2 {
				listed, err := followed.List(t.Context(), client, []string{"uuid"})
				if err != nil {
					t.Fatal(err)
				}
				known, err := followed.NamesOf(t.Context(), client, listed)
				if err != nil {
					t.Fatal(err)
				}
				for i := range listed {
					if listed[i].InstanceUUID != "" {
						got[listed[i].Name] = known[listed[i].InstanceUUID]
					}
				}
			}
			return got, listsOfAllocations(fake)
		}
		for _, step := range []struct {
			what  string
			do    func()
			want  map[string]string
			lists int
		}{
			{"nothing is reserved", func() {}, map[string]string{}, 0},
			{"two allocations", func() {
				reserve("web-0", "node-000")
				reserve("web-1", "node-001")
			}, map[string]string{"node-000": "web-0", "node-001": "web-1"}, 1},
			{"nothing new", func() {}, map[string]string{"node-000": "web-0", "node-001": "web-1"}, 0},
			{"a reservation without an allocation", func() {
				fake.Set("node-002", "instance_uuid", "8f4e0f5e-50a4-4c4f-8d4f-9d4a3f0f0b11")
			}, map[string]string{"node-000": "web-0", "node-001": "web-1", "node-002": ""}, 1},
			{"an allocation goes, and its node is free", func() {
				ironictest.AsOther(t, fake, http.MethodDelete, "allocations/web-0", nil)
			}, map[string]string{"node-001": "web-1", "node-002": ""}, 0},
			{"one with another name comes", func() {
				reserve("db-0", "node-000")
			}, map[string]string{"node-000": "db-0", "node-001": "web-1", "node-002": ""}, 1},
		} {
			step.do()
			if got, lists := names(); !maps.Equal(got, step.want) || lists != step.lists {
				t.Errorf("%s: %v, %d lists of allocations; want %v, %d", step.what, got, lists, step.want, step.lists)
			}
		}
	})
}

// A user who may not list allocations sees the names of nodes, without an error, and asks once.
func TestNamesOf_withoutTheRight(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(2)
	for _, node := range []string{"node-000", "node-001"} {
		fake.Set(node, "instance_uuid", ironic.NewUUID())
	}
	fake.Reject = func(r *http.Request) *fakeironic.Rejection {
		if strings.HasSuffix(r.URL.Path, "/allocations") {
			return ironictest.Fault(http.StatusForbidden, "Access was denied")
		}
		return nil
	}
	client := ironic.New(api.Config{Endpoint: "http://ironic.test", Auth: api.AuthNone, Transport: fake}, ironic.Polls{})
	followed := selection.Selection{}.Follow()
	for range 3 {
		listed, err := followed.List(t.Context(), client, []string{"uuid"})
		if err != nil {
			t.Fatal(err)
		}
		if names, err := followed.NamesOf(t.Context(), client, listed); err != nil || len(names) > 0 {
			t.Errorf("%v, %v", names, err)
		}
	}
	if lists := listsOfAllocations(fake); lists != 1 {
		t.Errorf("%d lists of allocations", lists)
	}
}

func listsOfAllocations(fake *fakeironic.Server) (lists int) {
	for _, r := range fake.Requests() {
		if strings.HasSuffix(r.Path, "/allocations") && r.Method == http.MethodGet {
			lists++
		}
	}
	return lists
}
