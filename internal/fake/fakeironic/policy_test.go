package fakeironic_test

import (
	"cmp"
	_ "embed"
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

// measuredRequests are the requests of the tables: the beginning of the row's name, path, body, state of the node (empty: manageable). The
// method is the first word of the row, unless the row begins with "verb". NODE belongs to tenant A and is leased to tenant B, FREE to no
// project; PORT is a port of NODE, ALLOC an allocation of the user's project, MINE that project.
//
//go:embed testdata/requests.tsv
var measuredRequests string

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
	_, rest, found := strings.Cut("\n"+measuredRequests, "\n"+row+"\t")
	line, _, _ := strings.Cut(rest, "\n")
	r := strings.Split(line, "\t")
	if !found || len(r) != 3 {
		t.Fatalf("no request for %q", row)
	}
	path, text, state := r[0], r[1], cmp.Or(r[2], "manageable")
	nodeID := all.node("n1", map[string]any{"resource_class": "mx", "owner": tenantA, "lessee": tenantB})
	free := all.node("n2", nil)
	fake.Set(nodeID, "traits", []any{"CUSTOM_HAS"})
	fake.Set(nodeID, "power_state", "power off")
	port := uuidOf(t, all.must(http.StatusCreated, http.MethodPost, "/v1/ports",
		map[string]any{"node_uuid": nodeID, "address": "52:54:00:00:00:01"}))
	chassis := uuidOf(t, all.must(http.StatusCreated, http.MethodPost, "/v1/chassis", map[string]any{}))
	fake.Set(nodeID, "provision_state", state)
	names := map[string]string{"NODE": nodeID, "FREE": free, "PORT": port, "CHASSIS": chassis, "MINE": who.Project}
	if who.Project == "" {
		names["MINE"] = tenantA
	}
	if strings.Contains(path, "ALLOC") || row == "GET node/allocation" {
		body := map[string]any{"resource_class": "mx", "owner": who.Project}
		if who.Project != tenantA && who.Project != tenantB {
			delete(body, "owner") // nothing to allocate for it, in some tables
		}
		if names["ALLOC"] = uuidOf(t, all.must(http.StatusCreated, http.MethodPost, "/v1/allocations", body)); who.Project == others {
			body = map[string]any{"resource_class": "none", "owner": others}
			names["ALLOC"] = uuidOf(t, all.must(http.StatusCreated, http.MethodPost, "/v1/allocations", body))
		}
	}
	if strings.Contains(path, "MADE") {
		names["MADE"] = uuidOf(t, a.must(http.StatusCreated, http.MethodPost, "/v1/nodes", map[string]any{"driver": "fake-hardware"}))
	}
	method := strings.Fields(row)[0]
	if method == "verb" {
		method, path = http.MethodPut, "/v1/nodes/NODE/states/provision"
	}
	for name, id := range names {
		path, text = strings.ReplaceAll(path, name, id), strings.ReplaceAll(text, name, id)
	}
	got := a.do(method, path, cmp.Or(text, "null"))
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
