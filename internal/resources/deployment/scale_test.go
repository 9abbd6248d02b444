package deployment_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

func TestFakeDeployment_manyKeepLimit(t *testing.T) {
	t.Parallel()
	const hosts, limit = 40, 5
	s := site.StartFake(t, &fakeironic.Server{StepTime: 300 * time.Millisecond})
	s.Fake.AddFleet(hosts, s.Class())
	w := acctest.NewWorkspace(t, s.Provider(fmt.Sprintf("provisioning_limit = { max_concurrent = %d }", limit))+fmt.Sprintf(`
resource "metal_allocation" "a" {
  count          = %d
  resource_class = %q
}
resource "metal_deployment" "d" {
  count         = %d
  node_id       = metal_allocation.a[count.index].node_id
  allocation_id = metal_allocation.a[count.index].id
  %s
}
`, hosts, s.Class(), hosts, acctest.Image("v1")))
	start := time.Now()
	w.Must("apply", "-auto-approve", "-parallelism=40")
	t.Logf("%d deployments took %s and %d requests", hosts, time.Since(start).Round(time.Second), len(s.Fake.Requests()))
	if busy := s.Fake.MaxBusy(); busy > limit {
		t.Errorf("%d nodes had an operation in progress at once, the limit is %d", busy, limit)
	}
	for _, node := range s.Fake.Nodes() {
		if node.ProvisionState != "active" {
			t.Errorf("node %s is %s", node.Name, node.ProvisionState)
		}
	}
	count := func(method, prefix string) (n int) {
		for _, r := range s.Fake.Requests() {
			if r.Method == method && strings.HasPrefix(r.Path, prefix) {
				n++
			}
		}
		return n
	}
	// Each deployment reads its own node before and after every step. The number of reads does not grow with the waiting time.
	if each := count("GET", "/v1/nodes/") / hosts; each > 16 {
		t.Errorf("%d reads of single nodes for each deployment", each)
	}
	if each := count("PATCH", "/v1/nodes/") / hosts; each > 2 {
		t.Errorf("%d patches for each deployment", each)
	}

	s.Fake.ResetRequests()
	acctest.NoChanges(t, w)
	if n := len(s.Fake.Requests()); n > 10 {
		t.Errorf("%d requests to refresh %d deployments and as many allocations", n, hosts)
	}
	w.Must("destroy", "-auto-approve", "-parallelism=40")
	if busy := s.Fake.MaxBusy(); busy > limit {
		t.Errorf("%d nodes had an operation in progress at once, the limit is %d", busy, limit)
	}
	for _, node := range s.Fake.Nodes() {
		if node.ProvisionState != "available" || node.InstanceUUID != "" {
			t.Errorf("node %s is %s, reserved by %q", node.Name, node.ProvisionState, node.InstanceUUID)
		}
	}
}
