package acctest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

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

// WantKept fails a test unless the allocation "web" equals before, reserves the node and is in the Terraform state.
func WantKept(t *testing.T, s *site.Site, w *Workspace, node string, before map[string]any) {
	t.Helper()
	kept := site.AllocationNamed(s, s.Name("web"))
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
	return site.Text(image["url"])
}
