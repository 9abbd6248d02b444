package resources_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
)

// addNode enrolls a node by hand and makes it available, in the test's class, for tests of what is done with nodes: a fake
// at once, whatever its pace. The fields are further attributes of the node. When the test ends, nothing of ours may be
// left on the node.
func addNode(t *testing.T, s *acctest.Site, name string, fields map[string]any) string {
	t.Helper()
	body := map[string]any{"driver": "fake-hardware", "name": s.Name(name), "resource_class": s.Class()}
	for key, value := range fields {
		body[key] = value
	}
	id := text(s.Must(http.MethodPost, "nodes", body)["uuid"])
	t.Cleanup(func() { removeNode(t, s, id) })
	if s.Fake != nil {
		s.Fake.Set(id, "power_state", "power off")
		s.Fake.Set(id, "provision_state", "available")
		return id
	}
	// Ironic allocates no node whose power state it does not know.
	s.Must(http.MethodPut, "nodes/"+id+"/states/power", map[string]any{"target": "power off"})
	s.Await(id, "power_state", "power off")
	s.Verb(id, "manage", "manageable")
	s.Verb(id, "provide", "available")
	return id
}

// removeNode deletes a node of addNode, and fails a test that has left something on it.
func removeNode(t *testing.T, s *acctest.Site, id string) {
	t.Helper()
	node := s.Node(id)
	if node == nil {
		return
	}
	if !t.Failed() {
		info, _ := node["instance_info"].(map[string]any)
		delete(info, "traits") // Ironic leaves those of a released allocation
		extra, _ := node["extra"].(map[string]any)
		if node["provision_state"] != "available" || node["instance_uuid"] != nil || len(info) > 0 || len(extra) > 0 {
			t.Errorf("left on node %v: state %v, reserved by %v, instance_info %v, extra %v",
				node["name"], node["provision_state"], node["instance_uuid"], info, extra)
		}
	}
	s.Must(http.MethodPut, "nodes/"+id+"/maintenance", map[string]any{}) // else Ironic keeps one that failed
	s.Must(http.MethodDelete, "nodes/"+id, nil)
}

// addTrait gives a node a trait by hand.
func addTrait(s *acctest.Site, node, trait string) {
	s.Must(http.MethodPut, "nodes/"+node+"/traits/"+trait, nil)
}

// allocationNamed returns an allocation by name or UUID; nil if there is none.
func allocationNamed(s *acctest.Site, ref string) map[string]any {
	status, answer := s.Call(http.MethodGet, "allocations/"+ref, nil)
	if status == http.StatusNotFound {
		return nil
	}
	return answer
}

// text is a string of an answer; "" if it is null.
func text(value any) string {
	s, _ := value.(string)
	return s
}

// instanceInfo is what a node is deployed with.
func instanceInfo(s *acctest.Site, node string) map[string]any {
	info, _ := s.Node(node)["instance_info"].(map[string]any)
	return info
}

// awaitState waits until a node is in one of the states, be it locked or not.
func awaitState(t *testing.T, s *acctest.Site, node string, states ...string) {
	t.Helper()
	var now string
	defer func() {
		if t.Failed() {
			t.Logf("node %s is in state %s", node, now)
		}
	}()
	acctest.Until(t, fmt.Sprintf("node %s to be in one of the states %v", node, states), func() bool {
		now = text(s.Node(node)["provision_state"])
		return slices.Contains(states, now)
	})
}

// verbs are the verbs that a node was sent, in order. Only the fake knows them.
func verbs(s *acctest.Site, node string) []string {
	var sent []string
	for _, r := range s.Fake.Requests() {
		if r.Method != http.MethodPut || r.Path != "/v1/nodes/"+node+"/states/provision" {
			continue
		}
		var body struct{ Target string }
		_ = json.Unmarshal([]byte(r.Body), &body) // ours is always JSON
		sent = append(sent, body.Target)
	}
	return sent
}

// wantVerbs fails a test on the fake if a node was sent other verbs.
func wantVerbs(t *testing.T, s *acctest.Site, node string, want ...string) {
	t.Helper()
	if s.Fake == nil {
		return
	}
	if got := verbs(s, node); !slices.Equal(got, want) {
		t.Errorf("node %s was sent %v, want %v", node, got, want)
	}
}

