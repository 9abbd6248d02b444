package host_test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-testing/compare"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// hostConfig is a configuration with the host "h", on fake hardware, with further settings.
func hostConfig(s *site.Site, settings ...string) string {
	return s.Provider() + acctest.HostBlock(s.Name("h"), append([]string{`driver = "fake-hardware"`}, settings...)...)
}

// hostIs checks an attribute of the host in state.
func hostIs(attribute string, value knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(acctest.HostAddress, tfjsonpath.New(attribute), value)
}

// hostPlan checks the planned action for the host.
func hostPlan(action plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(acctest.HostAddress, action)}}
}

// nodeHas checks that the node in Ironic has at least these values; nil stands for null and for a missing key.
func nodeHas(s *site.Site, want map[string]any) statecheck.StateCheck {
	return onNode{site: s, want: want}
}

type onNode struct {
	site    *site.Site
	want    map[string]any
	version string // of the API that has the attributes; empty: 1.82
}

// CheckState compares the node whose UUID is in state.
func (n onNode) CheckState(_ context.Context, req statecheck.CheckStateRequest, resp *statecheck.CheckStateResponse) {
	id := hostID(req.State)
	node := n.site.Node(id)
	if node == nil {
		resp.Error = fmt.Errorf("there is no node %q", id)
		return
	}
	if n.version != "" {
		node = n.site.NodeAt(n.version, id)
	}
	if found := lacks("", node, n.want); len(found) > 0 {
		resp.Error = fmt.Errorf("the node in Ironic: %s", strings.Join(found, "; "))
	}
}

func hostID(state *tfjson.State) string {
	if state.Values != nil && state.Values.RootModule != nil {
		for _, r := range state.Values.RootModule.Resources {
			if r.Address == acctest.HostAddress {
				return site.Text(r.AttributeValues["id"])
			}
		}
	}
	return ""
}

// lacks describes the differences between a value and the wanted one.
func lacks(path string, have, want any) []string {
	wanted, ok := want.(map[string]any)
	if !ok {
		if want == nil && (have == nil || have == "") || reflect.DeepEqual(have, want) {
			return nil
		}
		return []string{fmt.Sprintf("%s is %#v, want %#v", path, have, want)}
	}
	values, _ := have.(map[string]any)
	var found []string
	for key, value := range wanted {
		found = append(found, lacks(path+"/"+key, values[key], value)...)
	}
	return found
}

// portOf returns the port of a MAC address; nil if there is none.
func portOf(s *site.Site, mac string) map[string]any {
	found, _ := s.Must(http.MethodGet, "ports/detail?address="+mac, nil)["ports"].([]any)
	if len(found) == 0 {
		return nil
	}
	port, _ := found[0].(map[string]any)
	return port
}

// onPort checks a port in Ironic; with nil, that there is none.
type onPort struct {
	site *site.Site
	mac  string
	want map[string]any
}

// CheckState compares the port with the MAC address.
func (p onPort) CheckState(_ context.Context, req statecheck.CheckStateRequest, resp *statecheck.CheckStateResponse) {
	port := portOf(p.site, p.mac)
	switch {
	case (port == nil) != (p.want == nil):
		resp.Error = fmt.Errorf("port %s: there is %v, want %v", p.mac, port, p.want)
	case port != nil && port["node_uuid"] != hostID(req.State):
		resp.Error = fmt.Errorf("port %s belongs to node %v", p.mac, port["node_uuid"])
	case port != nil:
		if found := lacks("", port, p.want); len(found) > 0 {
			resp.Error = fmt.Errorf("port %s in Ironic: %s", p.mac, strings.Join(found, "; "))
		}
	}
}

// nothingLeft checks after a test's own destroy that Ironic has none of its nodes and ports.
func nothingLeft(s *site.Site) resource.TestCheckFunc {
	return func(*terraform.State) error {
		left := s.Left()
		for n := range 4 {
			if portOf(s, s.MAC(n)) != nil {
				left = append(left, "ports/"+s.MAC(n))
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("left in Ironic: %v", left)
		}
		return nil
	}
}

func TestAccHost_lifecycle(t *testing.T) {
	s := site.Start(t, nil)
	stays := statecheck.CompareValue(compare.ValuesSame())
	before := hostConfig(s, `resource_class = `+acctest.Quoted(s.Class()), `ports = { `+acctest.Quoted(s.MAC(1))+
		` = { pxe_enabled = true } }`)
	after := hostConfig(s, `resource_class = `+acctest.Quoted(s.Class()), `description = "spare"`, `ports = { `+acctest.Quoted(s.MAC(1))+
		` = { pxe_enabled = false } }`)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		CheckDestroy:             nothingLeft(s),
		Steps: []resource.TestStep{
			{
				Config:           before,
				ConfigPlanChecks: hostPlan(plancheck.ResourceActionCreate),
				ConfigStateChecks: []statecheck.StateCheck{
					stays.AddStateValue(acctest.HostAddress, tfjsonpath.New("id")),
					hostIs("provision_state", knownvalue.StringExact("manageable")),
					hostIs("target_state", knownvalue.StringExact("manageable")),
					hostIs("power_managed", knownvalue.Bool(true)),
					hostIs("maintenance", knownvalue.Bool(false)),
					hostIs("last_error", knownvalue.Null()),
					hostIs("instance_id", knownvalue.Null()),
					hostIs("hardware_interfaces", knownvalue.Null()),
					nodeHas(s, map[string]any{
						"name": s.Name("h"), "driver": "fake-hardware", "provision_state": "manageable",
						"resource_class": s.Class(),
					}),
				},
			},
			{
				Config:           after,
				ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate),
				ConfigStateChecks: []statecheck.StateCheck{
					stays.AddStateValue(acctest.HostAddress, tfjsonpath.New("id")),
					nodeHas(s, map[string]any{"description": "spare", "provision_state": "manageable"}),
				},
				Check: func(*terraform.State) error {
					if pxe := portOf(s, s.MAC(1))["pxe_enabled"]; pxe != false {
						return fmt.Errorf("pxe_enabled of the port is %v, want false", pxe)
					}
					return nil
				},
			},
			{ResourceName: acctest.HostAddress, ImportState: true, ImportStateVerify: true},
			{
				ResourceName: acctest.HostAddress, ImportState: true, ImportStateKind: resource.ImportBlockWithID,
				ImportPlanChecks: resource.ImportPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			},
		},
	})
}

func TestAccHost_importByIdentity(t *testing.T) {
	s := site.Start(t, nil)
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{tfversion.SkipBelow(tfversion.Version1_12_0)},
		Steps: []resource.TestStep{
			{
				Config: hostConfig(s),
				ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectIdentityValueMatchesState(acctest.HostAddress,
					tfjsonpath.New("id"))},
			},
			{ResourceName: acctest.HostAddress, ImportState: true, ImportStateKind: resource.ImportBlockWithResourceIdentity},
		},
	})
}
