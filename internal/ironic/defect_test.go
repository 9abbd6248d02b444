package ironic_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// defective is an Ironic that makes every patched node its own parent, with one node.
func defective() *fakeironic.Server {
	fake := fleet(1)
	fake.MaxMicroversion, fake.ParentNodeDefect = "1.96", true
	return fake
}

func TestDefect_refusedBeforeHarm(t *testing.T) {
	t.Parallel()
	for name, bound := range map[string]api.Microversion{"in its newest API": 0, "in an API too old to show it": 82} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := defective()
			client := newClient(fake, func(cfg *api.Config) { cfg.Microversion = bound })
			before := nodeOf(t, fake, "node-000")
			for range 2 {
				_, err := client.PatchNode(t.Context(), before.UUID, setting("/description", "new"))
				if !fault.Is(err, ironic.KindParentDefect) || fault.AboutOf[*ironic.Node](err, ironic.KindParentDefect) != nil {
					t.Fatalf("PatchNode = %v, want KindParentDefect that names no node", err)
				}
			}
			if after := nodeOf(t, fake, "node-000"); !ironic.SameJSON(after.Raw, before.Raw) {
				t.Errorf("the node has changed from %v to %v", before.Raw, after.Raw)
			}
			if n := len(fake.Nodes()); n != 1 {
				t.Errorf("%d nodes: the one for the test is left", n)
			}
			if n := count(fake, http.MethodPost, "/v1/nodes"); n != 1 {
				t.Errorf("it was tried out %d times, want once", n)
			}
		})
	}
}

func TestDefect_onlySuspectVersionsAreTested(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]int{"1.82": 0, "1.83": 1, "1.96": 1, "1.111": 1, "1.114": 1, "1.115": 0} {
		fake := fleet(1)
		fake.MaxMicroversion = version
		client := newClient(fake)
		for _, text := range []string{"one", "two"} {
			if _, err := client.PatchNode(t.Context(), nodeOf(t, fake, "node-000").UUID, setting("/description", text)); err != nil {
				t.Errorf("%s: %v", version, err)
			}
		}
		if n := count(fake, http.MethodPost, "/v1/nodes"); n != want || len(fake.Nodes()) != 1 {
			t.Errorf("%s: tried out %d times, %d nodes are left", version, n, len(fake.Nodes()))
		}
	}
}

func TestDefect_testNodeIsDeleted(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		for what, reject := range map[string]func(*http.Request) *fakeironic.Rejection{
			"the answer to its creation is lost": times(1, http.MethodPost, "/v1/nodes", lost()),
			"it cannot be patched": times(100, http.MethodPatch, "/v1/nodes",
				&fakeironic.Rejection{Status: http.StatusBadGateway}),
		} {
			fake := defective()
			fake.Reject = reject
			if _, err := newClient(fake).PatchNode(t.Context(), nodeOf(t, fake, "node-000").UUID,
				setting("/description", "new")); err == nil {
				t.Errorf("%s, and yet the node was changed", what)
			}
			if n := len(fake.Nodes()); n != 1 {
				t.Errorf("%s: %d nodes are left", what, n)
			}
		}
	})
}

func TestDefect_withoutRightToTest(t *testing.T) {
	t.Parallel()
	fake := defective()
	fake.AddFleet(1, "baremetal")
	fake.Reject = times(100, http.MethodPost, "/v1/nodes", answerOf(http.StatusForbidden, "Access was denied"))
	client := newClient(fake)
	_, err := client.PatchNode(t.Context(), nodeOf(t, fake, "node-000").UUID, setting("/description", "new"))
	if fault.AboutOf[*ironic.Node](err, ironic.KindParentDefect) == nil || !strings.Contains(err.Error(), "node-000") {
		t.Fatalf("PatchNode = %v, want KindParentDefect that names the node", err)
	}
	if _, err := client.PatchNode(t.Context(), nodeOf(t, fake, "node-001").UUID, setting("/description", "new")); !fault.Is(err,
		ironic.KindParentDefect) {
		t.Errorf("the next node: %v", err)
	}
	if parent := nodeOf(t, fake, "node-001").Raw["parent_node"]; parent != nil {
		t.Error("the next node was harmed too")
	}
	if n := count(fake, http.MethodPost, "/v1/nodes"); n != 1 {
		t.Errorf("it was tried %d times, want once", n)
	}
}

// A run is killed between the creation and the deletion of the test node. No discovery takes that node for a new machine, and the next run
// deletes it.
func TestDefect_killedTestIsCleanedUp(t *testing.T) {
	t.Parallel()
	for _, defective := range []bool{false, true} {
		inVirtualTime(t, func(t *testing.T) {
			fake := fleet(1)
			fake.MaxMicroversion, fake.ParentNodeDefect = "1.96", defective
			fake.Reject = times(100, http.MethodDelete, "/v1/nodes/", &fakeironic.Rejection{Status: http.StatusBadGateway})
			id := nodeOf(t, fake, "node-000").UUID
			_, _ = newClient(fake).PatchNode(t.Context(), id, setting("/description", "one"))
			left := slices.DeleteFunc(fake.Nodes(), func(n fakeironic.Node) bool { return n.UUID == id })
			if len(left) != 1 || left[0].Name == "" {
				t.Fatalf("%+v are left, want a node with a name", left)
			}
			fake.Reject = nil
			for _, step := range []struct {
				after time.Duration
				nodes int
			}{{time.Minute, 2}, {time.Hour, 1}} { // the test of a run at work stays
				time.Sleep(step.after)
				_, _ = newClient(fake).PatchNode(t.Context(), id, setting("/description", "two"))
				if n := len(fake.Nodes()); n != step.nodes {
					t.Errorf("defective: %t; after %s there are %d nodes, want %d", defective, step.after, n, step.nodes)
				}
			}
		})
	}
}
