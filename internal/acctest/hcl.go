package acctest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

// AddNode enrolls a node in the test's class without the provider and makes it available; on the fake at once. fields are
// further attributes. It returns the UUID. When the test ends, AddNode removes the node, and fails a test that left a
// reservation, instance_info or extra on it.
func AddNode(t *testing.T, s *Site, name string, fields map[string]any) string {
	t.Helper()
	body := map[string]any{"driver": "fake-hardware", "name": s.Name(name), "resource_class": s.Class()}
	for key, value := range fields {
		body[key] = value
	}
	id := Text(s.Must(http.MethodPost, "nodes", body)["uuid"])
	t.Cleanup(func() { RemoveNode(t, s, id) })
	if s.Fake != nil {
		s.Fake.Set(id, "power_state", "power off")
		s.Fake.Set(id, "provision_state", "available")
		return id
	}
	// Ironic allocates only nodes with a power state.
	s.Must(http.MethodPut, "nodes/"+id+"/states/power", map[string]any{"target": "power off"})
	s.Await(id, "power_state", "power off")
	s.Verb(id, "manage", "manageable")
	s.Verb(id, "provide", "available")
	return id
}

// RemoveNode deletes a node of AddNode, and fails a test that left something on it.
func RemoveNode(t *testing.T, s *Site, id string) {
	t.Helper()
	node := s.Node(id)
	if node == nil {
		return
	}
	if !t.Failed() {
		info, _ := node["instance_info"].(map[string]any)
		delete(info, "traits") // Ironic keeps those of a deleted allocation
		extra, _ := node["extra"].(map[string]any)
		maps.DeleteFunc(extra, isDoneMark)
		if node["provision_state"] != "available" || node["instance_uuid"] != nil || len(info) > 0 || len(extra) > 0 {
			t.Errorf("left on node %v: state %v, reserved by %v, instance_info %v, extra %v",
				node["name"], node["provision_state"], node["instance_uuid"], info, extra)
		}
	}
	s.Must(http.MethodPut, "nodes/"+id+"/maintenance", map[string]any{}) // so that Ironic deletes it in any state
	s.Must(http.MethodDelete, "nodes/"+id, nil)
}

// isDoneMark reports whether an entry of extra is the mark of a creation that is finished. Only the next write of the provider
// removes such a mark.
func isDoneMark(key string, value any) bool {
	runs, _ := value.(map[string]any)
	for _, run := range runs {
		if mark, _ := run.(map[string]any); mark["done"] == nil {
			return false
		}
	}
	return len(runs) > 0 && slices.Contains([]string{"terraform_metal_creation", "terraform_metal_reservation"}, key)
}

// AddTrait adds a trait to a node as another client.
func AddTrait(s *Site, node, trait string) {
	s.Must(http.MethodPut, "nodes/"+node+"/traits/"+trait, nil)
}

// AllocationNamed returns an allocation by name or UUID; nil if there is none.
func AllocationNamed(s *Site, ref string) map[string]any {
	status, answer := s.Call(http.MethodGet, "allocations/"+ref, nil)
	if status == http.StatusNotFound {
		return nil
	}
	return answer
}

// Text returns a string in an answer; "" if it is null.
func Text(value any) string {
	s, _ := value.(string)
	return s
}

// InstanceInfo returns instance_info of a node.
func InstanceInfo(s *Site, node string) map[string]any {
	info, _ := s.Node(node)["instance_info"].(map[string]any)
	return info
}

// AwaitState waits up to a minute until a node is in one of the states, locked or not.
func AwaitState(t *testing.T, s *Site, node string, states ...string) {
	t.Helper()
	var now string
	defer func() {
		if t.Failed() {
			t.Logf("node %s is in state %s", node, now)
		}
	}()
	Until(t, fmt.Sprintf("node %s to be in one of the states %v", node, states), func() bool {
		now = Text(s.Node(node)["provision_state"])
		return slices.Contains(states, now)
	})
}

// Verbs returns the provision verbs that the fake accepted for a node, in order.
func Verbs(s *Site, node string) []string {
	var sent []string
	for _, r := range s.Fake.Requests() {
		if r.Method != http.MethodPut || r.Path != "/v1/nodes/"+node+"/states/provision" || r.Status != http.StatusAccepted {
			continue
		}
		var body struct{ Target string }
		_ = json.Unmarshal([]byte(r.Body), &body) // ours is always JSON
		sent = append(sent, body.Target)
	}
	return sent
}

// WantVerbs fails a test if the fake accepted other provision verbs for a node. It does nothing on a real Ironic.
func WantVerbs(t *testing.T, s *Site, node string, want ...string) {
	t.Helper()
	if s.Fake == nil {
		return
	}
	if got := Verbs(s, node); !slices.Equal(got, want) {
		t.Errorf("node %s was sent %v, want %v", node, got, want)
	}
}

