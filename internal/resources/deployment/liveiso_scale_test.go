package deployment_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// manyLive is the HCL of hosts that share a live ISO of a version. One host may have an entry of its own, and some have a config
// drive.
func manyLive(hosts []string, url, version string, own map[int]string, drives ...int) string {
	var names, owns, carriers []string
	for _, i := range drives {
		carriers = append(carriers, fmt.Sprint(i))
	}
	for i, host := range hosts {
		names = append(names, fmt.Sprintf("%q", host))
		if own[i] != "" {
			owns = append(owns, fmt.Sprintf("%d = { nmstate = %q }", i, own[i]))
		}
	}
	return fmt.Sprintf(`locals {
  hosts  = [%s]
  own    = { %s }
  drives = [%s]
}
resource "metal_deployment" "d" {
  count    = length(local.hosts)
  node_id  = local.hosts[count.index]
  live_iso = {
    url            = %q
    shared_content = { infra_env = %q }
    host_content   = lookup(local.own, count.index, {})
  }
  config_drive = contains(local.drives, count.index) ? { hostname = "web-${count.index}" } : null
}
`, strings.Join(names, ", "), strings.Join(owns, ", "), strings.Join(carriers, ", "), url, version)
}

// newImageForOne gives all hosts another live ISO and the one at an index its first entry, and checks what that does to
// them. It returns how long the plan and the apply took.
func newImageForOne(t *testing.T, s *site.Site, w *acctest.Workspace, hosts []string, index int,
	config string,
) (plan, apply time.Duration) {
	t.Helper()
	site.ForgetVerbs(s)
	w.Configure(config)
	start := time.Now()
	output := w.Must("plan", "-out=plan.bin", "-parallelism=30")
	plan = time.Since(start)
	acctest.Mention(t, output, "Plan: 0 to add, 1 to change, 0 to destroy.",
		fmt.Sprintf("# metal_deployment.d[%d] will be updated in-place", index),
		fmt.Sprintf("(and %d more similar warnings elsewhere)", len(hosts)-2), `~ restarts`)
	wantWarned(t, output, "Host runs an older live ISO", "Machine is restarted with a new live ISO")
	if s.Fake != nil {
		if n := len(s.Fake.Requests()); n > 10 {
			t.Errorf("the plan took %d requests", n)
		}
		t.Logf("the plan of %d hosts took %d requests", len(hosts), len(s.Fake.Requests()))
	}
	watch := watchPower(t, s)
	start = time.Now()
	acctest.Mention(t, w.Must("apply", "-parallelism=30", "plan.bin"), "0 added, 1 changed, 0 destroyed")
	apply = time.Since(start)
	want := map[string]int{}
	for i, host := range hosts {
		want[host] = 0
		if i == index {
			want[host] = 1
		}
	}
	watch.wantStarts(t, s, want)
	output, changes := w.Plan()
	if changes {
		t.Errorf("the next plan is not empty:\n%s", output)
	}
	wantWarned(t, output, "Host runs an older live ISO")
	return plan, apply
}

// TestFakeLiveISO_oneOfAHundredIsRestarted also measures the time that a plan takes.
func TestFakeLiveISO_oneOfAHundredIsRestarted(t *testing.T) {
	t.Parallel()
	s, iso := site.StartFake(t, nil), bmc.ServeISO(t)
	s.Fake.AddFleet(100, s.Class())
	var hosts []string
	var drives []int
	for i, node := range s.Fake.Nodes() {
		if i%10 == 0 {
			drives = append(drives, i)
			var patch []map[string]any
			for field, value := range bootsISOs() {
				patch = append(patch, map[string]any{"op": "replace", "path": "/" + field, "value": value})
			}
			s.Must(http.MethodPatch, "nodes/"+node.UUID+"?reset_interfaces=true", patch)
		} else {
			s.Fake.Set(node.UUID, "boot_interface", "ipxe")
			s.Fake.Set(node.UUID, "driver_info", map[string]any{
				"deploy_kernel":  acctest.Images + "kernel",
				"deploy_ramdisk": acctest.Images + "ramdisk",
			})
		}
		hosts = append(hosts, node.UUID)
	}
	provider := s.Provider(`provisioning_limit = { max_concurrent = 0 }`)
	w := acctest.NewWorkspace(t, provider+manyLive(hosts, iso.URL("v1"), "uid/1", nil, drives...))
	start := time.Now()
	w.Must("apply", "-auto-approve", "-parallelism=100")
	first := time.Since(start)
	plan, apply := newImageForOne(t, s, w, hosts, 77, provider+manyLive(hosts, iso.URL("v2"), "uid/1",
		map[int]string{77: "uid/8"}, drives...))
	t.Logf("100 hosts: first boot %.1f s; another image for all, and an entry for one: plan %.1f s, apply %.1f s",
		first.Seconds(), plan.Seconds(), apply.Seconds())
	for i, host := range hosts {
		want, url := 1, iso.URL("v1")
		if i == 77 {
			want, url = 2, iso.URL("v2")
		}
		if s.Fake.PowerCycles(host) != want || s.Fake.BootedISO(host) != url {
			t.Errorf("host %d was started %d times, and runs %s", i, s.Fake.PowerCycles(host), s.Fake.BootedISO(host))
		}
	}
}
