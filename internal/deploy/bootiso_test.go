package deploy_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// isoURL is where the live ISO of a version is.
func isoURL(version string) string { return sitetest.Live(version).LiveISO.URL }

// bootedAllocated is booted with an allocation.
func bootedAllocated(t *testing.T, api string, driver map[string]any) (fake *fakeironic.Server, id, instance string) {
	t.Helper()
	return sitetest.BootedFor(t, api, driver, func(client *sitetest.Client, _ string) (string, error) {
		spec := ironic.AllocationSpec{
			UUID: ironic.NewUUID(), Name: "web-0", ResourceClass: "baremetal",
			Extra: map[string]any{"team": "web"},
		}
		_, err := sitetest.Allocate(t.Context(), client, spec)
		return spec.UUID, err
	})
}

// wantBooted fails the test unless a node runs the live ISO of a version after so many starts, and its record says so.
func wantBooted(t *testing.T, fake *fakeironic.Server, id, version string, starts int) {
	t.Helper()
	node, err := sitetest.NewClient(fake).Ironic.Node(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if got := fake.PowerCycles(id); got != starts || fake.BootedISO(id) != isoURL(version) {
		t.Errorf("the machine was started %d times, and runs %q; want %d times, and %q", got, fake.BootedISO(id), starts, isoURL(version))
	}
	record := deploy.BootRecord(node)
	if record == nil {
		t.Fatalf("there is no record: state %s, instance_info %v, extra %v", node.ProvisionState, node.InstanceInfo, node.Extra)
	}
	if status := bootAction(node, version, always); status.Stale || status.Action != bootiso.None {
		t.Errorf("the record %+v is not of version %s: %+v", record, version, status)
	}
	if !sitetest.Live(version).DeployedWith(node) {
		t.Errorf("the next run would boot it again: %v", node.InstanceInfo)
	}
}

func TestBootISO_firstTime(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]map[string]any{
		"over the network":   sitetest.OverNetwork,
		"from virtual media": sitetest.FromMedia,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				start := time.Now()
				fake, id, instanceID := sitetest.Booted(t, "", driver)
				wantBooted(t, fake, id, "1", 1)
				node := ironictest.NodeOf(t, fake, id)
				if node.ProvisionState != "active" || node.InstanceUUID != instanceID {
					t.Errorf("the node is %s and reserved by %s", node.ProvisionState, node.InstanceUUID)
				}
				seen, err := sitetest.NewClient(fake).Ironic.Node(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				if record := deploy.BootRecord(seen); record.Boots != 1 || record.Manual || record.At.Before(start) ||
					record.At.After(start.Add(time.Minute)) {
					t.Errorf("the record is %+v", record)
				}
				for _, said := range []string{"hunter2", "http://images", "uid/1"} {
					if text := fmt.Sprint(node.Raw["extra"]); strings.Contains(text, said) {
						t.Errorf("the record tells %q: %s", said, text)
					}
				}
			})
		})
	}
}

// ways are the ways to boot a running node with another live ISO, each with a server and a driver that ask for it.
func ways() map[string]struct {
	api    string
	driver map[string]any
	drive  any // config drive
	verbs  []string
	media  int // requests to attach virtual media
} {
	drive := map[string]any{"meta_data": map[string]any{"name": "web"}}
	return map[string]struct {
		api    string
		driver map[string]any
		drive  any
		verbs  []string
		media  int
	}{
		"rebuild, Ironic 21.4":             {api: "1.82", driver: sitetest.OverNetwork, verbs: []string{"rebuild"}},
		"rebuild, Ironic 26.0":             {api: "1.91", driver: sitetest.OverNetwork, verbs: []string{"rebuild"}},
		"rebuild with virtual media":       {api: "1.91", driver: sitetest.FromMedia, verbs: []string{"rebuild"}},
		"undeploy and deploy, Ironic 26.1": {api: "1.93", driver: sitetest.OverNetwork, verbs: []string{"deleted", "active"}},
		"undeploy and deploy, Ironic 39":   {api: "1.115", driver: sitetest.OverNetwork, verbs: []string{"deleted", "active"}},
		"undeploy and deploy, config drive": {
			api: "1.115", driver: sitetest.FromMedia, drive: drive,
			verbs: []string{"deleted", "active"},
		},
		"virtual media":                       {api: "1.115", driver: sitetest.FromMedia, media: 1},
		"virtual media, rebuild being broken": {api: "1.93", driver: sitetest.FromMedia, media: 1},
	}
}

