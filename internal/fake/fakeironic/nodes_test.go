package fakeironic_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

const someUUID = "11111111-2222-4333-8444-555555555555"

func TestNode_secretsAreMaskedAtAnyDepth(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	a.node("n1", map[string]any{
		"driver_info": map[string]any{
			"ipmi_password": "geheim", "my_PassWord_x": "geheim", "nested": map[string]any{"token": "geheim"}, "passwd": "open",
			"address": "open",
		},
		"instance_info": map[string]any{"configdrive": "geheim", "image_url": "geheim", "image_source": "open"},
		"extra":         map[string]any{"password": "open"},
	})
	for _, path := range []string{"/v1/nodes/n1", "/v1/nodes/detail", "/v1/nodes?fields=driver_info,instance_info,extra"} {
		got := a.do(http.MethodGet, path, nil)
		if strings.Contains(got.text, "geheim") || strings.Count(got.text, "******") != 5 || strings.Count(got.text, `"open"`) != 4 {
			t.Errorf("GET %s = %s, want 5 masked and 4 open values", path, got.text)
		}
	}
}

func TestNode_patchStoresStars(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	a.node("n1", map[string]any{"driver_info": map[string]any{"ipmi_password": "geheim", "ipmi_address": "10.0.0.1"}})
	password := func() any {
		n, _ := a.fake.Node("n1")
		info, _ := n.Raw["driver_info"].(map[string]any)
		return info["ipmi_password"]
	}
	a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1", patch("add", "/driver_info/ipmi_address", "10.0.0.2"))
	if password() != "geheim" {
		t.Errorf("password after a patch of another key = %v, want the real one", password())
	}
	a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1", patch("replace", "/driver_info/ipmi_password", "******"))
	if password() != "******" {
		t.Errorf("password = %v, want six stars", password())
	}
}

func TestNode_patchIsAtomic(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	a.node("n1", nil)
	a.refused(http.StatusBadRequest, "nope", http.MethodPatch, "/v1/nodes/n1",
		append(patch("add", "/extra/a", 1), patch("remove", "/extra/nope", nil)...))
	if n, _ := a.fake.Node("n1"); fmt.Sprint(n.Raw["extra"]) != "map[]" {
		t.Errorf("extra = %v, want nothing of the failed patch", n.Raw["extra"])
	}
}

func TestNode_newDriverNeedsResetInterfaces(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	a.node("n1", nil)
	a.refused(http.StatusBadRequest, "can only be used when changing the node's driver", http.MethodPatch,
		"/v1/nodes/n1?reset_interfaces=true",
		patch("add", "/extra/a", 1))
	got := a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1?reset_interfaces=true", patch("add", "/driver", "redfish"))
	if got["power_interface"] != "redfish" || got["deploy_interface"] != "autodetect" {
		t.Errorf("interfaces are %v and %v, want redfish and autodetect", got["power_interface"], got["deploy_interface"])
	}
}

func TestNode_instanceUUIDIsSetOnce(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	a.node("n1", nil)
	a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1", patch("add", "/instance_uuid", someUUID))
	a.refused(http.StatusConflict, "is associated with instance "+someUUID, http.MethodPatch, "/v1/nodes/n1",
		append(patch("add", "/instance_uuid", "99999999-2222-4333-8444-555555555555"), patch("add", "/name", "mine")...))
	if _, renamed := a.fake.Node("mine"); renamed {
		t.Error("the loser's name was applied")
	}
}

func TestNode_parentNodeDefectHidesAPatchedNode(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{ParentNodeDefect: true})
	uuid := a.node("n1", nil)
	if got := a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/"+uuid, patch("add", "/extra/x", 1))["parent_node"]; got != uuid {
		t.Errorf("parent_node = %v, want the node itself", got)
	}
	if got := list(t, a.must(http.StatusOK, http.MethodGet, "/v1/nodes", nil), "nodes"); len(got) != 0 {
		t.Errorf("list shows %d nodes, want none", len(got))
	}
	if got := list(t, a.must(http.StatusOK, http.MethodGet, "/v1/nodes?include_children=true", nil), "nodes"); len(got) != 1 {
		t.Errorf("list with children shows %d nodes, want 1", len(got))
	}
	a.fake.Set(uuid, "provision_state", "available")
	a.provision(uuid, "active")
	if got, _ := a.state(uuid, "deploy failed")["last_error"].(string); !strings.Contains(got, "child_node "+uuid+" is presently locked") {
		t.Errorf("last_error = %q", got)
	}
}

func TestNodeList_fullLastPageHasANextLink(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	fake.AddFleet(4, "baremetal")
	a := newAPI(t, fake)
	seen := 0
	pages := 0
	for path := "/v1/nodes?limit=2&fields=uuid&sort_key=name"; path != ""; pages++ {
		page := a.must(http.StatusOK, http.MethodGet, path, nil)
		seen += len(list(t, page, "nodes"))
		next, _ := page["next"].(string)
		if next != "" && !strings.HasPrefix(next, "http://ironic/v1/nodes?sort_key=name&sort_dir=asc&fields=uuid&limit=2&marker=") {
			t.Fatalf("next = %s", next)
		}
		path = strings.TrimPrefix(next, "http://ironic")
	}
	if seen != 4 || pages != 3 {
		t.Errorf("%d nodes on %d pages, want 4 on 3, the last one empty", seen, pages)
	}
}