// ForgetVerbs empties the fake's log of requests, so that WantVerbs counts from here.
func ForgetVerbs(s *Site) {
	if s.Fake != nil {
		s.Fake.ResetRequests()
	}
}

// Host returns the HCL of a host "hN" in the test's class with target_state "available" and further settings.
func Host(s *Site, n int, settings ...string) string {
	return fmt.Sprintf("resource \"metal_host\" \"h%d\" {\n  name = %q\n  driver = \"fake-hardware\"\n  resource_class = %q\n  target_state = \"available\"\n  %s\n}\n",
		n, s.Name(fmt.Sprintf("h%d", n)), s.Class(), strings.Join(settings, "\n  "))
}

// Allocation returns the HCL of the allocation "a" in the test's class, with further settings.
func Allocation(s *Site, settings ...string) string {
	return fmt.Sprintf("resource \"metal_allocation\" \"a\" {\n  resource_class = %q\n  %s\n}\n", s.Class(), strings.Join(settings, "\n  "))
}

// Deployment returns the HCL of the deployment "d" of a node, with further settings. node is an HCL expression.
func Deployment(node string, settings ...string) string {
	return fmt.Sprintf("resource \"metal_deployment\" \"d\" {\n  node_id = %s\n  %s\n}\n", node, strings.Join(settings, "\n  "))
}

// Allocated returns the HCL of the deployment "d" of the node of the allocation "a".
func Allocated(settings ...string) string {
	return Deployment("metal_allocation.a.node_id", append([]string{"allocation_id = metal_allocation.a.id"}, settings...)...)
}

// Quoted returns a string as an HCL expression.
func Quoted(s string) string { return fmt.Sprintf("%q", s) }

// Images is the URL of a server for images that does not answer: a connection fails at once, so Ironic's check is quick.
const Images = "http://127.0.0.1:9/"

// Image returns the HCL of a whole-disk image.
func Image(name string) string {
	return fmt.Sprintf("image = {\n    url = %q\n    checksum = %q\n    disk_format = \"qcow2\"\n  }", Images+name+".qcow2", strings.Repeat("a1", 32))
}

// FailingStep is the HCL of deploy steps that make a deployment fail on every Ironic: they disable the core step.
const FailingStep = `deploy_steps = [{ interface = "deploy", step = "deploy", args = jsonencode({}), priority = 0 }]`

// LastErrorOfFailingStep is Ironic's last_error after a deployment with FailingStep.
const LastErrorOfFailingStep = "No deploy steps returned by the driver"

// Wrapped returns a regular expression for a text that the CLI may have broken into lines.
func Wrapped(text string) string {
	return strings.ReplaceAll(text, " ", `[\s│]+`)
}

// Object is a resource in a workspace's state.
type Object struct {
	Values  map[string]any
	Tainted bool
}

// InState returns a resource of the root module in a workspace's state; nil if it is not there. It reads the state file: a CLI
// that shows it takes longer than a plan.
func InState(t *testing.T, w *Workspace, address string) *Object {
	t.Helper()
	var state struct {
		Version   int
		Resources []struct {
			Module, Mode, Type, Name string
			Instances                []struct {
				IndexKey   any `json:"index_key"`
				Deposed    string
				Status     string
				Attributes map[string]any
			}
		}
	}
	content, err := os.ReadFile(filepath.Join(w.Dir, "terraform.tfstate"))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(content) == 0 { // OpenTofu makes the file before it writes it
		return nil
	}
	if err == nil {
		err = json.Unmarshal(content, &state)
	}
	if err != nil || state.Version != 4 {
		t.Fatalf("state of version %d, want 4: %v\n%s", state.Version, err, content)
	}
	for _, r := range state.Resources {
		if r.Module != "" || r.Mode != "managed" {
			continue
		}
		for _, instance := range r.Instances {
			name := r.Type + "." + r.Name
			if instance.IndexKey != nil {
				name += fmt.Sprintf("[%#v]", instance.IndexKey) // a number of JSON is a float64, which prints as it was
			}
			if name == address && instance.Deposed == "" {
				return &Object{Values: instance.Attributes, Tainted: instance.Status == "tainted"}
			}
		}
	}
	return nil
}

// Mention fails a test unless a CLI's output has all texts. Line breaks do not count.
func Mention(t *testing.T, output string, texts ...string) {
	t.Helper()
	flat := Unwrapped(output)
	for _, text := range texts {
		if !strings.Contains(flat, text) {
			t.Errorf("the output does not say %q:\n%s", text, output)
		}
	}
}