func TestBootISO_ways(t *testing.T) {
	t.Parallel()
	for name, way := range ways() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, id, instanceID := sitetest.Booted(t, way.api, way.driver)
				d := sitetest.Live("2")
				d.ConfigDrive = way.drive
				node, attempts, err := sitetest.NewClient(fake).BootISO(t.Context(), id, d, sitetest.Another(instanceID))
				if err != nil || attempts != 1 || node.ProvisionState != "active" || node.InstanceUUID != instanceID {
					t.Fatalf("%+v after %d attempts, %v", node, attempts, err)
				}
				if got := ironictest.Verbs(t, fake, id); !slices.Equal(got, way.verbs) {
					t.Errorf("verbs = %v, want %v", got, way.verbs)
				}
				if got := ironictest.Count(fake, http.MethodPost, "/v1/nodes/"+id+"/vmedia"); got != way.media {
					t.Errorf("%d media were attached, want %d", got, way.media)
				}
				if walk := fake.Walk(id); slices.Contains(walk, "clean wait") {
					t.Errorf("the node was cleaned: %v", walk)
				}
				if got := ironictest.NodeOf(t, fake, id).Raw["automated_clean"]; got != nil {
					t.Errorf("automated_clean is %v, and was not set", got)
				}
				if way.drive == nil { // which is part of what wantBooted compares
					wantBooted(t, fake, id, "2", 2)
				}
				if record := deploy.BootRecord(node); record.Boots != 1 {
					t.Errorf("the record is %+v", record)
				}
			})
		})
	}
}

// TestBootISO_otherContentToo changes what attaching virtual media cannot: it is on the node afterwards.
func TestBootISO_otherContentToo(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before, after func(*deploy.Deployment)
		want          map[string]any // in instance_info
	}{
		"an entry added": {func(*deploy.Deployment) {}, func(d *deploy.Deployment) {
			d.InstanceInfo = map[string]any{"note": "x"}
		}, map[string]any{"note": "x"}},
		"an entry changed": {func(d *deploy.Deployment) {
			d.InstanceInfo = map[string]any{"note": "x"}
		}, func(d *deploy.Deployment) { d.InstanceInfo = map[string]any{"note": "y"} }, map[string]any{"note": "y"}},
		"an entry removed": {func(d *deploy.Deployment) {
			d.InstanceInfo = map[string]any{"note": "x"}
		}, func(*deploy.Deployment) {}, map[string]any{"note": nil}},
		"the config drive removed": {func(d *deploy.Deployment) {
			d.ConfigDrive = map[string]any{"user_data": "x"}
		}, func(*deploy.Deployment) {}, map[string]any{"configdrive": nil}},
		"deploy steps": {func(*deploy.Deployment) {}, func(d *deploy.Deployment) {
			d.DeploySteps = []ironic.DeployStep{{Interface: "bios", Step: "factory_reset", Args: map[string]any{}, Priority: 60}}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := &fakeironic.Server{}
				id, instanceID, client := sitetest.AddBootable(t, fake, "node-0", sitetest.FromMedia), ironic.NewUUID(),
					sitetest.NewClient(fake)
				if _, err := client.ReserveNode(t.Context(), id, instanceID); err != nil {
					t.Fatal(err)
				}
				for version, change := range []func(*deploy.Deployment){tc.before, tc.after} {
					d := sitetest.Live(fmt.Sprint(version))
					change(&d)
					if _, _, err := client.BootISO(t.Context(), id, d, sitetest.Another(instanceID)); err != nil {
						t.Fatal(err)
					}
				}
				if got := ironictest.Verbs(t, fake, id); !slices.Equal(got, []string{"active", "deleted", "active"}) ||
					fake.PowerCycles(id) != 2 || fake.BootedISO(id) != isoURL("1") {
					t.Errorf("verbs = %v; %d starts, the last with %s", got, fake.PowerCycles(id), fake.BootedISO(id))
				}
				info, _ := ironictest.NodeOf(t, fake, id).Raw["instance_info"].(map[string]any)
				for key, want := range tc.want {
					if info[key] != want {
						t.Errorf("instance_info.%s is %v, want %v", key, info[key], want)
					}
				}
			})
		})
	}
}

