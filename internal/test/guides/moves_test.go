package guides_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// These tests move resources of other providers with moved blocks. testdata has a state file of each provider.

// oldProviders have resources of the types ironic_node_v1, ironic_allocation_v1 and ironic_deployment.
var oldProviders = []string{"openshift-metal3", "metal3-community"}

// movedBlocks returns the example of the guide to migration, which moves a node, an allocation and a deployment, each named web.
func movedBlocks(t *testing.T) string {
	t.Helper()
	_, text, _ := strings.Cut(read(t, "../../../templates/guides/from-terraform-provider-ironic.md.tmpl"), "## Move instead of import")
	_, text, found := strings.Cut(text, "```terraform\n")
	text, _, closed := strings.Cut(text, "```")
	if !found || !closed {
		t.Fatal("the guide has no moved blocks")
	}
	return text
}

const movedImage = acctest.Images + "v1.qcow2"

// oldSite is what an old provider has made: a node, an allocation of it, and a deployment, with its state in a workspace.
type oldSite struct {
	*site.Site
	w                *acctest.Workspace
	node, allocation string
}

// leaveBehind makes what an old provider would have made, and a workspace with its state and a configuration of this one.
func leaveBehind(t *testing.T, old string) oldSite {
	t.Helper()
	s := oldSite{Site: site.Start(t, nil)}
	s.node = site.AddNode(t, s.Site, "web", nil)
	s.allocation = site.Text(s.Must(http.MethodPost, "allocations", map[string]any{
		"name":           s.Name("reserved"),
		"resource_class": s.Class(),
	})["uuid"])
	s.Await(s.node, "allocation_uuid", s.allocation)
	s.Patch(s.node, "add", "/instance_info/image_source", movedImage)
	s.Patch(s.node, "add", "/instance_info/image_checksum", "d41d8cd98f00b204e9800998ecf8427e")
	s.Verb(s.node, "active", "active")
	t.Cleanup(func() {
		if node := s.Node(s.node); node != nil && node["provision_state"] == "active" {
			s.Verb(s.node, "deleted", "available") // Ironic deletes the allocation
		}
	})

	s.w = acctest.NewWorkspace(t, s.Provider()+`
resource "metal_host" "web" {
  name = "`+s.Name("web")+`"
}
resource "metal_allocation" "web" {
  name           = "`+s.Name("reserved")+`"
  resource_class = "`+s.Class()+`"
  candidate_nodes = [metal_host.web.id]
}
resource "metal_deployment" "web" {
  node_id       = metal_allocation.web.node_id
  allocation_id = metal_allocation.web.id
  image = {
    url      = "`+movedImage+`"
    checksum = "d41d8cd98f00b204e9800998ecf8427e"
  }
}
`+movedBlocks(t))
	s.w.StandFor(old + "/ironic")
	s.w.SetState(s.oldState(t, old))
	site.ForgetVerbs(s.Site)
	return s
}

// oldState returns the state file of an old provider.
func (s oldSite) oldState(t *testing.T, old string) string {
	t.Helper()
	return strings.NewReplacer("NODE_ID", s.node, "NODE_NAME", s.Name("web"), "ALLOCATION_ID", s.allocation, "ALLOCATION_NAME",
		s.Name("reserved"),
		"CLASS", s.Class(), "IMAGE", movedImage).Replace(read(t, filepath.Join("testdata", old+".state.json")))
}

// wantUntouched fails the test if anything but the state has changed.
func (s oldSite) wantUntouched(t *testing.T, before map[string]any) {
	t.Helper()
	if after := s.Node(s.node); after["updated_at"] != before["updated_at"] || after["allocation_uuid"] != s.allocation {
		t.Errorf("the node was changed: %v, before %v", after, before)
	}
	if s.Fake != nil && slices.ContainsFunc(s.Fake.Requests(), func(r fakeironic.Request) bool { return r.Method != http.MethodGet }) {
		t.Errorf("changes sent to Ironic: %v", s.Fake.Requests())
	}
}

func TestAccMoves_stateOfOldProviderLeadsToEmptyPlan(t *testing.T) {
	t.Parallel()
	for _, old := range oldProviders {
		t.Run(old, func(t *testing.T) {
			t.Parallel()
			s := leaveBehind(t, old)
			before := s.Node(s.node)
			output := s.w.Must("apply", "-auto-approve")
			acctest.Mention(t, output, "ironic_node_v1.web has moved to metal_host.web", "moved from ironic_allocation_v1.web",
				"ironic_deployment.web has moved to metal_deployment.web", "0 added, 1 changed, 0 destroyed")
			acctest.NeverMention(t, output, "Warning:")
			acctest.NoChanges(t, s.w)
			s.wantUntouched(t, before)
			for address, id := range map[string]string{
				"metal_host.web": s.node, "metal_allocation.web": s.allocation,
				"metal_deployment.web": s.node,
			} {
				if got := acctest.InState(t, s.w, address).Values["id"]; got != id {
					t.Errorf("%s has the id %v, want %s", address, got, id)
				}
			}
			s.w.Must("state", "rm", "metal_host.web", "metal_allocation.web", "metal_deployment.web")
		})
	}
}

