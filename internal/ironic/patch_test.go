package ironic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

func setting(path string, value any) ironic.Patch {
	var p ironic.Patch
	p.Set(path, value)
	return p
}

func removing(path string) ironic.Patch {
	var p ironic.Patch
	p.Remove(path)
	return p
}

func TestPatch_changesNamedAttributes(t *testing.T) {
	t.Parallel()
	fake := fleet(1)
	fake.Set("node-000", "extra", map[string]any{"theirs": 1.0, "old": 2.0})
	client := newClient(fake)
	patch := setting("/description", "a machine")
	patch.Set("/automated_clean", false)
	patch.Set("/extra/ours", map[string]any{"a": []any{}})
	patch.Set("/properties/cpus", 64)
	patch.Remove("/extra/old")
	node, err := client.PatchNode(t.Context(), nodeOf(t, fake, "node-000").UUID, patch)
	if err != nil {
		t.Fatal(err)
	}
	if node.Description != "a machine" || node.AutomatedClean == nil || *node.AutomatedClean ||
		!ironic.SameJSON(node.Extra, map[string]any{"theirs": 1, "ours": map[string]any{"a": []any{}}}) {
		t.Errorf("%+v", node)
	}
	if node.Properties["memory_mb"] == nil || !ironic.SameJSON(node.Properties["cpus"], 64) {
		t.Errorf("properties %v: want the others to survive", node.Properties)
	}
}

// Notes are numbers, among others: they must have one type, whichever answer they come from.
func TestPatch_answersAsReadsDo(t *testing.T) {
	t.Parallel()
	fake := fleet(1)
	client := newClient(fake)
	id := nodeOf(t, fake, "node-000").UUID
	patched, err := client.PatchNode(t.Context(), id, setting("/extra/count", 3))
	if err != nil {
		t.Fatal(err)
	}
	read, err := client.Node(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for name, node := range map[string]*ironic.Node{"patch": patched, "read": read} {
		if n, ok := document.Number(node.Extra["count"]); !ok || n != 3 {
			t.Errorf("%s: the number is %T %v", name, node.Extra["count"], node.Extra["count"])
		}
	}
}

func TestPatch_removes(t *testing.T) {
	t.Parallel()
	fake := fleet(1)
	client := newClient(fake)
	id := nodeOf(t, fake, "node-000").UUID
	for path, value := range map[string]any{
		"/automated_clean": true, "/description": "a", "/owner": "team-a", "/lessee": "team-a", "/resource_class": "other", "/shard": "s1",
		"/deploy_interface": "direct", "/extra/key": 1, "/instance_info/key": 1, "/driver_info/key": "v", "/properties/key": "v",
	} {
		for _, patch := range []ironic.Patch{setting(path, value), removing(path)} {
			if _, err := client.PatchNode(t.Context(), id, patch); err != nil {
				t.Errorf("%v: %v", patch, err)
			}
		}
	}
	if _, err := client.PatchNode(t.Context(), id, removing("/conductor_group")); err != nil {
		t.Errorf("conductor_group: %v", err)
	}
}

func TestPatch_empty(t *testing.T) {
	t.Parallel()
	fake := fleet(1)
	if node, err := newClient(fake).PatchNode(t.Context(), nodeOf(t, fake, "node-000").UUID, nil); err != nil || node.Name != "node-000" {
		t.Errorf("%+v, %v", node, err)
	}
	if count(fake, http.MethodPatch, "/") != 0 {
		t.Error("a PATCH was sent")
	}
}

func TestPatch_lostAnswerOfRemoval(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(1)
		fake.Set("node-000", "extra", map[string]any{"old": 1.0})
		fake.Set("node-000", "instance_info", map[string]any{"old": 1.0})
		id := nodeOf(t, fake, "node-000").UUID
		patch := removing("/extra/old")
		patch.Remove("/instance_info/old")
		patch.Set("/instance_info/new", 2)
		fake.Reject = once(http.MethodPatch, "/v1/nodes/"+id, lost())
		node, err := newClient(fake).PatchNode(t.Context(), id, patch)
		if err != nil || len(node.Extra) != 0 || !ironic.SameJSON(node.InstanceInfo, map[string]any{"new": 2}) {
			t.Errorf("%+v, %v", node, err)
		}
	})
}