func TestBootISO_olderMicroversion(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, instance := sitetest.Booted(t, "1.115", sitetest.FromMedia)
		client := sitetest.NewClient(fake, func(c *machine.Config) { c.Microversion = 82 })
		if _, _, err := client.BootISO(t.Context(), id, sitetest.Live("2"), sitetest.Another(instance)); err != nil {
			t.Fatal(err)
		}
		if got := ironictest.Verbs(t, fake, id); !slices.Equal(got, []string{"deleted", "active"}) { // the server's rebuild is broken
			t.Errorf("verbs = %v", got)
		}
		wantBooted(t, fake, id, "2", 2)
	})
}

func TestBootISO_fallsBackToLastWay(t *testing.T) {
	t.Parallel()
	refuse := func(method, suffix string) func(*fakeironic.Server) {
		return func(fake *fakeironic.Server) {
			fake.Reject = func(r *http.Request) *fakeironic.Rejection {
				if r.Method == method && strings.HasSuffix(r.URL.Path, suffix) {
					return ironictest.Fault(http.StatusBadRequest, "not this one")
				}
				return nil
			}
		}
	}
	for name, tc := range map[string]struct {
		api    string
		driver map[string]any
		fail   func(*fakeironic.Server)
		verbs  []string
	}{
		"rebuild, as newer Ironics do": {"1.82", sitetest.OverNetwork, func(fake *fakeironic.Server) {
			fake.Reject = ironictest.Once(http.MethodPut, "/v1/nodes/", ironictest.Fault(http.StatusInternalServerError,
				"Unexpected error raised by RPC"))
		}, []string{"rebuild", "deleted", "active"}},
		"detach is refused":      {"1.115", sitetest.FromMedia, refuse(http.MethodDelete, "/vmedia"), []string{"deleted", "active"}},
		"attach is refused":      {"1.115", sitetest.FromMedia, refuse(http.MethodPost, "/vmedia"), []string{"deleted", "active"}},
		"boot device is refused": {"1.115", sitetest.FromMedia, refuse(http.MethodPut, "/boot_device"), []string{"deleted", "active"}},
		"power is refused":       {"1.115", sitetest.FromMedia, refuse(http.MethodPut, "/states/power"), []string{"deleted", "active"}},
		"attach fails": {"1.115", sitetest.FromMedia, func(fake *fakeironic.Server) {
			fake.ImageFault = firstFetchFails()
		}, []string{"deleted", "active"}},
		"reboot fails": {"1.115", sitetest.FromMedia, func(fake *fakeironic.Server) {
			fake.Fail = func(_ fakeironic.Node, verb string) string {
				if verb == "rebooting" {
					return "Failed to change power state to 'power on' by 'rebooting': timeout"
				}
				return ""
			}
		}, []string{"deleted", "active"}},
		"attach fails like the last time": {"1.115", sitetest.FromMedia, func(fake *fakeironic.Server) {
			fake.ImageFault = firstFetchFails()
			id := fake.Nodes()[0].UUID
			fake.Set(id, "last_error", "Could not attach device cdrom to node "+id+": Validation of image href "+isoURL("2")+
				" failed, reason: timed out")
		}, []string{"deleted", "active"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, id, instanceID := sitetest.Booted(t, tc.api, tc.driver)
				tc.fail(fake)
				node, attempts, err := sitetest.NewClient(fake).BootISO(t.Context(), id, sitetest.Live("2"), sitetest.Another(instanceID))
				if err != nil || attempts != 1 {
					t.Fatalf("%+v after %d attempts, %v", node, attempts, err)
				}
				if got := ironictest.Verbs(t, fake, id); !slices.Equal(got, tc.verbs) {
					t.Errorf("verbs = %v, want %v", got, tc.verbs)
				}
				wantBooted(t, fake, id, "2", 2)
				if record := deploy.BootRecord(node); record.Boots != 1 {
					t.Errorf("one boot counts as %d", record.Boots)
				}
			})
		})
	}
}

// firstFetchFails is an ImageFault of a server that is slow at first.
func firstFetchFails() func(string) string {
	fetched := false
	return func(string) string {
		if fetched {
			return ""
		}
		fetched = true
		return "timed out"
	}
}

