package provider_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// TestAccLimit_threeRunsKeepOneLimit lets three provider processes deploy ten hosts each, with a limit of five over all: on a real Ironic
// two hosts, with a limit of three. There it has to be alone: the limit counts the hosts of other tests, too.
func TestAccLimit_threeRunsKeepOneLimit(t *testing.T) {
	runs, each, limit := 3, 10, 5
	s := site.StartSlowWith(t, &fakeironic.Server{StepTime: time.Second}) // so that operations of several hosts meet
	if s.Fake != nil {
		t.Parallel()
	} else {
		each, limit = 2, 3
	}
	provider := s.Provider(fmt.Sprintf("provisioning_limit = { max_concurrent = %d }", limit))
	release := s.Hold(atWork...)
	var started []*acctest.Running
	var spaces []*acctest.Workspace
	for run := range runs {
		config := provider + fmt.Sprintf(`
			resource "metal_host" "h" {
			  count        = %d
			  name         = "%s-${count.index}"
			  driver       = "fake-hardware"
			  target_state = "available"
			}
			resource "metal_deployment" "d" {
			  count   = %d
			  node_id = metal_host.h[count.index].id
			  image   = { url = "http://images/x.qcow2", checksum = "http://images/SUMS" }
			}`, each, s.Name(fmt.Sprintf("run%d", run)), each)
		space := acctest.NewWorkspace(t, config)
		spaces = append(spaces, space)
		started = append(started, space.Start("apply", "-auto-approve", "-parallelism=30"))
	}
	stop := make(chan struct{})
	peak := make(chan int)
	go func() { peak <- peakAtWork(s, stop) }()
	start := time.Now()
	if s.Fake != nil {
		awaitFullSlots(t, s, runs*each, limit)
	}
	release()
	for _, run := range started {
		if output, code := run.Wait(); code != 0 {
			t.Errorf("exit code %d\n%s", code, output)
		}
	}
	took := time.Since(start)
	close(stop)
	most := <-peak
	if s.Fake != nil {
		most = s.Fake.MaxBusy(atWork...) // which has missed nothing
	}
	t.Logf("%d hosts in three runs took %s; at most %d were at work at once", runs*each, took.Round(time.Second), most)
	if most > limit {
		t.Errorf("%d hosts were at work at once, and the limit is %d", most, limit)
	}
	if most < limit {
		t.Errorf("at most %d hosts were at work, and %d slots were there", most, limit)
	}
	var wg sync.WaitGroup
	for _, space := range spaces {
		wg.Go(func() { space.Run("destroy", "-auto-approve", "-parallelism=30") })
	}
	wg.Wait()
	if left := s.Left(); len(left) > 0 {
		t.Errorf("left in Ironic: %v", left)
	}
}

// atWork are the states of hosts that the limit counts here.
var atWork = []string{"cleaning", "clean wait", "deploying", "wait call-back", "deleting"}

// awaitFullSlots waits until all hosts exist in the fake, and as many as there are slots were at work at once.
func awaitFullSlots(t *testing.T, s *site.Site, hosts, limit int) {
	t.Helper()
	site.Until(t, "work in all slots", func() bool { return len(s.Fake.Nodes()) >= hosts && s.Fake.MaxBusy(atWork...) >= limit })
}

// peakAtWork watches the test's hosts until stopped, and returns how many had an operation in progress at once.
func peakAtWork(s *site.Site, stop <-chan struct{}) int {
	peak := 0
	for {
		select {
		case <-stop:
			return peak
		case <-time.After(50 * time.Millisecond):
		}
		_, answer := s.Call(http.MethodGet, "nodes?fields=uuid,name,provision_state", nil)
		nodes, _ := answer["nodes"].([]any)
		now := 0
		for _, item := range nodes {
			node, _ := item.(map[string]any)
			name, _ := node["name"].(string)
			state, _ := node["provision_state"].(string)
			if strings.HasSuffix(s.Name(""), suffix(name)) && slices.Contains(atWork, state) {
				now++
			}
		}
		peak = max(peak, now)
	}
}

// suffix is the part of a host's name that is the test's own: "run1-0123abcd-7" has "0123abcd".
func suffix(name string) string {
	parts := strings.Split(name, "-")
	if len(parts) < 3 {
		return "\x00"
	}
	return parts[len(parts)-2]
}

