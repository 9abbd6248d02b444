package host_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// With lost_records = "restore", a node, its allocation and what runs on it come back with their UUIDs, and an idle host returns to the pool
// without a cleaning.
func TestAccHost_lostRecordsAreRestored(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	idle := `resource "metal_host" "idle" {
  name = ` + acctest.Quoted(s.Name("idle")) + `
  driver = "fake-hardware"
  target_state = "available"
}
`
	config := func(settings ...string) string {
		return s.Provider(settings...) + acctest.HostBlock(s.Name("h"), `driver = "fake-hardware"`, acctest.Target("available"),
			"resource_class = "+acctest.Quoted(s.Class()), "properties = { cpus = 8 }", `power_state = "off"`) + idle +
			acctest.Allocation(s, "name = "+acctest.Quoted(s.Name("a")), "candidate_nodes = [metal_host.h.id]") +
			acctest.Allocated(acctest.Image("v1"), "protected = true")
	}
	w := acctest.NewWorkspace(t, config())
	w.Must("apply", "-auto-approve")
	before := s.Node(s.Name("h"))
	for _, name := range []string{"h", "idle"} {
		id := site.Text(s.Node(s.Name(name))["uuid"])
		if name == "h" {
			s.Must(http.MethodPatch, "nodes/"+id, []any{map[string]any{"op": "replace", "path": "/protected", "value": false}})
		}
		s.Must(http.MethodPut, "nodes/"+id+"/maintenance", map[string]any{})
		s.Must(http.MethodDelete, "nodes/"+id, nil)
	}
	acctest.Fails(t, w, []string{"plan"}, "Ironic has lost the record of a machine", `lost_records = "restore"`)
	w.Configure(strings.Replace(config(`lost_records = "restore"`), "cpus = 8", "cpus = 16", 1))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Lost record is restored", "Lost deployment is restored", "Lost record is restored as it was", "0 to add",
		"0 to destroy")
	w.Must("apply", "-auto-approve")
	w.Configure(config(`lost_records = "restore"`))
	acctest.NoChanges(t, w) // what has changed meanwhile has not reached the record
	after := s.Node(s.Name("h"))
	for _, key := range []string{"uuid", "instance_uuid", "allocation_uuid", "provision_state", "protected", "maintenance", "automated_clean"} {
		if before[key] != after[key] {
			t.Errorf("%s is %v, and was %v", key, after[key], before[key])
		}
	}
	if held := s.Node(s.Name("idle")); held["maintenance"] != true || held["provision_state"] != "enroll" || held["power_state"] != nil {
		t.Errorf("the idle node is %v, in maintenance: %v", held["provision_state"], held["maintenance"])
	}
	w.Configure(config())
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "Restored host returns")
	if free := s.Node(s.Name("idle")); free["maintenance"] != false || free["provision_state"] != "available" || free["automated_clean"] != nil {
		t.Errorf("the idle node is %v, in maintenance: %v", free["provision_state"], free["maintenance"])
	}
	w.Configure(strings.Replace(config(), "protected = true", "protected = false", 1))
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
}