func TestBootISO_failureKeepsRecord(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, instance := sitetest.Booted(t, "1.82", sitetest.OverNetwork)
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			if r.Method == http.MethodPut && r.URL.Path == ironictest.ProvisionPath(id) {
				return ironictest.Fault(http.StatusBadRequest, "not today")
			}
			return nil
		}
		node, _, err := sitetest.NewClient(fake).BootISO(t.Context(), id, sitetest.Live("2"), sitetest.Another(instance))
		if err == nil || node == nil {
			t.Fatalf("%+v, %v", node, err)
		}
		fake.Reject = nil
		seen, err := sitetest.NewClient(fake).Ironic.Node(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for version, want := range map[string]bool{"1": false, "2": true} {
			status := bootAction(seen, version, always)
			if status.Stale != want {
				t.Errorf("in view of %s it is %+v", version, status)
			}
		}
		if _, _, err := sitetest.NewClient(fake).BootISO(t.Context(), id, sitetest.Live("2"), sitetest.Another(instance)); err != nil {
			t.Fatal(err)
		}
		wantBooted(t, fake, id, "2", 2)
	})
}

// wantAllocation fails the test unless the allocation of bootedAllocated is there as before.
func wantAllocation(t *testing.T, fake *fakeironic.Server, id, instance string) {
	t.Helper()
	a, err := sitetest.NewClient(fake).Ironic.Allocation(t.Context(), instance)
	if err != nil || a.NodeUUID != id || a.Name != "web-0" || a.ResourceClass != "baremetal" ||
		!ironic.SameJSON(sitetest.FirstExtra(a), map[string]any{"team": "web"}) {
		t.Errorf("the allocation is %+v, %v", a, err)
	}
}

func TestBootISO_keepsAllocation(t *testing.T) {
	t.Parallel()
	for _, api := range []string{"1.82", "1.115"} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake, id, instance := bootedAllocated(t, api, sitetest.OverNetwork)
			node, _, err := sitetest.NewClient(fake).BootISO(t.Context(), id, sitetest.Live("2"), sitetest.Another(instance))
			if err != nil || node.InstanceUUID != instance {
				t.Fatalf("%s: %+v, %v", api, node, err)
			}
			wantBooted(t, fake, id, "2", 2)
			wantAllocation(t, fake, id, instance)
		})
	}
}

func TestBootISO_restoresAutomatedClean(t *testing.T) {
	t.Parallel()
	for _, before := range []any{nil, true, false} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake, id, instance := sitetest.Booted(t, "1.115", sitetest.OverNetwork)
			fake.Set(id, "automated_clean", before)
			if _, _, err := sitetest.NewClient(fake).BootISO(t.Context(), id, sitetest.Live("2"), sitetest.Another(instance)); err != nil {
				t.Fatal(err)
			}
			if after := ironictest.NodeOf(t, fake, id).Raw["automated_clean"]; after != before {
				t.Errorf("automated_clean was %v and is %v", before, after)
			}
			if walk := fake.Walk(id); slices.Contains(walk, "clean wait") {
				t.Errorf("%v: the node was cleaned: %v", before, walk)
			}
			wantBooted(t, fake, id, "2", 2)
		})
	}
}

func TestBootISO_secondCallDoesNothing(t *testing.T) {
	t.Parallel()
	for name, way := range ways() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, id, instance := sitetest.Booted(t, way.api, way.driver)
				for range 2 {
					if _, _, err := sitetest.NewClient(fake).BootISO(t.Context(), id, sitetest.Live("2"),
						sitetest.Another(instance)); err != nil {
						t.Fatal(err)
					}
				}
				wantBooted(t, fake, id, "2", 2)
			})
		})
	}
}

// mortal is the transport of a run that is killed when a number of its requests have been answered.
type mortal struct {
	next http.RoundTripper
	kill context.CancelFunc

	mu   sync.Mutex
	left int
	last string // the last request
}

// RoundTrip implements http.RoundTripper.
func (m *mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	request := r.Method + " " + r.URL.String()
	// polls change nothing: a run dies after the first of a series, or before what follows
	repeated := r.Method == http.MethodGet && request == m.last
	m.last = request
	if repeated {
		return m.next.RoundTrip(r)
	}
	if m.left == 0 {
		m.kill()
		return nil, context.Canceled
	}
	m.left--
	return m.next.RoundTrip(r)
}