func TestPatch_onePerNodeAtATime(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(2)
		under := map[string]bool{}
		var mu sync.Mutex
		client := newClient(nil, func(cfg *api.Config) {
			cfg.Transport = transport(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPatch {
					mu.Lock()
					if under[r.URL.Path] {
						t.Errorf("two PATCHes of %s at once", r.URL.Path)
					}
					under[r.URL.Path] = true
					mu.Unlock()
					<-time.After(time.Second)
					defer func() {
						mu.Lock()
						defer mu.Unlock()
						under[r.URL.Path] = false
					}()
				}
				return fake.RoundTrip(r)
			})
		})
		start := time.Now()
		var wg sync.WaitGroup
		for _, node := range fake.Nodes() {
			for i := range 8 {
				wg.Go(func() {
					if _, err := client.PatchNode(t.Context(), node.UUID, setting(fmt.Sprint("/extra/k", i), i)); err != nil {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		for _, node := range fake.Nodes() {
			if extra, _ := node.Raw["extra"].(map[string]any); len(extra) != 8 {
				t.Errorf("extra of %s is %v, want all 8 keys", node.Name, extra)
			}
		}
		if took := time.Since(start); took != 8*time.Second {
			t.Errorf("it took %s, want 8s: different nodes do not wait for each other", took)
		}
	})
}

func TestPatch_waitEndsWithContext(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(1)
		id := nodeOf(t, fake, "node-000").UUID
		client := newClient(nil, func(cfg *api.Config) {
			cfg.Transport = transport(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPatch {
					<-time.After(30 * time.Second)
				}
				return fake.RoundTrip(r)
			})
		})
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := client.PatchNode(t.Context(), id, setting("/extra/first", 1)); err != nil {
				t.Error(err)
			}
		})
		<-time.After(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		if _, err := client.PatchNode(ctx, id, setting("/extra/second", 1)); !api.IsInterrupted(err) || time.Since(start) != time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		wg.Wait()
		if _, err := client.PatchNode(t.Context(), id, setting("/extra/third", 1)); err != nil {
			t.Error(err)
		}
	})
}

func TestPatch_waitsForLock(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(1)
		id := nodeOf(t, fake, "node-000").UUID
		fake.Set(id, "reservation", "localhost")
		time.AfterFunc(5*time.Second, func() { fake.Set(id, "reservation", nil) })
		if _, err := newClient(fake).PatchNode(t.Context(), id, setting("/description", "new")); err != nil {
			t.Error(err)
		}
		fake.Set(id, "reservation", "localhost")
		start := time.Now()
		_, err := newClient(fake).PatchNode(t.Context(), id, setting("/description", "newer"))
		var status *api.StatusError
		if !errors.As(err, &status) || status.Status != http.StatusConflict || time.Since(start) > 20*time.Second {
			t.Errorf("%v after %s, want the conflict in seconds", err, time.Since(start))
		}
	})
}

func TestPatch_driverResetsInterfaces(t *testing.T) {
	t.Parallel()
	fake := fleet(1)
	fake.Set("node-000", "provision_state", "manageable")
	patch := setting("/driver", "ipmi")
	patch.Set("/driver_info/ipmi_address", "192.0.2.1")
	node, err := newClient(fake).PatchNode(t.Context(), nodeOf(t, fake, "node-000").UUID, patch)
	if err != nil || node.PowerInterface != "ipmitool" {
		t.Errorf("%+v, %v", node, err)
	}
}

func TestTraits_oneByOne(t *testing.T) {
	t.Parallel()
	fake := fleet(1)
	fake.Set("node-000", "traits", []any{"CUSTOM_OLD", "CUSTOM_THEIRS"})
	id := nodeOf(t, fake, "node-000").UUID
	client := newClient(fake)
	if err := client.SetTraits(t.Context(), id, []string{"CUSTOM_NEW"}, []string{"CUSTOM_OLD", "CUSTOM_NEVER"}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(nodeOf(t, fake, id).Traits, " "); got != "CUSTOM_NEW CUSTOM_THEIRS" {
		t.Errorf("traits %s", got)
	}
	if err := client.SetTraits(t.Context(), id, []string{"lower"}, nil); err == nil || !strings.Contains(err.Error(), "add trait lower") {
		t.Errorf("%v, want an error that names the trait", err)
	}
}

func TestPatch_impossibleKeys(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"team": true, "cpu_arch": true, "k-1": true, "": false, "cpu.arch": false, "a/b": false, "a b": false, "a:b": false, "ä": false,
	} {
		if got := ironic.ValidKey(key); got != want {
			t.Errorf("ValidKey(%q) = %t", key, got)
		}
	}
}

// Numbers are compared by their value and in full, as Ironic keeps them.
func TestSameJSON(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b any
		want bool
	}{
		{4, 4.0, true},
		{json.Number("4"), json.Number("4.0"), true},
		{json.Number("1e3"), 1000, true},
		{"4", 4, false},
		{json.Number("9007199254740993"), json.Number("9007199254740992"), false},
		{map[string]any{"a": []any{json.Number("1.50")}}, map[string]any{"a": []any{1.5}}, true},
		{map[string]any{"a": json.Number("9007199254740993")}, map[string]any{"a": json.Number("9007199254740994")}, false},
		{nil, map[string]any{}, false},
	} {
		if got := ironic.SameJSON(tt.a, tt.b); got != tt.want {
			t.Errorf("%v and %v: %t", tt.a, tt.b, got)
		}
		if got := ironic.Spelling(tt.a) == ironic.Spelling(tt.b); got != tt.want {
			t.Errorf("spellings of %v and %v: %t", tt.a, tt.b, got)
		}
	}
}
