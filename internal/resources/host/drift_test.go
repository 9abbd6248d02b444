package host_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// An idle host that another client has deleted is made anew in place, with its UUID and what Ironic had of it; the next apply brings it to
// its target state.
func TestAccHost_deletedOutsideIsMadeAnew(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w := acctest.NewWorkspace(t, hostConfig(s, `ports = { `+acctest.Quoted(s.MAC(1))+` = {} }`, `traits = ["CUSTOM_A"]`,
		`target_state = "available"`, `properties = { cpus = "4" }`))
	w.Must("apply", "-auto-approve")
	before := s.Node(s.Name("h"))
	s.Must(http.MethodDelete, "nodes/"+s.Name("h"), nil)
	acctest.Mention(t, w.Must("apply", "-refresh-only", "-auto-approve"), "Ironic has no record of "+s.Name("h"))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Lost record is made anew", "was available when Terraform last saw it", "The machine is not touched",
		"+ restores", "0 to add, 1 to change, 0 to destroy")
	acctest.NeverMention(t, output, "cleanings")
	w.Must("apply", "-auto-approve")
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "Cleaning erases data", "cleanings", "1 -> 2")
	after := s.Node(s.Name("h"))
	for _, field := range []string{"uuid", "name", "driver", "properties", "traits", "resource_class", "provision_state"} {
		if was, is := fmt.Sprint(before[field]), fmt.Sprint(after[field]); was != is {
			t.Errorf("%s was %s, is %s", field, was, is)
		}
	}
	if portOf(s, s.MAC(1)) == nil {
		t.Error("its port is missing")
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// A host in enroll, whose node has no time of a change, is known again after it was made anew.
func TestAccHost_deletedOutsideIsMadeAnewInEnroll(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w := acctest.NewWorkspace(t, hostConfig(s, acctest.Target("enroll")))
	w.Must("apply", "-auto-approve")
	s.Must(http.MethodDelete, "nodes/"+s.Name("h"), nil)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "Lost record is made anew", "1 changed")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// A host that was in use is not made anew by a plan that reads nothing, either.
func TestFakeHost_lostInUseIsNotMadeAnewWithoutRefresh(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	w := acctest.NewWorkspace(t, hostConfig(s, acctest.Target("available")))
	w.Must("apply", "-auto-approve")
	name := s.Name("h")
	s.Fake.Set(name, "instance_uuid", "00000000-0000-4000-8000-000000000001")
	s.Fake.Set(name, "provision_state", "active")
	w.Must("apply", "-refresh-only", "-auto-approve")
	s.Must(http.MethodPut, "nodes/"+name+"/maintenance", map[string]any{})
	s.Must(http.MethodDelete, "nodes/"+name, nil)
	w.Must("apply", "-refresh-only", "-auto-approve")
	acctest.Mention(t, w.Must("plan", "-refresh=false"), "No changes.")
	acctest.Fails(t, w, []string{"plan"}, "Ironic has lost the record of a machine", name+" (deployed)")
	w.Must("destroy", "-auto-approve", "-refresh=false")
}

func TestAccHost_deletedOutsideIsDestroyed(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w := acctest.NewWorkspace(t, hostConfig(s))
	w.Must("apply", "-auto-approve")
	s.Must(http.MethodDelete, "nodes/"+s.Name("h"), nil)
	w.Must("destroy", "-auto-approve", "-refresh=false")
}

func TestAccHost_portDeletedOutsideIsCreatedAgain(t *testing.T) {
	s := site.Start(t, nil)
	config := hostConfig(s, `ports = { `+acctest.Quoted(s.MAC(1))+` = {}, `+acctest.Quoted(s.MAC(2))+` = { pxe_enabled = false } }`)
	acctest.Test(t,
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig:        func() { s.Must(http.MethodDelete, fmt.Sprintf("ports/%v", portOf(s, s.MAC(2))["uuid"]), nil) },
			Config:           config,
			ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{
				onPort{s, s.MAC(1), map[string]any{"pxe_enabled": true}}, onPort{s, s.MAC(2), map[string]any{"pxe_enabled": false}},
			},
		},
	)
}

