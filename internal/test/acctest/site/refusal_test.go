package site_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// The fake refuses instance traits as Ironic does: this test runs on both.
func TestAccDeployment_instanceTraitsThatTheNodeLacks(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "node", nil)
	s.Patch(node, "add", "/instance_info/image_source", "http://images/x.qcow2")
	s.Patch(node, "add", "/instance_info/traits", []any{"CUSTOM_TYPO"})
	status, answer := s.Call(http.MethodPut, "nodes/"+node+"/states/provision", map[string]any{"target": "active"})
	const refusal = "Cannot specify instance traits that are not also set on the node"
	if text := fmt.Sprint(answer); status != http.StatusBadRequest || !strings.Contains(text, refusal) {
		t.Errorf("active: %d %s, want 400 and %q", status, text, refusal)
	}
	s.Patch(node, "remove", "/instance_info", nil)
}