// NeverMention fails a test if a CLI's output has one of the texts. Line breaks do not count.
func NeverMention(t *testing.T, output string, texts ...string) {
	t.Helper()
	flat := Unwrapped(output)
	for _, text := range texts {
		if strings.Contains(flat, text) {
			t.Errorf("the output says %q:\n%s", text, output)
		}
	}
}

// Unwrapped returns a CLI's output as one line, without the frames of messages.
func Unwrapped(output string) string {
	return strings.Join(strings.FieldsFunc(output, func(r rune) bool { return strings.ContainsRune(" \n\t│╷╵", r) }), " ")
}

// NoChanges fails a test whose plan is not empty.
func NoChanges(t *testing.T, w *Workspace) {
	t.Helper()
	if output, changes := w.Plan(); changes {
		t.Errorf("the plan is not empty:\n%s", output)
	}
}

// NoDrift fails a test if a refresh changes the state, in a way that the plan shows or in private state. A pipeline that looks for
// drift by exit code needs that.
func NoDrift(t *testing.T, w *Workspace) {
	t.Helper()
	output, code := w.Run("plan", "-refresh-only", "-detailed-exitcode")
	if code == 0 {
		return
	}
	file := filepath.Join(w.Dir, "terraform.tfstate")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w.Must("apply", "-refresh-only", "-auto-approve")
	after, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for sign, texts := range map[string][2][]byte{"-": {before, after}, "+": {after, before}} {
		for line := range strings.Lines(string(texts[0])) {
			if !strings.Contains(string(texts[1]), line) {
				lines = append(lines, sign+line)
			}
		}
	}
	t.Errorf("plan -refresh-only exits with %d:\n%s\nA refresh changes the state:\n%s", code, output, strings.Join(lines, ""))
}

// Target returns the HCL of a target state.
func Target(state string) string { return "target_state = " + Quoted(state) }

// HostAddress is the address of the host "h".
const HostAddress = "metal_host.h"

// HostBlock returns the HCL of the host "h" with the settings, which must select a driver.
func HostBlock(name string, settings ...string) string {
	return fmt.Sprintf("resource \"metal_host\" \"h\" {\n  name = %q\n  %s\n}\n", name, strings.Join(settings, "\n  "))
}

// WantKept fails a test unless the allocation "web" equals before, reserves the node and is in the Terraform state.
func WantKept(t *testing.T, s *Site, w *Workspace, node string, before map[string]any) {
	t.Helper()
	kept := AllocationNamed(s, s.Name("web"))
	for _, attribute := range []string{"uuid", "name", "resource_class", "owner", "node_uuid"} {
		if kept[attribute] != before[attribute] {
			t.Errorf("%s of the allocation was %v and is %v", attribute, before[attribute], kept[attribute])
		}
	}
	if kept["state"] != "active" || s.Node(node)["instance_uuid"] != before["uuid"] {
		t.Errorf("the allocation is %v; the node is reserved by %v", kept, s.Node(node)["instance_uuid"])
	}
	if a := InState(t, w, AllocationAddress); a == nil || a.Values["id"] != before["uuid"] || a.Values["node_id"] != node {
		t.Errorf("in state is %+v", a)
	}
	if _, left := s.Node(node)["extra"].(map[string]any)["terraform_metal_allocation"]; left { //nolint:forcetypeassert // Ironic's schema
		t.Error("the note of the allocation is left on the node")
	}
}

// Deployed returns the deployment in a workspace's state. It fails the test if there is none.
func Deployed(t *testing.T, w *Workspace) *Object {
	t.Helper()
	d := InState(t, w, DeploymentAddress)
	if d == nil {
		t.Fatalf("there is no deployment in state:\n%s", w.State())
	}
	return d
}

// ImageInState returns the URL of the deployment's image in a workspace's state.
func ImageInState(t *testing.T, w *Workspace) string {
	t.Helper()
	image, _ := Deployed(t, w).Values["image"].(map[string]any)
	return Text(image["url"])
}

// DeploymentAddress is the address of the deployment "d".
const DeploymentAddress = "metal_deployment.d"

// AllocationAddress is the address of the allocation "a".
const AllocationAddress = "metal_allocation.a"

// StartInspector starts an ironic-inspector beside a fake, and returns its URL.
func StartInspector(t *testing.T, fake *fakeironic.Server) string {
	t.Helper()
	server := httptest.NewServer(&fakeironic.Inspector{Server: fake})
	t.Cleanup(server.Close)
	return server.URL
}

// ForeignInstance returns an instance UUID of another client, unique to the test.
func ForeignInstance(s *Site) string {
	return "cccccccc-1111-4111-8111-0000" + strings.TrimPrefix(s.Class(), "class-")
}

// EmptyImport checks that an import plans no change.
func EmptyImport() resource.ImportPlanChecks {
	return resource.ImportPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
}
