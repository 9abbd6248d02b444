package ironic_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// A list for a configuration that was empty is found out when a resource has one of its nodes. What it lacked with reason is not asked for.
func TestNodesForConfiguration_thatLackANodeOfAResource(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		filter   ironic.NodeFilter
		empty    int
		since    bool // the node has changed since the list
		want     bool
		requests int
	}{
		"complete":           {requests: 2},
		"empty":              {empty: 1, want: true, requests: 3},
		"of another class":   {filter: ironic.NodeFilter{ResourceClass: "none"}, requests: 2},
		"changed since":      {filter: ironic.NodeFilter{DescriptionContains: "new"}, since: true, requests: 2},
		"empty all the time": {empty: 99, want: true, requests: 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				id := fake.Nodes()[0].UUID
				line := &emptyLists{fake: fake}
				client := newClient(fake, func(cfg *api.Config) { cfg.Transport = line })
				if _, err := client.Microversion(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				line.left, line.requests = tt.empty, nil
				if _, err := client.NodesForConfiguration(t.Context(), tt.filter); err != nil {
					t.Fatal(err)
				}
				if time.Sleep(time.Second); tt.since {
					fake.Set(id, "description", "new")
					fake.Set(id, "updated_at", time.Now().UTC().Format(time.RFC3339))
				}
				_, err := client.NodeForRefresh(t.Context(), id)
				if fault.Is(err, ironic.KindIncomplete) != tt.want || !tt.want && err != nil {
					t.Errorf("the error is %v", err)
				}
				if len(line.requests) != tt.requests {
					t.Errorf("the requests are %v", line.requests)
				}
			})
		})
	}
}

func TestAllocationsForConfiguration_thatLackOneOfAResource(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		client := newClient(fake)
		made, err := client.CreateAllocation(t.Context(), ironic.AllocationSpec{
			UUID: ironic.NewUUID(), Name: "a", ResourceClass: fake.Nodes()[0].ResourceClass,
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		for class, want := range map[string]bool{"none": false, made.ResourceClass: true} {
			other := newClient(fake, func(cfg *api.Config) { cfg.Transport = listedOnce(fake, "/allocations", `{"allocations": []}`) })
			if all, err := other.AllocationsForConfiguration(t.Context(), map[string][]string{"resource_class": {class}}); len(all) > 0 || err != nil {
				t.Fatal(all, err)
			}
			if _, err := other.AllocationForRefresh(t.Context(), made.UUID); fault.Is(err, ironic.KindIncomplete) != want {
				t.Errorf("after a list of class %s without it: %v", class, err)
			}
		}
	})
}

// listedOnce answers the first list at a path with a text.
func listedOnce(fake http.RoundTripper, path, text string) http.RoundTripper {
	answered := false
	return ironictest.Transport(func(r *http.Request) (*http.Response, error) {
		resp, err := fake.RoundTrip(r)
		if err == nil && !answered && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, path) {
			answered, resp.Body = true, io.NopCloser(strings.NewReader(text))
		}
		return resp, err
	})
}