// TestBootISO_killedAnywhere kills a run after each of its requests, and lets the next one begin at
// once or much later.
func TestBootISO_killedAnywhere(t *testing.T) {
	t.Parallel()
	for name, site := range map[string]func(*testing.T) (*fakeironic.Server, string, string){
		"rebuild": func(t *testing.T) (*fakeironic.Server, string, string) {
			return sitetest.Booted(t, "1.82", sitetest.OverNetwork)
		},
		"virtual media": func(t *testing.T) (*fakeironic.Server, string, string) {
			return sitetest.Booted(t, "1.115", sitetest.FromMedia)
		},
		"undeploy and deploy": func(t *testing.T) (*fakeironic.Server, string, string) {
			return sitetest.Booted(t, "1.115", sitetest.OverNetwork)
		},
		"undeploy and deploy, allocated": func(t *testing.T) (*fakeironic.Server, string, string) {
			return bootedAllocated(t, "1.115", sitetest.OverNetwork)
		},
	} {
		for how, pause := range map[string]time.Duration{"at once": 0, "soon": 2 * time.Minute, "later": 5 * time.Hour} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				for requests, killed := 0, true; killed && !t.Failed(); requests++ {
					ironictest.InVirtualTime(t, func(t *testing.T) {
						fake, id, instance := site(t)
						var last string
						if killed, last = bootAndKill(t, fake, id, instance, requests); killed {
							<-time.After(pause)
						}
						if _, _, err := sitetest.NewClient(fake).BootISO(t.Context(), id, sitetest.Live("2"),
							sitetest.Another(instance)); err != nil {
							t.Fatalf("killed after %d requests (%s): %v", requests, last, err)
						}
						wantBooted(t, fake, id, "2", 2)
						if strings.HasSuffix(name, "allocated") {
							wantAllocation(t, fake, id, instance)
						}
						if node := ironictest.NodeOf(t, fake, id); node.InstanceUUID != instance || node.Raw["automated_clean"] != nil {
							t.Errorf("reserved by %s, automated_clean %v", node.InstanceUUID, node.Raw["automated_clean"])
						}
						if walk := fake.Walk(id); slices.Contains(walk, "clean wait") {
							t.Errorf("the node was cleaned: %v", walk)
						}
						if note := fmt.Sprint(ironictest.NodeOf(t, fake, id).Raw["extra"]); strings.Contains(note, "again") {
							t.Errorf("on the running node is noted: %s", note)
						}
						if t.Failed() {
							t.Errorf("killed after %d requests (%s)", requests, last)
						}
					})
				}
			})
		}
	}
}

// bootAndKill boots a node with the live ISO "2", in a run that is killed after so many requests. It reports whether that
// kept the run from its end, and the last request that changed something.
func bootAndKill(t *testing.T, fake *fakeironic.Server, id, instance string, requests int) (killed bool, last string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	run := sitetest.NewClient(fake, func(c *machine.Config) { c.Transport = &mortal{next: fake, kill: cancel, left: requests} })
	_, _, err := run.BootISO(ctx, id, sitetest.Live("2"), sitetest.Another(instance))
	return err != nil, lastOf(fake.Requests())
}

// lastOf is the last request that changed something.
func lastOf(requests []fakeironic.Request) string {
	for _, r := range slices.Backward(requests) {
		if r.Method != http.MethodGet {
			return r.Method + " " + r.Path + " " + r.Body
		}
	}
	return "none that changes anything"
}

// TestBootISO_automatedCleanChangedAfterKill switches cleaning on again after a kill, as a managed host does.
func TestBootISO_automatedCleanChangedAfterKill(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, instance := sitetest.Booted(t, "1.115", sitetest.OverNetwork)
		fake.Set(id, "automated_clean", true)
		for requests, last := 0, ""; !strings.Contains(last, "automated_clean"); requests++ {
			_, last = bootAndKill(t, fake, id, instance, requests)
		}
		if got := ironictest.NodeOf(t, fake, id).Raw["automated_clean"]; got != false {
			t.Fatalf("automated_clean is %v", got)
		}
		fake.Set(id, "automated_clean", true)
		if _, _, err := sitetest.NewClient(fake).BootISO(t.Context(), id, sitetest.Live("2"), sitetest.Another(instance)); err != nil {
			t.Fatal(err)
		}
		wantBooted(t, fake, id, "2", 2)
		if walk := fake.Walk(id); slices.Contains(walk, "clean wait") || ironictest.NodeOf(t, fake, id).Raw["automated_clean"] != true {
			t.Errorf("it was cleaned, or automated_clean is %v: %v", ironictest.NodeOf(t, fake, id).Raw["automated_clean"], walk)
		}
	})
}