func TestNodeList_nextLinkDropsFilters(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	fake.AddFleet(3, "gold")
	next, _ := newAPI(t, fake).must(http.StatusOK, http.MethodGet, "/v1/nodes?resource_class=gold&limit=1", nil)["next"].(string)
	if next == "" || strings.Contains(next, "gold") {
		t.Errorf("next = %q, want a link without the filter", next)
	}
}

func TestNodeList_filters(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	a.node("plain", nil)
	a.node("gold", map[string]any{
		"resource_class": "gold", "maintenance": true, "retired": true, "lessee": "me", "shard": "s1",
		"description": "the one",
	})
	a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/gold", patch("add", "/owner", "you"))
	a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/gold", patch("add", "/instance_uuid", someUUID))
	a.fake.Set("gold", "fault", "power failure")
	for _, query := range []string{
		"resource_class=gold", "maintenance=true", "retired=yes", "lessee=me", "owner=you", "project=me", "project=you", "shard=s0,s1",
		"sharded=true", "associated=true", "instance_uuid=" + someUUID, "fault=power+failure", "description_contains=one",
	} {
		nodes := list(t, a.must(http.StatusOK, http.MethodGet, "/v1/nodes?"+query, nil), "nodes")
		if len(nodes) != 1 || !strings.Contains(fmt.Sprint(nodes), "name:gold") {
			t.Errorf("?%s = %v, want gold alone", query, nodes)
		}
	}
}

func TestNode_deleteRules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		state       string
		plain, kept int // statuses without and with maintenance
	}{
		{"enroll", 204, 204},
		{"manageable", 204, 204},
		{"available", 204, 204},
		{"adopt failed", 204, 204},
		{"active", 409, 204},
		{"deploy failed", 409, 204},
		{"clean failed", 409, 204},
		{"error", 409, 204},
		{"wait call-back", 409, 204},
	} {
		for _, maintenance := range []bool{false, true} {
			a := newAPI(t, &fakeironic.Server{})
			uuid := a.node("n1", nil)
			a.fake.Set(uuid, "provision_state", tt.state)
			a.fake.Set(uuid, "maintenance", maintenance)
			want := tt.plain
			if maintenance {
				want = tt.kept
			}
			if got := a.do(http.MethodDelete, "/v1/nodes/"+uuid, nil); got.status != want {
				t.Errorf("DELETE of a node that is %s (maintenance %v) = %d %s, want %d", tt.state, maintenance, got.status, got.text, want)
			}
		}
	}
}

func TestNode_deleteRemovesPortsAndAllocation(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.active("n1", nil)
	a.must(http.StatusCreated, http.MethodPost, "/v1/ports", map[string]any{"address": "52:54:00:00:00:01", "node_uuid": uuid})
	a.must(http.StatusCreated, http.MethodPost, "/v1/allocations", map[string]any{"node": "n1", "name": "a1"})
	a.refused(http.StatusConflict, "is associated with instance", http.MethodDelete, "/v1/nodes/n1", nil)
	a.must(http.StatusAccepted, http.MethodPut, "/v1/nodes/n1/maintenance", map[string]any{"reason": "scrap"})
	a.must(http.StatusNoContent, http.MethodDelete, "/v1/nodes/n1", nil)
	for _, kind := range []string{"nodes", "ports", "allocations"} {
		if got := list(t, a.must(http.StatusOK, http.MethodGet, "/v1/"+kind, nil), kind); len(got) != 0 {
			t.Errorf("%s = %v, want none", kind, got)
		}
	}
}

func TestNode_traitsAreSortedAndChecked(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	a.node("n1", nil)
	path := "/v1/nodes/n1/traits"
	a.must(http.StatusNoContent, http.MethodPut, path, map[string]any{"traits": []string{"CUSTOM_B", "CUSTOM_A", "CUSTOM_B"}})
	a.must(http.StatusNoContent, http.MethodPut, path+"/CUSTOM_C", nil)
	if got := fmt.Sprint(a.must(http.StatusOK, http.MethodGet, path, nil)["traits"]); got != "[CUSTOM_A CUSTOM_B CUSTOM_C]" {
		t.Errorf("traits = %s", got)
	}
	a.refused(http.StatusBadRequest, "'lower' is not valid", http.MethodPut, path, map[string]any{"traits": []string{"lower"}})
	a.refused(http.StatusNotFound, "doesn't have a trait 'CUSTOM_ZZ'", http.MethodDelete, path+"/CUSTOM_ZZ", nil)
	a.must(http.StatusNoContent, http.MethodDelete, path, nil)
	if n, _ := a.fake.Node("n1"); len(n.Traits) != 0 {
		t.Errorf("traits = %v, want none", n.Traits)
	}
}

// BenchmarkNodeList_detail lists 1,000 nodes in full detail; the first time costs some 50 ms, any further one 3.
func BenchmarkNodeList_detail(b *testing.B) {
	fake := &fakeironic.Server{}
	fake.AddFleet(1000, "baremetal")
	request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://ironic.test/v1/nodes/detail", nil)
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("X-OpenStack-Ironic-API-Version", "1.82")
	for b.Loop() {
		response, err := fake.RoundTrip(request)
		if err != nil || response.StatusCode != http.StatusOK {
			b.Fatalf("detailed list = %v, %v", response, err)
		}
	}
}