// forgetVerbs makes wantVerbs count from here.
func forgetVerbs(s *acctest.Site) {
	if s.Fake != nil {
		s.Fake.ResetRequests()
	}
}

// host is the HCL of a host "hN" of the test's class that is made available, with further settings.
func host(s *acctest.Site, n int, settings ...string) string {
	return fmt.Sprintf("resource \"metal_host\" \"h%d\" {\n  name = %q\n  driver = \"fake-hardware\"\n  resource_class = %q\n  target_state = \"available\"\n  %s\n}\n",
		n, s.Name(fmt.Sprintf("h%d", n)), s.Class(), strings.Join(settings, "\n  "))
}

// allocation is the HCL of the allocation "a" in the test's class, with further settings.
func allocation(s *acctest.Site, settings ...string) string {
	return fmt.Sprintf("resource \"metal_allocation\" \"a\" {\n  resource_class = %q\n  %s\n}\n", s.Class(), strings.Join(settings, "\n  "))
}

// deployment is the HCL of the deployment "d" of a node, with further settings. The node is an expression.
func deployment(node string, settings ...string) string {
	return fmt.Sprintf("resource \"metal_deployment\" \"d\" {\n  node_id = %s\n  %s\n}\n", node, strings.Join(settings, "\n  "))
}

// allocated is the HCL of the deployment "d" of the node of the allocation "a".
func allocated(settings ...string) string {
	return deployment("metal_allocation.a.node_id", append([]string{"allocation_id = metal_allocation.a.id"}, settings...)...)
}

// quoted is a string as an HCL expression.
func quoted(s string) string { return fmt.Sprintf("%q", s) }

// images is where images are. Ironic looks at once whether they exist: nobody is there, which it learns quickly.
const images = "http://127.0.0.1:9/"

// image is the HCL of a whole-disk image.
func image(name string) string {
	return fmt.Sprintf("image = {\n    url = %q\n    checksum = %q\n    disk_format = \"qcow2\"\n  }", images+name+".qcow2", strings.Repeat("a1", 32))
}

// failingStep is the HCL of deploy steps with which a deployment fails, on any Ironic: the deployment itself is switched off.
const failingStep = `deploy_steps = [{ interface = "deploy", step = "deploy", args = jsonencode({}), priority = 0 }]`

// lastErrorOfFailingStep is what Ironic says then.
const lastErrorOfFailingStep = "No deploy steps returned by the driver"

// test runs steps against the provider in this process, in parallel with other tests.
func test(t *testing.T, steps ...resource.TestStep) {
	t.Helper()
	resource.ParallelTest(t, resource.TestCase{ProtoV6ProviderFactories: acctest.Factories(), Steps: steps})
}

// wrapped matches a text that the CLI may have broken into lines.
func wrapped(text string) string {
	return strings.ReplaceAll(text, " ", `[\s│]+`)
}

// object is a resource in a workspace's state.
type object struct {
	Values  map[string]any
	Tainted bool
}

// inState returns a resource in a workspace's state; nil if it is not there.
func inState(t *testing.T, w *acctest.Workspace, address string) *object {
	t.Helper()
	var state struct {
		Values struct {
			Root struct {
				Resources []struct {
					Address string
					Values  map[string]any
					Tainted bool
				}
			} `json:"root_module"`
		}
	}
	output := w.Must("show", "-json")
	if err := json.Unmarshal([]byte(output), &state); err != nil {
		t.Fatalf("terraform show: %v\n%s", err, output)
	}
	for _, r := range state.Values.Root.Resources {
		if r.Address == address {
			return &object{Values: r.Values, Tainted: r.Tainted}
		}
	}
	return nil
}

// mention fails a test unless a CLI's output holds all the texts, however it has broken the lines.
func mention(t *testing.T, output string, texts ...string) {
	t.Helper()
	flat := strings.Join(strings.FieldsFunc(output, func(r rune) bool { return strings.ContainsRune(" \n\t│╷╵", r) }), " ")
	for _, text := range texts {
		if !strings.Contains(flat, text) {
			t.Errorf("the output does not say %q:\n%s", text, output)
		}
	}
}

// noChanges fails a test whose plan is not empty.
func noChanges(t *testing.T, w *acctest.Workspace) {
	t.Helper()
	if output, changes := w.Plan(); changes {
		t.Errorf("the plan is not empty:\n%s", output)
	}
}
