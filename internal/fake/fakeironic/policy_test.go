package fakeironic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

const (
	tenantA = "aaaaaaaa-0000-4000-8000-000000000000"
	tenantB = "bbbbbbbb-0000-4000-8000-000000000000"
	others  = "cccccccc-0000-4000-8000-000000000000"
	random  = "dddddddd-0000-4000-8000-000000000000"
)

// keystone is a Keystone whose tokens are the names of the users of the measured tables: sys-admin, a-member, cloud-admin.
func keystone(token string) (fakeironic.Caller, bool) {
	where, role, found := strings.Cut(token, "-")
	who := fakeironic.Caller{Roles: []string{role}}
	switch where {
	case "sys":
		who.System = true
	case "a":
		who.Project = tenantA
	case "b":
		who.Project = tenantB
	case "cloud":
		who.Project = others
	default:
		found = false
	}
	return who, found
}

// as returns an api of a user.
func (a *api) as(user string) *api {
	return &api{t: a.t, fake: a.fake, version: a.version, token: user}
}

// measuredPath is a request of the measured tables, by the beginning of the row's name.
type measuredRequest struct {
	row, path string
	body      any
	state     string // of the node; empty: manageable
}

func one(path string, value any) any { return patch("add", path, value) }

// measuredRequests are the requests of the tables. The method is the first word of the row, unless the row begins with "verb". NODE belongs
// to tenant A and is leased to tenant B, FREE to no project; PORT is a port of NODE, ALLOC an allocation of the user's project, MINE that
// project.
var measuredRequests = []measuredRequest{
	{"GET /nodes (visible)", "/v1/nodes", nil, ""},
	{"GET /nodes/detail", "/v1/nodes/detail", nil, ""},
	{"GET node (own)", "/v1/nodes/NODE", nil, ""},
	{"GET node (no owner)", "/v1/nodes/FREE", nil, ""},
	{"GET node by instance_uuid", "/v1/nodes?instance_uuid=" + random, nil, ""},
	{"GET /drivers", "/v1/drivers", nil, ""},
	{"GET driver properties", "/v1/drivers/fake-hardware/properties", nil, ""},
	{"GET /conductors", "/v1/conductors", nil, ""},
	{"GET /chassis", "/v1/chassis", nil, ""},
	{"POST chassis (lock)", "/v1/chassis", map[string]any{"uuid": random}, ""},
	{"GET chassis", "/v1/chassis/CHASSIS", nil, ""},
	{"DELETE chassis", "/v1/chassis/CHASSIS", nil, ""},
	{"POST node", "/v1/nodes", map[string]any{"driver": "fake-hardware"}, ""},
	{"DELETE node (just made)", "/v1/nodes/MADE", nil, ""},
	{"POST node owner=mine", "/v1/nodes", map[string]any{"driver": "fake-hardware", "owner": "MINE"}, ""},
	{"POST node owner=other", "/v1/nodes", map[string]any{"driver": "fake-hardware", "owner": "eeeeeeee-0000-4000-8000-000000000000"}, ""},
	{"PATCH /extra/k", "/v1/nodes/NODE", one("/extra/k", "v"), ""},
	{"PATCH /name", "/v1/nodes/NODE", one("/name", "n3"), ""},
	{"PATCH /description", "/v1/nodes/NODE", one("/description", "d"), ""},
	{"PATCH /driver_info/fake", "/v1/nodes/NODE", one("/driver_info/fake", "x"), ""},
	{"PATCH /properties/cpu_arch", "/v1/nodes/NODE", one("/properties/cpu_arch", "x86_64"), ""},
	{"PATCH /resource_class", "/v1/nodes/NODE", one("/resource_class", "mx"), ""},
	{"PATCH /instance_info/k", "/v1/nodes/NODE", one("/instance_info/k", "v"), ""},
	{"PATCH /conductor_group", "/v1/nodes/NODE", one("/conductor_group", ""), ""},
	{"PATCH /bios_interface", "/v1/nodes/NODE", one("/bios_interface", "fake"), ""},
	{"PATCH /network_data", "/v1/nodes/NODE", one("/network_data", map[string]any{}), ""},
	{"PATCH /automated_clean", "/v1/nodes/NODE", one("/automated_clean", false), ""},
	{"PATCH /retired", "/v1/nodes/NODE", one("/retired", true), ""},
	{"PATCH /retired=false", "/v1/nodes/NODE", one("/retired", false), ""},
	{"PATCH /retired_reason", "/v1/nodes/NODE", one("/retired_reason", "r"), ""},
	{"PATCH /owner", "/v1/nodes/NODE", one("/owner", tenantA), ""},
	{"PATCH /lessee", "/v1/nodes/NODE", one("/lessee", tenantB), ""},
	{"PATCH /shard", "/v1/nodes/NODE", one("/shard", "s"), ""},
	{"PATCH /instance_uuid", "/v1/nodes/NODE", one("/instance_uuid", random), ""},
	{
		"PATCH instance_uuid+extra mark", "/v1/nodes/NODE", append(patch("add", "/instance_uuid", random), patch("add", "/extra/m", 1)...),
		"",
	},
	{"PATCH extra of no-owner node", "/v1/nodes/FREE", one("/extra/k", "v"), ""},
	{"PATCH /protected", "/v1/nodes/NODE", one("/protected", true), "active"},
	{"PATCH instance_info of active", "/v1/nodes/NODE", one("/instance_info/k2", "v"), "active"},
	{"PUT maintenance", "/v1/nodes/NODE/maintenance", map[string]any{}, ""},
	{"DELETE maintenance", "/v1/nodes/NODE/maintenance", nil, ""},
	{"GET traits", "/v1/nodes/NODE/traits", nil, ""},
	{"PUT trait", "/v1/nodes/NODE/traits/CUSTOM_T", nil, ""},
	{"DELETE trait", "/v1/nodes/NODE/traits/CUSTOM_HAS", nil, ""},
	{"POST port", "/v1/ports", map[string]any{"node_uuid": "NODE", "address": "52:54:00:00:00:09"}, ""},
	{"GET /ports?node", "/v1/ports?node_uuid=NODE", nil, ""},
	{"GET /ports (all, detail)", "/v1/ports/detail", nil, ""},
	{"PATCH port", "/v1/ports/PORT", one("/extra/k", "v"), ""},
	{"DELETE port", "/v1/ports/PORT", nil, ""},
	{"POST portgroup", "/v1/portgroups", map[string]any{"node_uuid": "NODE"}, ""},
	{"GET portgroups", "/v1/portgroups?node=NODE", nil, ""},
	{"GET validate", "/v1/nodes/NODE/validate", nil, ""},
	{"GET states", "/v1/nodes/NODE/states", nil, ""},
	{"GET bios", "/v1/nodes/NODE/bios", nil, ""},
	{"GET history", "/v1/nodes/NODE/history", nil, ""},
	{"GET inventory", "/v1/nodes/NODE/inventory", nil, ""},
	{"GET vifs", "/v1/nodes/NODE/vifs", nil, ""},
	{"GET firmware", "/v1/nodes/NODE/firmware", nil, ""},
	{"GET boot_device", "/v1/nodes/NODE/management/boot_device", nil, ""},
	{"PUT boot_device", "/v1/nodes/NODE/management/boot_device", map[string]any{"boot_device": "pxe"}, ""},
	{"PUT inject_nmi", "/v1/nodes/NODE/management/inject_nmi", map[string]any{}, ""},
	{
		"PUT raid", "/v1/nodes/NODE/states/raid",
		map[string]any{"logical_disks": []any{map[string]any{"size_gb": 10, "raid_level": "1"}}},
		"",
	},
	{"POST vmedia", "/v1/nodes/NODE/vmedia", map[string]any{"device_type": "cdrom", "image_url": "http://x/y.iso"}, ""},
	{"PUT power on", "/v1/nodes/NODE/states/power", map[string]any{"target": "power on"}, ""},
	{"verb inspect", "", map[string]any{"target": "inspect"}, ""},
	{"verb provide", "", map[string]any{"target": "provide"}, ""},
	{"verb clean (steps)", "", map[string]any{
		"target":      "clean",
		"clean_steps": []any{map[string]any{"interface": "bios", "step": "factory_reset"}},
	}, ""},
	{"verb active", "", map[string]any{"target": "active"}, "available"},
	{"verb rebuild", "", map[string]any{"target": "rebuild"}, "active"},
	{"verb deleted", "", map[string]any{"target": "deleted"}, "active"},
	{"POST allocation", "/v1/allocations", map[string]any{"resource_class": "mx", "candidate_nodes": []any{"NODE"}}, "available"},
	{"GET allocation", "/v1/allocations/ALLOC", nil, "available"},
	{"GET /allocations", "/v1/allocations", nil, "available"},
	{"GET node/allocation", "/v1/nodes/NODE/allocation", nil, "available"},
	{"PATCH allocation extra", "/v1/allocations/ALLOC", one("/extra/k", "v"), "available"},
	{"DELETE allocation", "/v1/allocations/ALLOC", nil, "available"},
	{"POST allocation backfill (node)", "/v1/allocations", map[string]any{"node": "NODE", "resource_class": "mx"}, "available"},
	{"GET /deploy_templates", "/v1/deploy_templates", nil, ""},
	{"POST deploy_template", "/v1/deploy_templates", map[string]any{
		"name":  "CUSTOM_X1",
		"steps": []any{map[string]any{"interface": "deploy", "step": "deploy", "args": map[string]any{}, "priority": 10}},
	}, ""},
}