// wasCleaned reports whether a walk over states cleaned the node: after undeploying, or by making a manageable one available.
func wasCleaned(walk []string) bool {
	return slices.Contains(walk, "clean wait") || slices.Contains(walk, "manageable") && walk[len(walk)-1] == "available"
}

// TestUndeploy_afterKilledBoot kills a run after each of its requests, and undeploys the node then: it is cleaned, also where it was
// reserved again and not yet booted.
func TestUndeploy_afterKilledBoot(t *testing.T) {
	t.Parallel()
	for name, site := range map[string]func(*testing.T) (*fakeironic.Server, string, string){
		"reserved": func(t *testing.T) (*fakeironic.Server, string, string) {
			return sitetest.Booted(t, "1.115", sitetest.OverNetwork)
		},
		"allocated": func(t *testing.T) (*fakeironic.Server, string, string) {
			return bootedAllocated(t, "1.115", sitetest.OverNetwork)
		},
	} {
		for how, pause := range map[string]time.Duration{"at once": 0, "later": 5 * time.Hour} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				for requests, killed := 0, true; killed && !t.Failed(); requests++ {
					ironictest.InVirtualTime(t, func(t *testing.T) {
						fake, id, instance := site(t)
						var last string
						if killed, last = bootAndKill(t, fake, id, instance, requests); killed {
							<-time.After(pause)
						}
						allocation, reserved := ironictest.NodeOf(t, fake, id).AllocationUUID, ""
						if name == "allocated" {
							allocation, reserved = instance, instance
						}
						if _, err := sitetest.NewClient(fake).Undeploy(t.Context(), id, instance, allocation, 4*time.Hour); err != nil {
							t.Fatalf("killed after %d requests (%s): %v", requests, last, err)
						}
						if name == "allocated" {
							wantAllocation(t, fake, id, instance)
						}
						node := ironictest.NodeOf(t, fake, id)
						extra, _ := node.Raw["extra"].(map[string]any)
						info, _ := node.Raw["instance_info"].(map[string]any)
						delete(info, "traits") // Ironic leaves those of an allocation
						if node.ProvisionState != "available" || node.InstanceUUID != reserved || node.Raw["automated_clean"] != nil ||
							len(extra) > 0 || len(info) > 0 {
							t.Errorf("the node is %s, reserved by %q, automated_clean %v, extra %v, instance_info %v", node.ProvisionState,
								node.InstanceUUID,
								node.Raw["automated_clean"], extra, info)
						}
						if walk := fake.Walk(id); !wasCleaned(walk) {
							t.Errorf("the node was not cleaned: %v", walk)
						}
						if t.Failed() {
							t.Errorf("killed after %d requests (%s)", requests, last)
						}
					})
				}
			})
		}
	}
}

