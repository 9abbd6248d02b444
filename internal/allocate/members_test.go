package allocate_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

func TestMembersAreAsPlanned(t *testing.T) {
	t.Parallel()
	is, unknown, null := decide.Known[string], decide.Unknown[string](), decide.Value[string]{}
	for name, tt := range map[string]struct{ planned, now, want allocate.Member }{
		"new": {allocate.Member{unknown, unknown, unknown, unknown}, allocate.Member{
			is("a"), is("n"), is("web"),
			null,
		}, allocate.Member{is("a"), is("n"), is("web"), null}},
		"its node was renamed": {allocate.Member{is("a"), is("n"), is("web"), unknown}, allocate.Member{
			is("a"), is("n"), is("db"),
			is("r1"),
		}, allocate.Member{is("a"), is("n"), is("web"), is("r1")}},
		"its node got a name": {
			allocate.Member{is("a"), is("n"), null, null},
			allocate.Member{is("a"), is("n"), is("db"), null},
			allocate.Member{is("a"), is("n"), null, null},
		},
		"its allocation was deleted": {
			allocate.Member{is("a"), is("n"), is("web"), unknown},
			allocate.Member{},
			allocate.Member{is("a"), is("n"), is("web"), null},
		},
		"it has lost its node": {
			allocate.Member{is("a"), unknown, unknown, unknown},
			allocate.Member{is("a"), is("m"), null, is("r2")},
			allocate.Member{is("a"), is("m"), null, is("r2")},
		},
	} {
		got := allocate.AsPlanned(map[string]allocate.Member{"g-0": tt.planned}, map[string]allocate.Member{"g-0": tt.now, "g-1": tt.now})
		if got["g-0"] != tt.want || got["g-1"] != tt.now {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// moved reserves a node for a group of one on a fleet, and lets the member move.
func moved(
	t *testing.T, fleet int, before func(fake *fakeironic.Server, node string),
) (fake *fakeironic.Server, g *allocate.Group, left string, err error) {
	t.Helper()
	fake = ironictest.Fleet(fleet)
	client := sitetest.NewClient(fake)
	g = sitetest.GroupOf(1)
	if _, err := allocate.ReserveGroup(t.Context(), client.Site, g, time.Hour); err != nil {
		t.Fatal(err)
	}
	left = g.Members[0].NodeID
	before(fake, left)
	client = sitetest.NewClient(fake)
	g.Members[0].Move("now")
	g.EndQuarantine = func(_ context.Context, _ *machine.Site, node *ironic.Node, _ string) (bool, error) {
		fake.Set(node.UUID, "provision_state", "manageable")
		return true, nil
	}
	_, err = allocate.ReserveGroup(t.Context(), client.Site, g, time.Hour)
	return fake, g, left, err
}

// rawOf returns a node of the fake.
func rawOf(fake *fakeironic.Server, id string) map[string]any {
	for _, n := range fake.Nodes() {
		if n.UUID == id {
			return n.Raw
		}
	}
	return nil
}

// A move ends the quarantine that a killed run has begun on the node, which keeps its reason.
func TestMove_endsAQuarantine(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, g, left, err := moved(t, 3, func(fake *fakeironic.Server, node string) {
			fake.Set(node, "provision_state", "deploy failed")
			fake.Set(node, "retired", true)
			fake.Set(node, "retired_reason", "quarantine: it failed")
		})
		m, node := g.Members[0], rawOf(fake, left)
		if err != nil || m.NodeID == left || !m.Leaves.Done() || node["retired_reason"] != "quarantine: it failed" ||
			node["provision_state"] != "manageable" || node["instance_uuid"] != nil {
			t.Errorf("the member is %+v, the node is %v: %v", m, node, err)
		}
		wantReserved(t, fake, 1)
	})
}

// A member that cannot move keeps its node, which is not retired.
func TestMove_withoutAnotherNode(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, g, left, err := moved(t, 1, func(*fakeironic.Server, string) {})
		if _, detail := failure.Explain("", err); !strings.Contains(detail, "Members that were to move keep their nodes, which are not "+
			"retired: g-0 (node ") {
			t.Errorf("the error is %s", detail)
		}
		if node := rawOf(fake, left); g.Members[0].Leaves.Done() || node["retired"] == true || node["provision_state"] != "available" ||
			len(allocate.WithoutNode(g.Members)) > 0 {
			t.Errorf("the node is %v", node)
		}
		wantReserved(t, fake, 1)
	})
}

// Another client takes the last node at the last moment: the member has none then, and a warning says so.
func TestMove_losesTheRaceForTheLastNode(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(2)
		client, g := sitetest.NewClient(fake), sitetest.GroupOf(1)
		if _, err := allocate.ReserveGroup(t.Context(), client.Site, g, time.Hour); err != nil {
			t.Fatal(err)
		}
		left := g.Members[0].NodeID
		client = sitetest.NewClient(fake, func(cfg *machine.Config) {
			cfg.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPost && r.URL.Path == "/v1/allocations" {
					for _, n := range fake.Nodes() {
						if n.UUID != left {
							fake.Set(n.UUID, "instance_uuid", ironic.NewUUID())
						}
					}
				}
				return fake.RoundTrip(r)
			})
		})
		g.Members[0].Move("now")
		_, err := allocate.ReserveGroup(t.Context(), client.Site, g, time.Hour)
		notices := allocate.WithoutNode(g.Members)
		if !failure.Is(err, allocate.KindShortGroup) || rawOf(fake, left)["retired"] != true || len(notices) != 1 ||
			!strings.Contains(notices[0].Detail, "g-0 (node ") {
			t.Errorf("the warnings are %v: %v", notices, err)
		}
	})
}