// The tables in testdata were measured on real Ironics behind a Keystone (reference/ironic.md#policy).
func TestPolicy_answersAsMeasured(t *testing.T) {
	t.Parallel()
	for table, server := range map[string]func() *fakeironic.Server{
		"21.4-default": func() *fakeironic.Server { return &fakeironic.Server{MaxMicroversion: "1.82"} },
		"21.4-legacy": func() *fakeironic.Server {
			return &fakeironic.Server{MaxMicroversion: "1.82", Policy: fakeironic.PolicyLegacy}
		},
		"39-default": func() *fakeironic.Server { return &fakeironic.Server{} },
	} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile("testdata/rights-" + table + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			var rows [][]string
			for line := range strings.Lines(string(content)) {
				rows = append(rows, regexp.MustCompile(`  +`).Split(strings.TrimSpace(line), -1))
			}
			users, last := rows[0], len(rows[0])-1
			for _, row := range rows[1:] {
				for column, want := range row[1:last] {
					if want == "-" {
						continue
					}
					if got := measured(t, server(), users[column+1], row[0], row[last]); got != want {
						t.Errorf("%s as %s: %s, want %s", row[0], users[column+1], got, want)
					}
				}
			}
		})
	}
}

// measured sends a request of a table as a user to a new server, and returns the result as the table has it. rule is the rule that a
// refusal names.
func measured(t *testing.T, fake *fakeironic.Server, user, row, rule string) string {
	t.Helper()
	fake.Identify = keystone
	all := newAPI(t, fake).as("sys-admin")
	a := all.as(user)
	who, _ := keystone(user)
	var r measuredRequest
	for _, r = range measuredRequests {
		if r.row == row {
			break
		}
	}
	if r.row != row {
		t.Fatalf("no request for %q", row)
	}
	nodeID := all.node("n1", map[string]any{"resource_class": "mx", "owner": tenantA, "lessee": tenantB})
	free := all.node("n2", nil)
	fake.Set(nodeID, "traits", []any{"CUSTOM_HAS"})
	fake.Set(nodeID, "power_state", "power off")
	port := uuidOf(t, all.must(http.StatusCreated, http.MethodPost, "/v1/ports",
		map[string]any{"node_uuid": nodeID, "address": "52:54:00:00:00:01"}))
	chassis := uuidOf(t, all.must(http.StatusCreated, http.MethodPost, "/v1/chassis", map[string]any{}))
	state := r.state
	if state == "" {
		state = "manageable"
	}
	fake.Set(nodeID, "provision_state", state)
	names := map[string]string{"NODE": nodeID, "FREE": free, "PORT": port, "CHASSIS": chassis, "MINE": who.Project}
	if who.Project == "" {
		names["MINE"] = tenantA
	}
	if strings.Contains(r.path, "ALLOC") || row == "GET node/allocation" {
		body := map[string]any{"resource_class": "mx", "owner": who.Project}
		if who.Project != tenantA && who.Project != tenantB {
			delete(body, "owner") // nothing to allocate for it, in some tables
		}
		if names["ALLOC"] = uuidOf(t, all.must(http.StatusCreated, http.MethodPost, "/v1/allocations", body)); who.Project == others {
			body = map[string]any{"resource_class": "none", "owner": others}
			names["ALLOC"] = uuidOf(t, all.must(http.StatusCreated, http.MethodPost, "/v1/allocations", body))
		}
	}
	if strings.Contains(r.path, "MADE") {
		names["MADE"] = uuidOf(t, a.must(http.StatusCreated, http.MethodPost, "/v1/nodes", map[string]any{"driver": "fake-hardware"}))
	}
	method, path := strings.Fields(row)[0], r.path
	if method == "verb" {
		method, path = http.MethodPut, "/v1/nodes/NODE/states/provision"
	}
	body, err := json.Marshal(r.body)
	if err != nil {
		t.Fatal(err)
	}
	text := string(body)
	for name, id := range names {
		path, text = strings.ReplaceAll(path, name, id), strings.ReplaceAll(text, name, id)
	}
	got := a.do(method, path, text)
	return resultOf(t, a, got, who, row, rule)
}

