package site

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// BusyDeploying returns the transient states of a deployment.
func BusyDeploying() []string { return []string{"deploying", "wait call-back"} }

// BusyUndeploying returns the transient states of an undeploy.
func BusyUndeploying() []string { return []string{"deleting", "cleaning", "clean wait"} }

// IsBusy reports whether a node is in one of the states.
func IsBusy(s *Site, node string, states []string) bool {
	return slices.Contains(states, Text(s.Node(node)["provision_state"]))
}

// BusyCleaning returns the transient states of a cleaning.
func BusyCleaning() []string { return []string{"cleaning", "clean wait"} }

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
		maps.DeleteFunc(extra, stays)
		if node["provision_state"] != "available" || node["instance_uuid"] != nil || len(info) > 0 || len(extra) > 0 {
			t.Errorf("left on node %v: state %v, reserved by %v, instance_info %v, extra %v",
				node["name"], node["provision_state"], node["instance_uuid"], info, extra)
		}
	}
	s.Must(http.MethodPut, "nodes/"+id+"/maintenance", map[string]any{}) // so that Ironic deletes it in any state
	s.Must(http.MethodDelete, "nodes/"+id, nil)
}

// stays reports whether an entry of extra is the record of a cleaning or a service, or the mark of a creation that is finished. Only the
// next write of the provider removes such a mark.
func stays(key string, value any) bool {
	if key == "terraform_metal_erasure" || key == "terraform_metal_service" {
		return true
	}
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

// InstanceInfo returns instance_info of a node.
func InstanceInfo(s *Site, node string) map[string]any {
	info, _ := s.Node(node)["instance_info"].(map[string]any)
	return info
}

// AwaitState waits up to three minutes until a node is in one of the states, locked or not.
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
