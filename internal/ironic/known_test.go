package ironic_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// emptyLists is a connection over which the next lists of nodes are empty.
type emptyLists struct {
	fake     *fakeironic.Server
	left     int
	requests []string
}

func (e *emptyLists) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "/nodes") {
		e.requests = append(e.requests, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/v1/"))
	}
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/nodes") && e.left > 0 {
		e.left--
		query := r.URL.Query()
		query.Set("owner", "nobody")
		r = r.Clone(r.Context())
		r.URL.RawQuery = query.Encode()
	}
	return e.fake.RoundTrip(r)
}

// wantRequests fails the test unless these requests were sent since the last call.
func (e *emptyLists) wantRequests(t *testing.T, want ...string) {
	t.Helper()
	if got := strings.Join(e.requests, ", "); got != strings.Join(want, ", ") {
		t.Errorf("the requests are %s; want %s", got, strings.Join(want, ", "))
	}
	e.requests = nil
}

// A list is still on its way when a later answer arrives: it may lack, or show as it was, nothing that was known before it was requested.
func TestListNodes_overtaken(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, wrong string }{
		"empty": {wrong: `{"nodes": []}`},
		"old":   {text: `"provision_updated_at":"`, wrong: `"provision_updated_at":"1`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				id := fake.Nodes()[0].UUID
				var client *ironic.Client
				lists := 0
				client = newClient(fake, func(cfg *api.Config) {
					cfg.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
						resp, err := fake.RoundTrip(r)
						if err != nil || !strings.HasSuffix(r.URL.Path, "/nodes") {
							return resp, err
						}
						if lists++; lists > 1 {
							return resp, err
						}
						time.Sleep(time.Second)
						if _, err := client.Node(t.Context(), id); err != nil {
							return nil, err
						}
						text := tt.wrong
						if tt.text != "" {
							right, _ := io.ReadAll(resp.Body)
							text = strings.Replace(string(right), tt.text+"2", tt.wrong, 1)
						}
						resp.Body = io.NopCloser(strings.NewReader(text))
						return resp, nil
					})
				})
				fake.Set(id, "provision_updated_at", time.Now().UTC().Format(time.RFC3339))
				if _, err := client.Node(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				all, err := client.ListNodes(t.Context(), ironic.NodeFilter{})
				if err != nil || len(all) != 1 || lists != 2 {
					t.Errorf("%d nodes from %d lists, %v", len(all), lists, err)
				}
			})
		})
	}
}

// A list from before an edit of extra by this process is no answer; one from after an edit by another client is.
func TestListNodes_fromBeforeAnEdit(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		id := fake.Nodes()[0].UUID
		var old, asked int
		client := newClient(fake, func(cfg *api.Config) {
			cfg.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
				resp, err := fake.RoundTrip(r)
				if asked++; old > 0 && err == nil && strings.HasSuffix(r.URL.Path, "/nodes") {
					old--
					text, _ := io.ReadAll(resp.Body)
					resp.Body = io.NopCloser(strings.NewReader(strings.ReplaceAll(string(text), `"note"`, `"former"`)))
				}
				return resp, err
			})
		})
		var patch ironic.Patch
		patch.Set("/extra/note", "ours")
		listed := func() any {
			all, err := client.ListNodeFields(t.Context(), ironic.NodeFilter{}, []string{"uuid", "extra"})
			if err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			return all[0].Extra["note"]
		}
		if _, err := client.PatchNode(t.Context(), id, patch); err != nil {
			t.Fatal(err)
		}
		if old = 1; listed() != "ours" {
			t.Error("a list from before the edit is believed")
		}
		if _, err := client.PatchNode(t.Context(), id, patch); err != nil {
			t.Fatal(err)
		}
		asOther(t, fake, http.MethodPatch, "nodes/"+id, []map[string]any{{"op": "add", "path": "/extra/note", "value": "theirs"}})
		if asked = 0; listed() != "theirs" || asked != 2 {
			t.Errorf("after an edit by another client, %d requests", asked)
		}
		if asked = 0; listed() != "theirs" || asked != 1 {
			t.Errorf("the second list takes %d requests", asked)
		}
	})
}

func TestListNodes_thatLacksAKnownNode(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(2)
		id := fake.Nodes()[0].UUID
		line := &emptyLists{fake: fake}
		client := newClient(fake, func(cfg *api.Config) { cfg.Transport = line })
		read := func(filter ironic.NodeFilter) (int, error) {
			all, err := client.ListNodes(t.Context(), filter)
			return len(all), err
		}
		if _, err := client.Node(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		line.wantRequests(t, "GET nodes/"+id)
		if n, err := read(ironic.NodeFilter{}); n != 2 || err != nil {
			t.Errorf("a complete list: %d, %v", n, err)
		}
		line.wantRequests(t, "GET nodes")
		line.left = 1
		if n, err := read(ironic.NodeFilter{}); n != 2 || err != nil {
			t.Errorf("an empty list, then a complete one: %d, %v", n, err)
		}
		first := min(fake.Nodes()[0].UUID, fake.Nodes()[1].UUID)
		line.wantRequests(t, "GET nodes", "GET nodes/"+first, "GET nodes")
		class := fake.Nodes()[0].ResourceClass
		line.left = 1
		if n, err := read(ironic.NodeFilter{ResourceClass: class}); n != 2 || err != nil {
			t.Errorf("an empty list of a class: %d, %v", n, err)
		}
		line.requests = nil
		if n, err := read(ironic.NodeFilter{ResourceClass: "none"}); n != 0 || err != nil {
			t.Errorf("a class without nodes: %d, %v", n, err)
		}
		line.wantRequests(t, "GET nodes")
		line.left = 99
		if n, err := read(ironic.NodeFilter{}); n != 0 || !fault.Is(err, ironic.KindIncomplete) {
			t.Errorf("empty lists only: %d, %v", n, err)
		}
		line.left, line.requests = 0, nil
		for _, n := range fake.Nodes() {
			other := newClient(fake)
			if err := other.DeleteNode(t.Context(), n.UUID); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := read(ironic.NodeFilter{}); n != 0 || err != nil {
			t.Errorf("all nodes are gone: %d, %v", n, err)
		}
		line.requests = nil
		if n, err := read(ironic.NodeFilter{}); n != 0 || err != nil {
			t.Errorf("all nodes are gone: %d, %v", n, err)
		}
		line.wantRequests(t, "GET nodes")
	})
}
