package machine_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

func TestPatch_lostExtraIsRewritten(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(1)
	fake.Set("node-000", "extra", map[string]any{"old": 1.0})
	id := ironictest.NodeOf(t, fake, "node-000").UUID
	lostTwice := 0
	fake.Reject = func(r *http.Request) *fakeironic.Rejection {
		if r.Method == http.MethodGet && r.URL.Path == "/v1/nodes/"+id && ironictest.Count(fake, http.MethodPatch, "/v1/nodes/"+
			id) > lostTwice && lostTwice < 2 {
			lostTwice++
			fake.Set(id, "extra", map[string]any{"theirs": 1.0}) // read before our write, written after it
		}
		return nil
	}
	patch := sitetest.Setting("/extra/ours", 2)
	patch.Remove("/extra/old")
	node, err := sitetest.NewClient(fake).PatchNode(t.Context(), id, patch)
	if want := map[string]any{"theirs": 1, "ours": 2}; err != nil || !ironic.SameJSON(node.Extra, want) {
		t.Fatalf("%+v, %v", node, err)
	}
	if extra := ironictest.NodeOf(t, fake, id).Raw["extra"]; lostTwice != 2 ||
		!ironic.SameJSON(extra, map[string]any{"theirs": 1, "ours": 2}) {
		t.Errorf("extra is %v after %d lost writes", extra, lostTwice)
	}
}

func TestPatch_extraOverwrittenByOthers(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(1)
	id := ironictest.NodeOf(t, fake, "node-000").UUID
	fake.Reject = func(r *http.Request) *fakeironic.Rejection {
		if r.Method == http.MethodGet && r.URL.Path == "/v1/nodes/"+id {
			fake.Set(id, "extra", map[string]any{"theirs": 1.0})
		}
		return nil
	}
	_, err := sitetest.NewClient(fake).PatchNode(t.Context(), id, sitetest.Setting("/extra/ours", 2))
	if err == nil || !strings.Contains(err.Error(), "other clients keep overwriting extra") {
		t.Errorf("%v", err)
	}
}

// Extra is read back. That this fails does not undo the patch.
func TestPatch_failedReadBack(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(1)
	id := ironictest.NodeOf(t, fake, "node-000").UUID
	fake.Reject = func(r *http.Request) *fakeironic.Rejection {
		if r.Method == http.MethodGet && ironictest.Count(fake, http.MethodPatch, "/v1/nodes/"+id) > 0 {
			return &fakeironic.Rejection{Status: http.StatusForbidden}
		}
		return nil
	}
	node, err := sitetest.NewClient(fake).PatchNode(t.Context(), id, sitetest.Setting("/extra/ours", 2))
	if err == nil || node == nil || node.UUID != id {
		t.Errorf("%+v, %v", node, err)
	}
}