// TestUndeploy_killedAfterKilledBoot kills a run that boots before the boot begins, and then, after each of its requests, the run that
// undeploys. Whatever the next run finds, it cleans the node before the node is free.
func TestUndeploy_killedAfterKilledBoot(t *testing.T) {
	t.Parallel()
	for name, site := range map[string]func(*testing.T) (*fakeironic.Server, string, string){
		"reserved": func(t *testing.T) (*fakeironic.Server, string, string) {
			return sitetest.Booted(t, "1.115", sitetest.OverNetwork)
		},
		"allocated": func(t *testing.T) (*fakeironic.Server, string, string) {
			return bootedAllocated(t, "1.115", sitetest.OverNetwork)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for requests, killed := 0, true; killed && !t.Failed(); requests++ {
				ironictest.InVirtualTime(t, func(t *testing.T) {
					fake, id, instance := site(t)
					allocation := map[string]string{"allocated": instance}[name]
					fake.Reject = refusing(t, "active")
					if _, _, err := sitetest.NewClient(fake).BootISO(t.Context(), id, sitetest.Live("2"),
						sitetest.Another(instance)); err == nil {
						t.Fatal("the node was booted")
					}
					fake.Reject = nil
					if node := ironictest.NodeOf(t, fake, id); node.ProvisionState != "available" || node.InstanceUUID != instance {
						t.Fatalf("the node is %s, reserved by %q", node.ProvisionState, node.InstanceUUID)
					}
					ctx, cancel := context.WithCancel(t.Context())
					run := sitetest.NewClient(fake, func(c *machine.Config) {
						c.Transport = &mortal{next: fake, kill: cancel, left: requests}
					})
					_, err := run.Undeploy(ctx, id, instance, allocation, 4*time.Hour)
					killed = err != nil
					cancel()
					<-time.After(time.Hour)
					last := lastOf(fake.Requests())
					if _, err := sitetest.NewClient(fake).Undeploy(t.Context(), id, instance, allocation, 4*time.Hour); err != nil {
						t.Fatalf("killed after %d requests (%s): %v", requests, last, err)
					}
					node := ironictest.NodeOf(t, fake, id)
					if extra, _ := node.Raw["extra"].(map[string]any); node.ProvisionState != "available" ||
						node.InstanceUUID != allocation || len(extra) > 0 {
						t.Errorf("killed after %d requests (%s): the node is %s, reserved by %q, extra %v", requests, last,
							node.ProvisionState, node.InstanceUUID, extra)
					}
					if allocation != "" {
						wantAllocation(t, fake, id, allocation)
					}
					if walk := fake.Walk(id); !wasCleaned(walk) {
						t.Errorf("killed after %d requests (%s): the node was not cleaned: %v", requests, last, walk)
					}
				})
			}
		})
	}
}

func TestUndeploy_removesBootRecord(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, instance := sitetest.Booted(t, "1.115", sitetest.OverNetwork)
		if _, err := sitetest.NewClient(fake).Undeploy(t.Context(), id, instance, "", 4*time.Hour); err != nil {
			t.Fatal(err)
		}
		node := ironictest.NodeOf(t, fake, id)
		if extra, _ := node.Raw["extra"].(map[string]any); len(extra) > 0 || node.ProvisionState != "available" {
			t.Errorf("the node is %s, its extra %v", node.ProvisionState, extra)
		}
		if walk := fake.Walk(id); !slices.Contains(walk, "clean wait") {
			t.Errorf("the node was not cleaned: %v", walk)
		}
	})
}

func TestBootISO_waitsForSlot(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]map[string]any{"virtual media": sitetest.FromMedia, "over the network": sitetest.OverNetwork} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, id, instance := sitetest.Booted(t, "1.115", driver)
				busy := sitetest.AddBootable(t, fake, "busy", sitetest.OverNetwork)
				fake.Set(busy, "provision_state", "manageable")
				fake.StepTime = 10 * time.Hour
				ironictest.AsOther(t, fake, http.MethodPut, "nodes/"+busy+"/states/provision", map[string]any{"target": "provide"})
				fake.StepTime = time.Minute
				start := time.Now()
				client := sitetest.NewClient(fake, func(c *machine.Config) {
					c.Limit = throttle.Limit{Max: 1, Coordination: throttle.CoordinationProcess}
				})
				if _, _, err := client.BootISO(t.Context(), id, sitetest.Live("2"), sitetest.Another(instance)); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took < 9*time.Hour {
					t.Errorf("it took %s, though another machine had the only slot for ten hours", took)
				}
			})
		})
	}
}

func TestBootISO_loopGuard(t *testing.T) {
	t.Parallel()
	for _, api := range []string{"1.82", "1.115"} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake, id, instanceID := sitetest.Booted(t, api, sitetest.OverNetwork)
			client := sitetest.NewClient(fake)
			boot := func(try int) error {
				d := sitetest.Live("2")
				d.Capabilities = map[string]string{"try": fmt.Sprint(try)}
				_, _, err := client.BootISO(t.Context(), id, d, sitetest.Another(instanceID))
				return err
			}
			for try := range 1 + bootiso.MaxBoots { // the first is not again with the same image
				if err := boot(try); err != nil {
					t.Fatalf("%s, boot %d: %v", api, try, err)
				}
			}
			if err := boot(9); !failure.Is(err, deploy.KindBootLoop) ||
				!strings.Contains(err.Error(), "restarted with this image 3 times within a day") {
				t.Errorf("%s: %v", api, err)
			}
			if got := fake.PowerCycles(id); got != 2+bootiso.MaxBoots {
				t.Errorf("%s: the machine was started %d times", api, got)
			}
			<-time.After(bootiso.Window)
			if err := boot(10); err != nil {
				t.Errorf("%s, a day later: %v", api, err)
			}
		})
	}
}

