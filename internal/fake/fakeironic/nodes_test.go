package fakeironic_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

const someUUID = "11111111-2222-4333-8444-555555555555"

func TestNode_createRefusals(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	taken := a.node("taken", nil)
	for _, tt := range []struct {
		body   map[string]any
		status int
		text   string
	}{
		{map[string]any{}, http.StatusBadRequest, "'driver' is a required property"},
		{map[string]any{"driver": nil}, http.StatusBadRequest, "None is not of type 'string'"},
		{map[string]any{"driver": "nope"}, http.StatusBadRequest, `supports driver nope for conductor group "".`},
		{map[string]any{"conductor_group": "rack9"}, http.StatusBadRequest, `conductor group "rack9"`},
		{map[string]any{"deploy_interface": "nope"}, 400, "Could not find the following interface in the 'ironic.hardware.interfaces.deploy'"},
		{map[string]any{"driver": "ipmi", "power_interface": "redfish"}, 400, "is not supported by hardware type IPMIHardware."},
		{map[string]any{"uuid": taken}, http.StatusConflict, "A node with UUID " + taken + " already exists."},
		{map[string]any{"name": "taken"}, http.StatusConflict, "A node with name taken already exists."},
		{map[string]any{"uuid": "notuuid"}, http.StatusBadRequest, "Expected UUID for uuid: notuuid"},
		{map[string]any{"provision_state": "active"}, http.StatusBadRequest, "('provision_state' was unexpected)"},
		{map[string]any{"protected": true}, http.StatusBadRequest, "('protected' was unexpected)"},
		{map[string]any{"owner": "me"}, http.StatusBadRequest, "with an owner other than your own project."},
		{map[string]any{"resource_class": strings.Repeat("x", 81)}, http.StatusBadRequest, "is too long"},
		{map[string]any{"chassis_uuid": someUUID}, http.StatusBadRequest, "could not be found."},
		{map[string]any{"network_data": map[string]any{"a": 1}}, http.StatusBadRequest, "is not valid under any of the given schemas"},
		{map[string]any{"name": "bad name"}, http.StatusBadRequest, "Cannot create node with invalid name 'bad name'"},
		{map[string]any{"name": someUUID}, http.StatusBadRequest, "invalid name"},
		{map[string]any{"name": "detail"}, http.StatusBadRequest, "is reserved and can not be used as a node name"},
	} {
		body := map[string]any{"driver": "fake-hardware"}
		for key, value := range tt.body {
			body[key] = value
		}
		if len(tt.body) == 0 {
			delete(body, "driver")
		}
		a.refused(tt.status, tt.text, http.MethodPost, "/v1/nodes", body)
	}
	if got := len(a.fake.Nodes()); got != 1 {
		t.Errorf("%d nodes after refusals, want 1", got)
	}
}

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

func TestNode_patchRules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		op, path string
		value    any
		status   int
		text     string
	}{
		{"test", "/name", "x", http.StatusBadRequest, "'test' is not one of ['add', 'replace', 'remove']"},
		{"add", "/extra/a.b", 1, http.StatusBadRequest, "does not match"},
		{"add", "/extra/a~1b", 1, http.StatusBadRequest, "does not match"},
		{"add", "/extra/new", 1, http.StatusOK, ""},
		{"replace", "/extra/missing", 1, http.StatusBadRequest, "can't replace a non-existent object 'missing'"},
		{"remove", "/extra/missing", nil, http.StatusBadRequest, "can't remove a non-existent object 'missing'"},
		{"add", "/extra/missing/deep", 1, http.StatusBadRequest, "member 'missing' not found in"},
		{"add", "/extra/list/-", 3, http.StatusOK, ""},
		{"remove", "/extra/list/0", nil, http.StatusOK, ""},
		{"add", "/extra/list/9", 1, http.StatusBadRequest, "can't insert outside of list"},
		{"remove", "/name", nil, http.StatusOK, ""},
		{"replace", "/name", nil, http.StatusBadRequest, "Cannot change name to invalid name 'None'"},
		{"add", "/name", "taken", http.StatusConflict, "A node with name taken already exists."},
		{"remove", "/automated_clean", nil, http.StatusInternalServerError, "'value'"},
		{"remove", "/conductor_group", nil, http.StatusInternalServerError, "'conductor_group'"},
		{"remove", "/maintenance", nil, http.StatusInternalServerError, "maintenance"},
		{"remove", "/resource_class", nil, http.StatusOK, ""},
		{"remove", "/deploy_interface", nil, http.StatusOK, ""},
		{"add", "/traits", []any{}, http.StatusBadRequest, "Cannot patch /traits. Only the following can be updated: automated_clean, "},
		{"add", "/provision_state", "active", http.StatusBadRequest, "Cannot patch /provision_state."},
		{"add", "/driver", "ipmi", http.StatusBadRequest, "is not supported by hardware type IPMIHardware."},
		{"add", "/protected", true, http.StatusConflict, "can only be made protected in provision states 'active' or 'rescue'"},
		{"add", "/protected_reason", "x", http.StatusBadRequest, "can only be set when protected is True"},
		{"add", "/instance_uuid", "x", http.StatusBadRequest, "Expected UUID for instance_uuid: x"},
		{"add", "/owner", "me", http.StatusOK, ""},
	} {
		a := newAPI(t, &fakeironic.Server{})
		a.node("taken", nil)
		uuid := a.node("n1", map[string]any{"extra": map[string]any{"list": []any{1, 2}}})
		a.refused(tt.status, tt.text, http.MethodPatch, "/v1/nodes/"+uuid, patch(tt.op, tt.path, tt.value))
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

func TestNodeList_refusals(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	fake.AddFleet(1, "baremetal") // Ironic checks some parameters only if the list has a node
	a := newAPI(t, fake)
	for query, want := range map[string]struct {
		status int
		text   string
	}{
		"limit=0":                                {http.StatusBadRequest, "Limit must be positive"},
		"limit=abc":                              {http.StatusBadRequest, "limit"},
		"marker=x":                               {http.StatusBadRequest, "marker"},
		"marker=" + someUUID:                     {http.StatusNotFound, "Node " + someUUID + " could not be found."},
		"sort_key=bogus":                         {http.StatusBadRequest, "is an invalid field for sorting"},
		"fields=uuid&detail=true":                {http.StatusBadRequest, "in the same request"},
		"fields=uuid,created_at":                 {http.StatusBadRequest, "Field created_at is not a valid field."},
		"fields=updated_at":                      {http.StatusBadRequest, "Field updated_at is not a valid field."},
		"fields=bogus":                           {http.StatusInternalServerError, "type object 'Node' has no attribute 'bogus'"},
		"fields=conductor":                       {http.StatusInternalServerError, "'conductor'"},
		"fields=chassis_uuid":                    {http.StatusInternalServerError, "'chassis_uuid'"},
		"fields=allocation_uuid":                 {http.StatusInternalServerError, "'allocation_uuid'"},
		"provision_state=enroll,available":       {http.StatusBadRequest, "is not valid"},
		"fault=bogus":                            {http.StatusBadRequest, "Unrecognized fault"},
		"name=x":                                 {http.StatusBadRequest, "Unexpected arguments: name"},
		"chassis_uuid=" + someUUID:               {http.StatusNotFound, "Chassis"},
		"provision_state=active&maintenance=bad": {http.StatusBadRequest, "maintenance"},
	} {
		a.refused(want.status, want.text, http.MethodGet, "/v1/nodes?"+query, nil)
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