// plansToChange checks that the plan of the host shows a change of each of the attributes.
type plansToChange []string

// CheckPlan compares before and after.
func (p plansToChange) CheckPlan(_ context.Context, req plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	for _, r := range req.Plan.ResourceChanges {
		if r.Address != acctest.HostAddress {
			continue
		}
		before, _ := r.Change.Before.(map[string]any)
		after, _ := r.Change.After.(map[string]any)
		for _, attribute := range p {
			if reflect.DeepEqual(before[attribute], after[attribute]) {
				resp.Error = errors.Join(resp.Error, fmt.Errorf("the plan leaves %s as it is: %v", attribute, before[attribute]))
			}
		}
		return
	}
	resp.Error = fmt.Errorf("the plan knows no %s", acctest.HostAddress)
}

func TestAccHost_settingsDrift(t *testing.T) {
	s := site.Start(t, nil)
	var settings, attributes []string
	var byHand []func()
	var wants []setting
	for _, tt := range []struct {
		setting  string
		op, path string
		value    any
		want     map[string]any
	}{
		{`description = "ours"`, "replace", "/description", "theirs", map[string]any{"description": "ours"}},
		{`resource_class = "ours"`, "remove", "/resource_class", nil, map[string]any{"resource_class": "ours"}},
		{`owner = "ours"`, "replace", "/owner", "theirs", map[string]any{"owner": "ours"}},
		{`automated_clean = true`, "replace", "/automated_clean", false, map[string]any{"automated_clean": true}},
		{`retired = false`, "replace", "/retired", true, map[string]any{"retired": false}},
		{`maintenance = false`, "replace", "/maintenance", true, map[string]any{"maintenance": false}},
		{`properties = { cpus = 4 }`, "replace", "/properties/cpus", 8, map[string]any{"properties": map[string]any{"cpus": "4"}}},
		{
			`capabilities = { boot_mode = "uefi" }`, "replace", "/properties/capabilities", "boot_mode:bios,a:b",
			map[string]any{"properties": map[string]any{"capabilities": "a:b,boot_mode:uefi"}},
		},
		{
			`root_device = { serial = "D1" }`, "replace", "/properties/root_device",
			map[string]any{"serial": "D2"},
			map[string]any{"properties": map[string]any{"root_device": map[string]any{"serial": "D1"}}},
		},
		{`extra = { a = { b = 1 } }`, "replace", "/extra/a/b", "1", map[string]any{"extra": map[string]any{"a": map[string]any{"b": 1.0}}}},
		{
			`driver_info = { deploy_kernel = "http://k" }`, "remove", "/driver_info/deploy_kernel", nil,
			map[string]any{"driver_info": map[string]any{"deploy_kernel": "http://k"}},
		},
		{
			`network_data = jsonencode({ links = [], networks = [], services = [] })`, "remove", "/network_data", nil,
			map[string]any{"network_data": map[string]any{"links": []any{}}},
		},
		{
			`hardware_interfaces = { deploy = "direct" }`, "replace", "/deploy_interface", "fake",
			map[string]any{"deploy_interface": "direct"},
		},
	} {
		settings = append(settings, tt.setting)
		attributes = append(attributes, strings.Fields(tt.setting)[0])
		wants = append(wants, setting{has: tt.want})
		byHand = append(byHand, func() { s.Patch(s.Name("h"), tt.op, tt.path, tt.value) })
	}
	acctest.Test(t,
		resource.TestStep{Config: hostConfig(s, settings...)},
		resource.TestStep{
			PreConfig: func() {
				for _, change := range byHand {
					change()
				}
			},
			Config:            hostConfig(s, settings...),
			ConfigPlanChecks:  resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plansToChange(attributes)}},
			ConfigStateChecks: []statecheck.StateCheck{nodeHas(s, merged(wants, func(x setting) map[string]any { return x.has }))},
		},
	)
}

