package site

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
)

// Text returns a string in an answer; "" if it is null.
func Text(value any) string {
	s, _ := value.(string)
	return s
}

// Part returns a member of a JSON object.
func Part[T any](t testing.TB, object map[string]any, key string) T {
	t.Helper()
	value, ok := object[key].(T)
	if !ok {
		t.Fatalf("%s is %v", key, object[key])
	}
	return value
}

// Call sends a request to Ironic as another client and returns the answer. It repeats the request for up to a minute while the
// node is locked.
func (s *Site) Call(method, path string, body any) (status int, answer map[string]any) {
	s.t.Helper()
	return s.CallAt("1.82", method, path, body)
}

// Newest returns the minor part of the newest API version that Ironic supports, such as 82 for 1.82.
func (s *Site) Newest() (minor int) {
	s.t.Helper()
	status, answer := s.Call(http.MethodGet, "", nil)
	version, _ := answer["version"].(map[string]any)
	if _, err := fmt.Sscanf(fmt.Sprint(version["version"]), "1.%d", &minor); err != nil {
		s.t.Fatalf("GET /v1: %d %v", status, answer)
	}
	return minor
}

// CallAt is Call in the given version of the API.
func (s *Site) CallAt(version, method, path string, body any) (status int, answer map[string]any) {
	s.t.Helper()
	content, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	Until(s.t, "the lock that refuses "+method+" "+path+" to end", func() bool {
		var text []byte
		status, text = s.send(version, method, path, content)
		answer = nil
		_ = json.Unmarshal(text, &answer) // an empty answer is fine
		return status != http.StatusConflict || !bytes.Contains(text, []byte("locked"))
	})
	return status, answer
}

// send sends one request.
func (s *Site) send(version, method, path string, body []byte) (status int, answer []byte) {
	s.t.Helper()
	req, err := http.NewRequest(method, s.Endpoint+"/v1/"+path, bytes.NewReader(body)) //nolint:noctx // ends with the test
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-OpenStack-Ironic-API-Version", version)
	req.Header.Set("X-Auth-Token", s.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// Must is Call, and fails the test on any status but 2xx.
func (s *Site) Must(method, path string, body any) map[string]any {
	s.t.Helper()
	status, answer := s.Call(method, path, body)
	if status/100 != 2 {
		s.t.Fatalf("%s %s: %d %v", method, path, status, answer)
	}
	return answer
}

// Patch changes one attribute of a node as another client.
func (s *Site) Patch(node, op, path string, value any) {
	s.t.Helper()
	edit := map[string]any{"op": op, "path": path}
	if op != "remove" {
		edit["value"] = value
	}
	s.Must(http.MethodPatch, "nodes/"+node, []any{edit})
}

// Verb sends a provision verb as another client, and waits until the node is in a state.
func (s *Site) Verb(node, verb, until string) {
	s.t.Helper()
	s.Must(http.MethodPut, "nodes/"+node+"/states/provision", map[string]any{"target": verb})
	s.Await(node, "provision_state", until)
}

// Await waits up to three minutes until an attribute of a node has a value and the node is not locked. It returns the node.
func (s *Site) Await(node, attribute string, value any) map[string]any {
	s.t.Helper()
	var answer map[string]any
	defer func() {
		if s.t.Failed() {
			s.t.Logf("%s of node %s is %v; it is locked by %v", attribute, node, answer[attribute], answer["reservation"])
		}
	}()
	Until(s.t, fmt.Sprintf("%s of node %s to be %v", attribute, node, value), func() bool {
		answer = s.Must(http.MethodGet, "nodes/"+node, nil)
		return answer[attribute] == value && answer["reservation"] == nil
	})
	return answer
}

// Node returns the node with a UUID or name; nil if there is none.
func (s *Site) Node(ref string) map[string]any {
	s.t.Helper()
	status, answer := s.Call(http.MethodGet, "nodes/"+ref, nil)
	if status == http.StatusNotFound {
		return nil
	}
	return answer
}

// NodeAt is Node with the attributes of an API version.
func (s *Site) NodeAt(version, ref string) map[string]any {
	s.t.Helper()
	_, answer := s.CallAt(version, http.MethodGet, "nodes/"+ref, nil)
	return answer
}

// PatchAt is Patch in an API version.
func (s *Site) PatchAt(version, node, path string, value any) {
	s.t.Helper()
	edit := map[string]any{"op": "add", "path": path, "value": value}
	if status, answer := s.CallAt(version, http.MethodPatch, "nodes/"+node, []any{edit}); status/100 != 2 {
		s.t.Fatalf("patch %s: %d %v", path, status, answer)
	}
}

// SkipBefore skips a test on an Ironic that does not support an API version, such as 95 for 1.95.
func (s *Site) SkipBefore(t testing.TB, minor int) {
	t.Helper()
	if newest := s.Newest(); newest < minor {
		t.Skipf("this Ironic supports API 1.%d, and the test needs 1.%d", newest, minor)
	}
}

// UnfinishCreation removes from the mark of an object's creation that the creation is finished, as if the run had been killed before that.
// object is the path of a deploy template or a runbook.
func UnfinishCreation(s *Site, object string) {
	s.t.Helper()
	_, answer := s.CallAt("latest", http.MethodGet, object, nil)
	extra, _ := answer["extra"].(map[string]any)
	runs, _ := extra["terraform_metal_creation"].(map[string]any)
	if len(runs) != 1 {
		s.t.Fatalf("%s has no mark of its creation: %v", object, answer)
	}
	for run, value := range runs {
		mark, _ := value.(map[string]any)
		delete(mark, "done")
		status, answer := s.CallAt("latest", http.MethodPatch, object,
			[]any{map[string]any{"op": "replace", "path": "/extra/terraform_metal_creation/" + run, "value": mark}})
		if status != http.StatusOK {
			s.t.Fatalf("%s: %d %v", object, status, answer)
		}
	}
}
