package ironic_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// concurrently calls f for each node, ten at a time as Terraform does.
func concurrently(fake *fakeironic.Server, f func(node fakeironic.Node)) {
	turns := make(chan struct{}, 10)
	var wg sync.WaitGroup
	for _, node := range fake.Nodes() {
		turns <- struct{}{}
		wg.Go(func() {
			f(node)
			<-turns
		})
	}
	wg.Wait()
}

func TestRefresh_thousandHostsTakeTenRequests(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(1000)
		client := newClient(fake)
		concurrently(fake, func(want fakeironic.Node) {
			node, err := client.NodeForRefresh(t.Context(), want.UUID)
			if err != nil || node.Name != want.Name {
				t.Errorf("node %s: %+v, %v", want.Name, node, err)
			}
			ports, err := client.PortsForRefresh(t.Context(), want.UUID)
			if err != nil || len(ports) != 2 {
				t.Errorf("ports of %s: %v, %v", want.Name, ports, err)
			}
		})
		if n := len(fake.Requests()); n > 10 {
			t.Errorf("%d requests, want at most 10", n)
		}
	})
}

func TestRefresh_missingNode(t *testing.T) {
	t.Parallel()
	fake := fleet(30)
	client := newClient(fake)
	gone := nodeOf(t, fake, "node-007")
	asOther(t, fake, http.MethodDelete, "nodes/"+gone.UUID, nil)
	refresh := func() {
		concurrently(fake, func(node fakeironic.Node) {
			if _, err := client.NodeForRefresh(t.Context(), node.UUID); err != nil {
				t.Errorf("%s: %v", node.Name, err)
			}
			if _, err := client.NodeForRefresh(t.Context(), gone.UUID); !api.IsNotFound(err) {
				t.Errorf("the deleted one: %v, want not found", err)
			}
		})
	}
	refresh()
}

func TestRefresh_seesOwnWrites(t *testing.T) {
	t.Parallel()
	fake := fleet(30)
	client := newClient(fake)
	changed := nodeOf(t, fake, "node-007").UUID
	refresh := func() {
		concurrently(fake, func(node fakeironic.Node) {
			if _, err := client.NodeForRefresh(t.Context(), node.UUID); err != nil {
				t.Errorf("%s: %v", node.Name, err)
			}
		})
	}
	refresh()
	var patch ironic.Patch
	patch.Set("/description", "new")
	if _, err := client.PatchNode(t.Context(), changed, patch); err != nil {
		t.Fatal(err)
	}
	if node, err := client.NodeForRefresh(t.Context(), changed); err != nil || node.Description != "new" {
		t.Errorf("after the write: %+v, %v", node, err)
	}
}

func TestRefresh_nodeWithoutPorts(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	client := newClient(fake)
	for i := range 30 {
		enrolled(t, client, fmt.Sprint("web-", i))
	}
	fake.ResetRequests()
	concurrently(fake, func(node fakeironic.Node) {
		if ports, err := client.PortsForRefresh(t.Context(), node.UUID); err != nil || len(ports) != 0 {
			t.Errorf("%s: %v, %v", node.Name, ports, err)
		}
	})
	if n := len(fake.Requests()); n > 3 {
		t.Errorf("%d requests, want two GETs and one list", n)
	}
}

func TestRefresh_allocations(t *testing.T) {
	t.Parallel()
	fake := fleet(30)
	client := newClient(fake)
	ids := map[string]string{}
	for _, node := range fake.Nodes() {
		id := ironic.NewUUID()
		ids[node.UUID] = id
		if _, err := client.CreateAllocation(t.Context(), ironic.AllocationSpec{
			UUID: id, ResourceClass: "baremetal",
			CandidateNodes: []string{node.UUID},
		}); err != nil {
			t.Fatal(err)
		}
	}
	fake.ResetRequests()
	concurrently(fake, func(node fakeironic.Node) {
		a, err := client.AllocationForRefresh(t.Context(), ids[node.UUID])
		if err != nil || a.NodeUUID != node.UUID || a.State != ironic.AllocationActive {
			t.Errorf("%s: %+v, %v", node.Name, a, err)
		}
	})
	if n := len(fake.Requests()); n > 3 {
		t.Errorf("%d requests, want two GETs and one list", n)
	}
}