func TestBootISO_unsupportedConfigDrive(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, instanceID := sitetest.Booted(t, "1.115", sitetest.OverNetwork)
		d := sitetest.Live("2")
		d.ConfigDrive = map[string]any{"meta_data": map[string]any{"name": "web"}}
		if _, _, err := sitetest.NewClient(fake).BootISO(t.Context(), id, d, sitetest.Another(instanceID)); !failure.Is(err,
			deploy.KindNoConfigDrive) || !strings.Contains(err.Error(), `"ipxe"`) {
			t.Errorf("%v", err)
		}
		wantBooted(t, fake, id, "1", 1)
	})
}

func TestBootISO_nodeOfOtherUser(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, _ := sitetest.Booted(t, "1.115", sitetest.OverNetwork)
		if _, _, err := sitetest.NewClient(fake).BootISO(t.Context(), id, sitetest.Live("2"),
			sitetest.Another(ironic.NewUUID())); !failure.Is(err, machine.KindReserved) {
			t.Errorf("%v", err)
		}
		wantBooted(t, fake, id, "1", 1)
	})
}

// Another client undeploys the machine while another live ISO is attached to it. What cleans the machine keeps its media and its power.
func TestBootISO_leavesMachineToOthers(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]int{"detach": 2, "attach": 3, "boot device": 4} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, id, instanceID := sitetest.Booted(t, "1.115", sitetest.FromMedia)
				writes := 0
				fake.Reject = func(r *http.Request) *fakeironic.Rejection {
					if r.Method == http.MethodGet {
						return nil
					}
					if writes++; writes == at {
						fake.Set(id, "instance_uuid", nil)
						fake.Set(id, "provision_state", "clean wait")
					}
					return nil
				}
				if _, _, err := sitetest.NewClient(fake).BootISO(t.Context(), id, sitetest.Live("2"),
					sitetest.Another(instanceID)); !failure.Is(err, machine.KindRefused) {
					t.Errorf("error %v, want a refusal", err)
				}
				if writes != at {
					t.Errorf("%d requests were sent to the machine of the other client", writes-at)
				}
			})
		})
	}
}

// refusing refuses a provision verb as invalid, as Ironic does when the node cannot be deployed.
func refusing(t *testing.T, verb string) func(*http.Request) *fakeironic.Rejection {
	t.Helper()
	return func(r *http.Request) *fakeironic.Rejection {
		if !strings.HasSuffix(r.URL.Path, "/states/provision") {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(body, []byte(strconv.Quote(verb))) {
			return nil
		}
		return ironictest.Fault(http.StatusBadRequest, "Failed to validate deploy or power info for node.")
	}
}

// TestBootISO_strandsNoMachine asks for another live ISO on nodes that Ironic would not deploy again after it had undeployed them.
func TestBootISO_strandsNoMachine(t *testing.T) {
	t.Parallel()
	for reason, change := range map[string]func(fake *fakeironic.Server, id string){
		"it is in maintenance": func(fake *fakeironic.Server, id string) { fake.Set(id, "maintenance", true) },
		"it is retired":        func(fake *fakeironic.Server, id string) { fake.Set(id, "retired", true) },
	} {
		for name, way := range ways() {
			t.Run(reason+", "+name, func(t *testing.T) {
				t.Parallel()
				ironictest.InVirtualTime(t, func(t *testing.T) {
					fake, id, instance := sitetest.Booted(t, way.api, way.driver)
					change(fake, id)
					if _, _, err := sitetest.NewClient(fake).BootISO(t.Context(), id, sitetest.Live("2"),
						sitetest.Another(instance)); !failure.Is(err, machine.KindRefused) || !strings.Contains(err.Error(), reason) {
						t.Errorf("%v", err)
					}
					if got := ironictest.Verbs(t, fake, id); len(got) > 0 {
						t.Errorf("verbs = %v", got)
					}
					wantBooted(t, fake, id, "1", 1)
				})
			})
		}
	}
}