func resultOf(t *testing.T, a *api, got answer, who fakeironic.Caller, row, rule string) string {
	t.Helper()
	if got.status == http.StatusForbidden && !strings.HasSuffix(got.fault(), "baremetal:"+rule) ||
		strings.Contains(got.fault(), "requires a scope") && !strings.HasPrefix(got.fault(), `"baremetal:`+rule+`"`) {
		return got.fault()
	}
	if row == "GET driver properties" && got.status == http.StatusNotFound { // the fake has none
		return "ok"
	}
	if got.status >= http.StatusBadRequest {
		return fmt.Sprint(got.status)
	}
	owner := func() string {
		switch got.body["owner"] {
		case nil:
			return "None"
		case who.Project:
			return "mine"
		}
		return fmt.Sprint(got.body["owner"])
	}
	switch row {
	case "GET /nodes (visible)":
		return fmt.Sprint(len(list(t, got.body, "nodes")))
	case "GET /ports?node":
		return fmt.Sprintf("ok:%d", len(list(t, got.body, "ports")))
	case "POST node":
		return "ok:" + owner()
	case "POST allocation":
		return "ok:" + owner() + ":" + fmt.Sprint(a.must(http.StatusOK, http.MethodGet, "/v1/allocations/"+
			uuidOf(t, got.body), nil)["state"])
	}
	return "ok"
}