func TestList_pagesBehindProxy(t *testing.T) {
	t.Parallel()
	fake := fleet(1100)
	client := newClient(nil, func(cfg *api.Config) { cfg.Transport = renamed{fake} })
	all, err := client.ListNodes(t.Context(), ironic.NodeFilter{})
	if err != nil || len(all) != 1100 {
		t.Fatalf("%d nodes, %v, want 1100", len(all), err)
	}
	for _, r := range fake.Requests() {
		if r.Path == "/v1/nodes" && !strings.Contains(r.Query, "include_children=true") {
			t.Errorf("a page without the filter: %s", r.Query)
		}
	}
}

// renamed is an Ironic behind a proxy, which calls itself by another name in its links.
type renamed struct{ fake *fakeironic.Server }

// RoundTrip sends on only what is meant for the proxy.
func (r renamed) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host != "ironic.test" {
		return nil, fmt.Errorf("a request to %s, which only the proxy can reach", req.URL.Host)
	}
	req = req.Clone(req.Context())
	req.Host, req.URL.Host = "10.0.0.1:6385", "10.0.0.1:6385"
	return r.fake.RoundTrip(req)
}

func TestList_filterOnEveryPage(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	fake.AddFleet(1010, "special")
	fake.AddFleet(50, "baremetal")
	all, err := newClient(fake).ListNodes(t.Context(), ironic.NodeFilter{ResourceClass: "special"})
	if err != nil || len(all) != 1010 {
		t.Errorf("%d nodes, %v, want 1010", len(all), err)
	}
}

func TestList_shiftedPages(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		deletions int
		works     bool
	}{"once": {1, true}, "always": {1000, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := fleet(1010)
			deletions := tc.deletions
			fake.Reject = func(r *http.Request) *fakeironic.Rejection {
				if marker := r.URL.Query().Get("marker"); marker != "" && deletions > 0 {
					deletions--
					asOther(t, fake, http.MethodDelete, "nodes/"+marker, nil)
				}
				return nil
			}
			all, err := newClient(fake).ListNodes(t.Context(), ironic.NodeFilter{})
			if tc.works != (err == nil) || (tc.works && len(all) != 1009) {
				t.Errorf("%d nodes, %v", len(all), err)
			}
			if api.IsNotFound(err) {
				t.Errorf("%v reads as if what was asked for did not exist", err)
			}
		})
	}
}

func TestRefresh_foreign404(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		for name, rejection := range map[string]*fakeironic.Rejection{
			"proxy without backend": {Status: http.StatusNotFound, Body: "default backend - 404"},
			"web server":            {Status: http.StatusNotFound, Body: "<html><title>404 Not Found</title></html>"},
			"keystone": {
				Status: http.StatusNotFound,
				Body:   `{"error": {"code": 404, "message": "The resource could not be found."}}`,
			},
			"empty": {Status: http.StatusNotFound},
		} {
			fake := fleet(1)
			id := nodeOf(t, fake, "node-000").UUID
			client := newClient(fake)
			all := func(*http.Request) *fakeironic.Rejection { return rejection }
			fake.Reject = all
			if _, err := client.NodeForRefresh(t.Context(), id); err == nil || api.IsNotFound(err) {
				t.Errorf("%s on first use: %v", name, err)
			}
			fake.Reject = nil
			if _, err := client.NodeForRefresh(t.Context(), id); err != nil {
				t.Errorf("%s has gone, and yet: %v", name, err)
			}
			fake.Reject = all
			_, err := client.NodeForRefresh(t.Context(), id)
			if err == nil || api.IsNotFound(err) {
				t.Errorf("%s later: %v", name, err)
			}
			var status *api.StatusError
			if !errors.As(err, &status) || !status.Foreign {
				t.Errorf("%s: %v, want one that is not Ironic's", name, err)
			}
			<-time.After(time.Minute)
		}
	})
}

func TestNodesForPlan_manyPlansShareOneList(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(60)
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			if strings.HasPrefix(r.URL.Path, "/v1/nodes") {
				<-time.After(time.Second)
			}
			return nil
		}
		client := newClient(fake)
		concurrently(fake, func(fakeironic.Node) {
			if all, err := client.NodesForPlan(t.Context()); err != nil || len(all) != 60 {
				t.Errorf("%d nodes, %v", len(all), err)
			}
		})
		if n := len(fake.Requests()); n > 2 { // the API version, and the list
			t.Errorf("%d requests, want at most 2", n)
		}
	})
}