// The newest version of the fork has dropped the suffix of its types.
func TestAccMoves_newestNamesOfTheFork(t *testing.T) {
	t.Parallel()
	s := leaveBehind(t, "metal3-community")
	before := s.Node(s.node)
	s.w.SetState(strings.ReplaceAll(s.oldState(t, "metal3-community"), "_v1\"", "\""))
	main := filepath.Join(s.w.Dir, "main.tf")
	write(t, main, strings.ReplaceAll(read(t, main), "_v1.web", ".web"))
	acctest.Mention(t, s.w.Must("apply", "-auto-approve"), "ironic_node.web has moved to metal_host.web",
		"moved from ironic_allocation.web", "0 added, 1 changed, 0 destroyed")
	acctest.NoChanges(t, s.w)
	s.wantUntouched(t, before)
	s.w.Must("state", "rm", "metal_host.web", "metal_allocation.web", "metal_deployment.web")
}

// Without a refresh, a moved resource has only its ID. Plans that know no more do not touch it.
func TestAccMoves_unreadStateIsNotPlanned(t *testing.T) {
	t.Parallel()
	s := leaveBehind(t, oldProviders[0])
	before := s.Node(s.node)
	for _, command := range [][]string{
		{"plan", "-refresh=false"},
		{"apply", "-auto-approve", "-refresh=false"},
		{"destroy", "-auto-approve", "-refresh=false"},
	} {
		acctest.Fails(t, s.w, command, "Moved resource was not read", "Plan without -refresh=false")
	}
	s.wantUntouched(t, before)
	s.w.Must("plan")
}

// The old providers deploy nodes without reserving them.
func TestAccMoves_deploymentWithoutReservationIsExplained(t *testing.T) {
	t.Parallel()
	s := leaveBehind(t, oldProviders[0])
	s.Must(http.MethodPut, "nodes/"+s.node+"/maintenance", map[string]any{})
	s.Must(http.MethodDelete, "allocations/"+s.allocation, nil) // which Ironic allows in maintenance
	s.Must(http.MethodDelete, "nodes/"+s.node+"/maintenance", nil)
	site.ForgetVerbs(s.Site)
	s.w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(s.node), acctest.Image("v1")) +
		"moved {\n  from = ironic_deployment.web\n  to   = metal_deployment.d\n}\n")
	acctest.Fails(t, s.w, []string{"plan", "-target=metal_deployment.d", "-target=ironic_deployment.web"},
		"Could not import the deployment of node "+s.node, "not reserved", "backfill_node")
	site.WantVerbs(t, s.Site, s.node)
}

// One block moves all instances of a resource.
func TestAccMoves_instancesKeepTheirKeys(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	var instances []map[string]any
	for _, key := range []string{"a", "b"} {
		instances = append(instances, map[string]any{"index_key": key, "attributes": map[string]any{"id": site.AddNode(t, s, key, nil)}})
	}
	state, err := json.Marshal(map[string]any{
		"version": 4, "terraform_version": "1.5.7", "lineage": "0f0d3a2e-5b3c-4c9a-9a55-0c1f5e7d4b21",
		"resources": []any{
			map[string]any{
				"mode": "managed", "type": "ironic_node_v1", "name": "web",
				"provider": `provider["registry.terraform.io/openshift-metal3/ironic"]`, "instances": instances,
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := acctest.NewWorkspace(t, s.Provider()+"resource \"metal_host\" \"web\" {\n  for_each = toset([\"a\", \"b\"])\n  name     = "+
		"\"${each.key}"+s.Name("")+"\"\n}\n"+
		"moved {\n  from = ironic_node_v1.web\n  to   = metal_host.web\n}\n")
	w.StandFor("openshift-metal3/ironic")
	w.SetState(string(state))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), `ironic_node_v1.web["a"] has moved to metal_host.web["a"]`,
		"0 added, 0 changed, 0 destroyed")
	acctest.NoChanges(t, w)
	w.Must("state", "rm", "metal_host.web")
}

func TestFakeMoves_refusesWhatItCannotIdentify(t *testing.T) {
	t.Parallel()
	s := leaveBehind(t, oldProviders[0])
	for name, tc := range map[string]struct {
		old, instead string
		want         []string
	}{
		"node by name": {`"id": "` + s.node + `"`, `"id": "rack1-03"`, []string{
			"Could not move the state of ironic_", `"rack1-03"`,
			"import it instead",
		}},
		"other provider": {"openshift-metal3/ironic", "example/other", []string{"Unable to Move Resource State"}},
	} {
		t.Run(name, func(t *testing.T) {
			s.w.StandFor("example/other")
			s.w.SetState(strings.ReplaceAll(s.oldState(t, oldProviders[0]), tc.old, tc.instead))
			acctest.Fails(t, s.w, []string{"plan"}, tc.want...)
		})
	}
}