func TestAccHost_traitDrift(t *testing.T) {
	s := site.Start(t, nil)
	config := hostConfig(s, `traits = ["CUSTOM_A", "CUSTOM_B"]`)
	acctest.Test(t,
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig:         func() { s.Must(http.MethodDelete, "nodes/"+s.Name("h")+"/traits/CUSTOM_B", nil) },
			Config:            config,
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{nodeHas(s, map[string]any{"traits": []any{"CUSTOM_A", "CUSTOM_B"}})},
		},
	)
}

// Another client of Ironic deploys the host. The computed attributes show that, the plan changes nothing, and a destroy fails.
func TestAccHost_deployedByOthersIsNotDestroyed(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	name := s.Name("h")
	w := acctest.NewWorkspace(t, hostConfig(s, acctest.Target("available")))
	w.Must("apply", "-auto-approve")
	defer acctest.Destroy(t, s, w)
	const instance = "6a0d3a2e-5b3c-4c9a-9a55-0c1f5e7d4b21"
	unique := instance[:len(instance)-8] + name[len(name)-8:]
	s.Patch(name, "add", "/instance_uuid", unique)
	s.Verb(name, "active", "active")
	defer s.Verb(name, "deleted", "available")
	acctest.NoChanges(t, w)
	w.Must("apply", "-auto-approve", "-refresh-only")
	if host := acctest.InState(t, w, acctest.HostAddress); host.Values["provision_state"] != "active" ||
		host.Values["instance_id"] != unique {
		t.Errorf("the state has %v", host.Values)
	}

	refused := func() {
		t.Helper()
		output, code := w.Run("destroy", "-auto-approve")
		if code == 0 || s.Node(name) == nil {
			t.Fatalf("a deployed host was destroyed:\n%s", output)
		}
		acctest.Mention(t, output, "Could not delete host "+name, "something is deployed on it", "To keep the machine as it is",
			"Only if the machine may be wiped")
		if acctest.InState(t, w, acctest.HostAddress) == nil {
			t.Errorf("the host is not in state any more:\n%s", output)
		}
	}
	refused()
	s.Must(http.MethodPut, "nodes/"+name+"/maintenance", map[string]any{"reason": "by hand"}) // Ironic itself would delete it now
	refused()
	s.Must(http.MethodDelete, "nodes/"+name+"/maintenance", nil)
}

func TestAccHost_reservedByOthersIsNotDestroyed(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	name := s.Name("h")
	w := acctest.NewWorkspace(t, hostConfig(s, acctest.Target("available"), `resource_class = `+acctest.Quoted(s.Class())))
	w.Must("apply", "-auto-approve")
	defer acctest.Destroy(t, s, w)
	s.Must(http.MethodPost, "allocations", map[string]any{"name": s.Name("a"), "resource_class": s.Class()})
	s.Await(name, "provision_state", "available")
	for s.Node(name)["instance_uuid"] == nil {
		s.Await(name, "provision_state", "available")
	}
	defer s.Must(http.MethodDelete, "allocations/"+s.Name("a"), nil)
	for _, maintenance := range []string{http.MethodPut, http.MethodDelete} {
		s.Must(maintenance, "nodes/"+name+"/maintenance", map[string]any{})
		output, code := w.Run("destroy", "-auto-approve")
		if code == 0 || s.Node(name) == nil {
			t.Fatalf("a reserved host was destroyed:\n%s", output)
		}
		acctest.Mention(t, output, "Could not delete host "+name, "reserved by")
	}
}

func TestAccHost_onDestroyForget(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w := acctest.NewWorkspace(t, hostConfig(s, acctest.Target("available"), `on_destroy = "forget"`))
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
	if node := s.Node(s.Name("h")); node == nil || node["provision_state"] != "available" {
		t.Errorf("the node in Ironic is %v, want it as it was", node)
	}
	s.Must(http.MethodDelete, "nodes/"+s.Name("h"), nil)
}