// The environment sets the number where the block does not.
func TestFakeLimit_environment(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		environment, block string
		want               int
	}{
		{"2", ``, 2},
		{"2", `provisioning_limit = { coordination = "process" }`, 2},
		{"2", `provisioning_limit = { max_concurrent = 3 }`, 3},
	} {
		t.Run(tt.environment+" "+tt.block, func(t *testing.T) {
			t.Parallel()
			s := site.StartFake(t, &fakeironic.Server{StepTime: time.Second})
			w := acctest.NewWorkspace(t, s.Provider(tt.block)+fmt.Sprintf(`
				data "metal_capacity" "c" {}
				output "limit" { value = data.metal_capacity.c.max_concurrent }
				resource "metal_host" "h" {
				  count        = 5
				  name         = "%s-${count.index}"
				  driver       = "fake-hardware"
				  target_state = "available"
				}`, s.Name("h")))
			w.Setenv("MAX_CONCURRENT_PROVISIONING_HOSTS", tt.environment)
			w.Must("apply", "-auto-approve")
			if most := s.Fake.MaxBusy(atWork...); most > tt.want {
				t.Errorf("%d hosts were at work at once, and the limit is %d", most, tt.want)
			}
			if limit := strings.TrimSpace(w.Must("output", "limit")); limit != fmt.Sprint(tt.want) {
				t.Errorf("metal_capacity shows a limit of %s, want %d", limit, tt.want)
			}
			w.Must("destroy", "-auto-approve")
		})
	}
}

// A limit that the API cannot keep is refused in the plan, though the plan asks Ironic for nothing else.
func TestFakeLimit_shardNeedsItsAPI(t *testing.T) {
	s := site.StartFake(t, &fakeironic.Server{MaxMicroversion: "1.81"})
	provider := s.Provider(`provisioning_limit = { scope = "shard" }`)
	refused := regexp.MustCompile(acctest.Wrapped("provisioning_limit.scope=shard needs API 1.82 of Ironic, but 1.81 is in use") +
		`[\s\S]*` + acctest.Wrapped("Upgrade Ironic, or remove the setting"))
	acctest.Test(t,
		resource.TestStep{
			Config: provider + acctest.HostBlock(s.Name("h"), `driver = "fake-hardware"`), PlanOnly: true,
			ExpectError: refused,
		},
		resource.TestStep{Config: provider + `data "metal_capacity" "c" {}`, PlanOnly: true, ExpectError: refused},
	)
}

func TestAccLimit_wrongValues(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	for block, wrong := range map[string]string{
		`{ max_concurrent = -1 }`:             `max_concurrent value must be at least 0`,
		`{ max_concurrent = "many" }`:         `a number is required`,
		`{ scope = "rack" }`:                  `scope value must be one of`,
		`{ coordination = "none" }`:           `coordination value must be one of`,
		`{ stuck_after = "soon" }`:            `must be a duration`,
		`{ exempt_boot_interfaces = ["[a"] }`: `must be a pattern`,
	} {
		resource.UnitTest(t, resource.TestCase{
			ProtoV6ProviderFactories: acctest.Factories(),
			Steps: []resource.TestStep{{
				Config:      s.Provider("provisioning_limit = "+block) + `data "metal_capacity" "c" {}`,
				PlanOnly:    true,
				ExpectError: regexp.MustCompile(`(?s)` + strings.ReplaceAll(wrong, " ", `\s+`)),
			}},
		})
	}
}

func TestFakeLimit_virtualMediaCountsByDefault(t *testing.T) {
	t.Parallel()
	const hosts, limit = 40, 20
	s := site.StartFake(t, nil)
	release := s.Hold(atWork...)
	w := acctest.NewWorkspace(t, s.Provider()+fmt.Sprintf(`
		resource "metal_host" "h" {
		  count        = %d
		  name         = "%s-${count.index}"
		  bmc          = { address = "redfish-virtualmedia://192.0.2.${count.index}/redfish/v1/Systems/1", username = "root", password = "secret" }
		  target_state = "available"
		}`, hosts, s.Name("h")))
	running := w.Start("apply", "-auto-approve", fmt.Sprintf("-parallelism=%d", hosts))
	awaitFullSlots(t, s, hosts, limit)
	release()
	if output, code := running.Wait(); code != 0 {
		t.Errorf("exit code %d\n%s", code, output)
	}
	if most := s.Fake.MaxBusy(atWork...); most > limit {
		t.Errorf("%d hosts with virtual media had an operation in progress at once, and the limit is %d", most, limit)
	}
}
