package datasources_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

func TestAccHostsDataSource_filters(t *testing.T) {
	s := site.Start(t, nil)
	chassis, _ := s.Must(http.MethodPost, "chassis", map[string]any{"description": s.Name("chassis")})["uuid"].(string)
	t.Cleanup(func() { s.Must(http.MethodDelete, "chassis/"+chassis, nil) })
	reserved := "6a0d3a2e-5b3c-4c9a-9a55-0c1f" + s.Name("")[1:]
	a := addNode(t, s, "a", map[string]any{"description": "a red fox", "lessee": "carol"})
	b := addNode(t, s, "b", map[string]any{"description": "a red hen", "retired": true, "shard": "s1"})
	c := addNode(t, s, "c", map[string]any{"driver": "ipmi", "instance_uuid": reserved, "chassis_uuid": chassis})
	s.Patch(b, "add", "/owner", "carol")
	s.Verb(a, "manage", "manageable")
	s.Must(http.MethodPut, "nodes/"+b+"/maintenance", map[string]any{})

	config := s.Provider()
	var checks []statecheck.StateCheck
	for i, tt := range []struct {
		filter string
		want   []string
	}{
		{``, []string{a, b, c}},
		{`provision_state = "manageable"`, []string{a}},
		{`provision_state = "enroll"`, []string{b, c}},
		{`conductor_group = "nowhere"`, nil},
		{`owner = "carol"`, []string{b}},
		{`lessee = "carol"`, []string{a}},
		{`project = "carol"`, []string{a, b}},
		{`driver = "ipmi"`, []string{c}},
		{`shard = "s1"`, []string{b}},
		{`fault = "power failure"`, nil},
		{`description_contains = "red"`, []string{a, b}},
		{`description_contains = "hen"`, []string{b}},
		{`chassis_id = ` + fmt.Sprintf("%q", chassis), []string{c}},
		{`maintenance = true`, []string{b}},
		{`maintenance = false`, []string{a, c}},
		{`associated = true`, []string{c}},
		{`associated = false`, []string{a, b}},
		{`retired = true`, []string{b}},
		{`retired = false`, []string{a, c}},
		{`name_regex = "^[ab]-"`, []string{a, b}},
		{`name_regex = "` + s.Name("c") + `$"`, []string{c}},
		{"name_regex = \"^[ab]-\"\n  provision_state = \"enroll\"", []string{b}},
	} {
		name := fmt.Sprintf("f%d", i)
		config += data("metal_hosts", name, fmt.Sprintf("resource_class = %q", s.Class()), tt.filter)
		ids := make([]knownvalue.Check, 0, len(tt.want))
		for _, id := range tt.want {
			ids = append(ids, knownvalue.StringExact(id))
		}
		checks = append(checks, named{tt.filter, is("data.metal_hosts."+name, "ids", knownvalue.ListExact(ids))})
	}
	test(t, config, "", append(checks,
		is("data.metal_hosts.f1", "hosts", knownvalue.ListExact([]knownvalue.Check{knownvalue.ObjectPartial(map[string]knownvalue.Check{
			"id": knownvalue.StringExact(a), "name": knownvalue.StringExact(s.Name("a")),
			"provision_state": knownvalue.StringExact("manageable"),
			"description":     knownvalue.StringExact("a red fox"), "driver": knownvalue.StringExact("fake-hardware"),
		})})),
	)...)
}

// named is a check of one of many cases.
type named struct {
	name string
	statecheck.StateCheck
}

// CheckState runs the check, and prepends the name of the case to an error.
func (n named) CheckState(ctx context.Context, req statecheck.CheckStateRequest, resp *statecheck.CheckStateResponse) {
	n.StateCheck.CheckState(ctx, req, resp)
	if resp.Error != nil {
		resp.Error = fmt.Errorf("%s: %w", n.name, resp.Error)
	}
}

func TestFakeHostsDataSource_byFault(t *testing.T) {
	s := site.StartFake(t, nil)
	id := addNode(t, s, "a", nil)
	addNode(t, s, "b", nil)
	s.Fake.Set(id, "fault", "power failure")
	test(t, s.Provider()+data("metal_hosts", "h", `fault = "power failure"`), "",
		is("data.metal_hosts.h", "ids", knownvalue.ListExact([]knownvalue.Check{knownvalue.StringExact(id)})))
}

// Ironic returns at most a thousand nodes on a page.
func TestFakeHostsDataSource_readsAllPages(t *testing.T) {
	fake := &fakeironic.Server{}
	fake.AddFleet(2001, "baremetal")
	s := site.StartFake(t, fake)
	test(t, s.Provider()+data("metal_hosts", "h", `resource_class = "baremetal"`), "",
		is("data.metal_hosts.h", "ids", knownvalue.ListSizeExact(2001)))
}

func TestAccHostsDataSource_wrongFilters(t *testing.T) {
	s := site.Start(t, nil)
	for _, tt := range []struct{ name, filter, want string }{
		{"regular expression", `name_regex = "(("`, "Not a regular expression"},
		{"provision state", `provision_state = "sleeping"`, `Provision state "sleeping" is not valid`},
	} {
		t.Run(tt.name, func(t *testing.T) { test(t, s.Provider()+data("metal_hosts", "h", tt.filter), tt.want) })
	}
}