// Ironic hides fields of a node from those who may not see them, and on 21.4 from all who do not ask for its owner.
func TestPolicy_hidesFields(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		version, user, query string
		hidden               bool
	}{
		{"1.82", "sys-reader", "?fields=uuid,reservation", false},
		{"1.82", "a-member", "?fields=uuid,reservation", true},
		{"1.82", "a-member", "?fields=uuid,reservation,owner", false},
		{"1.82", "a-reader", "", false},
		{"1.115", "a-member", "?fields=uuid,reservation", false},
		{"1.115", "b-admin", "?fields=uuid,reservation,owner,lessee", true},
		{"1.115", "b-admin", "", true},
	} {
		a := newAPI(t, &fakeironic.Server{MaxMicroversion: tt.version, Identify: keystone})
		id := a.as("sys-admin").node("n1", map[string]any{"owner": tenantA, "lessee": tenantB})
		got := a.as(tt.user).must(http.StatusOK, http.MethodGet, "/v1/nodes/"+id+tt.query, nil)
		if hidden := got["reservation"] == "** Redacted - requires baremetal:node:get:reservation permission. **"; hidden != tt.hidden {
			t.Errorf("%+v: reservation is %v", tt, got["reservation"])
		}
		if info := fmt.Sprint(got["driver_info"]); tt.query == "" && strings.Contains(info, "** Redacted") != tt.hidden {
			t.Errorf("%+v: driver_info is %v", tt, info)
		}
	}
}

func TestPolicy_unknownTokenIsUnauthorized(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{Identify: keystone})
	a.must(http.StatusOK, http.MethodGet, "/v1", nil)
	for _, token := range []string{"", "nonsense"} {
		got := a.as(token).do(http.MethodGet, "/v1/nodes", nil)
		if !strings.Contains(got.text, `"message":"The request you have made requires authentication."`) ||
			got.status != http.StatusUnauthorized || got.header.Get("Www-Authenticate") == "" {
			t.Errorf("token %q: %d %s", token, got.status, got.text)
		}
	}
}
