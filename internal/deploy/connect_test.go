package deploy_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// IDs of VIFs: one that the configuration names, and one that another client has attached.
const (
	ourVIF    = "00000000-0000-4000-8000-000000000001"
	othersVIF = "00000000-0000-4000-8000-000000000002"
)

// connected is a driver with a network interface that keeps VIFs.
func connected(driver map[string]any, network string) map[string]any {
	with := maps.Clone(driver)
	with["network_interface"] = network
	return with
}

// withVIF are options that also connect the node.
func withVIF(o deploy.DeployOptions) deploy.DeployOptions {
	o.Connections.Wanted = []deploy.VIF{{ID: ourVIF}}
	return o
}

// addPort adds a port to a node and returns its MAC address.
func addPort(t *testing.T, fake *fakeironic.Server, id string, n int) string {
	t.Helper()
	mac := fmt.Sprintf("52:54:00:00:01:%02x", n)
	ironictest.AsOther(t, fake, http.MethodPost, "ports", map[string]any{
		"node_uuid": id, "address": mac, "pxe_enabled": false,
		"local_link_connection": map[string]any{"switch_id": "00:00:00:00:00:01", "port_id": mac},
	})
	return mac
}

// vifsAt returns the VIFs of a node by the MAC addresses of its ports.
func vifsAt(t *testing.T, fake *fakeironic.Server, id string) map[string]string {
	t.Helper()
	ports, err := sitetest.NewClient(fake).Ironic.Ports(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]string{}
	for mac, port := range ports {
		if vif, _ := port.InternalInfo["tenant_vif_port_id"].(string); vif != "" {
			at[mac] = vif
		}
	}
	return at
}

// wired is a node on a network interface that runs the live ISO "1", connected as configured and by another client, which has also
// written to instance_info.
func wired(t *testing.T, fake *fakeironic.Server, network string, allocated bool) (id, instance string, at map[string]string) {
	t.Helper()
	id = sitetest.AddBootable(t, fake, "node-0", connected(sitetest.OverNetwork, network))
	macs := []string{addPort(t, fake, id, 1), addPort(t, fake, id, 2)}
	client := sitetest.NewClient(fake)
	instance = ironic.NewUUID()
	var err error
	if allocated {
		_, err = sitetest.Allocate(t.Context(), client, ironic.AllocationSpec{
			UUID: instance, Name: "web-0", ResourceClass: "baremetal",
			Extra: map[string]any{"team": "web"},
		})
	} else {
		_, err = client.ReserveNode(t.Context(), id, instance)
	}
	if err != nil {
		t.Fatal(err)
	}
	options := withVIF(deploy.DeployOptions{Instance: instance, Attempts: 1, Timeout: time.Hour})
	if _, _, err := client.BootISO(t.Context(), id, sitetest.Live("1"), options); err != nil {
		t.Fatal(err)
	}
	ports, err := client.Ironic.Ports(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	ironictest.AsOther(t, fake, http.MethodPost, "nodes/"+id+"/vifs", map[string]any{"id": othersVIF, "port_uuid": ports[macs[1]].UUID})
	ironictest.AsOther(t, fake, http.MethodPatch, "nodes/"+id,
		[]map[string]any{{"op": "add", "path": "/instance_info/display_name", "value": "web"}})
	<-time.After(time.Hour)
	fake.StepTime = 3 * time.Minute
	fake.ResetRequests()
	return id, instance, vifsAt(t, fake, id)
}

// wantWired fails the test unless the node has the VIFs of wired at the same ports, what another client has written, and no note of it.
func wantWired(t *testing.T, fake *fakeironic.Server, id string, at map[string]string) {
	t.Helper()
	if got := vifsAt(t, fake, id); !maps.Equal(got, at) {
		t.Errorf("attached are %v, want %v", got, at)
	}
	node := ironictest.NodeOf(t, fake, id)
	info, _ := node.Raw["instance_info"].(map[string]any)
	extra, _ := node.Raw["extra"].(map[string]any)
	note, _ := extra["terraform_metal_boot"].(map[string]any)
	if info["display_name"] != "web" || note["lost"] != nil || note["again"] != nil {
		t.Errorf("instance_info is %v, the note %v", info, note)
	}
}

// TestBootISO_connectsAgain kills a run that undeploys and deploys a node after each of its requests. The next run connects the machine as
// it was.
func TestBootISO_connectsAgain(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"neutron", "flat"} {
		for _, allocated := range []bool{false, true} {
			for how, pause := range map[string]time.Duration{"at once": 0, "later": 5 * time.Hour} {
				t.Run(fmt.Sprintf("%s, allocated %v, %s", network, allocated, how), func(t *testing.T) {
					t.Parallel()
					for requests, killed := 0, true; killed && !t.Failed(); requests++ {
						ironictest.InVirtualTime(t, func(t *testing.T) {
							fake := &fakeironic.Server{MaxMicroversion: "1.115"}
							id, instance, at := wired(t, fake, network, allocated)
							if len(at) != 2 {
								t.Fatalf("attached are %v", at)
							}
							ctx, cancel := context.WithCancel(t.Context())
							run := sitetest.NewClient(fake, func(c *machine.Config) {
								c.Transport = &mortal{next: fake, kill: cancel, left: requests}
							})
							_, _, err := run.BootISO(ctx, id, sitetest.Live("2"), withVIF(sitetest.Another(instance)))
							last := lastOf(fake.Requests())
							cancel()
							if killed = err != nil; killed {
								<-time.After(pause)
							}
							if _, _, err := sitetest.NewClient(fake).BootISO(t.Context(), id, sitetest.Live("2"),
								withVIF(sitetest.Another(instance))); err != nil {
								t.Fatalf("killed after %d requests (%s): %v", requests, last, err)
							}
							wantBooted(t, fake, id, "2", 2)
							wantWired(t, fake, id, at)
							if t.Failed() {
								t.Errorf("killed after %d requests (%s)", requests, last)
							}
						})
					}
				})
			}
		}
	}
}

// TestBootISO_leavesOutLostVIF boots a machine anew while a VIF of another client does not exist any more: the machine gets the others.
func TestBootISO_leavesOutLostVIF(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{MaxMicroversion: "1.115"}
		id, instance, at := wired(t, fake, "neutron", false)
		fake.Reject = ironictest.Once(http.MethodPost, "/v1/nodes/"+id+"/vifs", ironictest.Fault(http.StatusBadRequest, "Port "+ourVIF+
			" could not be found."))
		// without vifs in the configuration
		if _, _, err := sitetest.NewClient(fake).BootISO(t.Context(), id, sitetest.Live("2"), sitetest.Another(instance)); err != nil {
			t.Fatal(err)
		}
		wantBooted(t, fake, id, "2", 2)
		if got := vifsAt(t, fake, id); len(got) != len(at)-1 {
			t.Errorf("attached are %v, of %v", got, at)
		}
	})
}

// meddler calls a function before it sends a request.
type meddler struct {
	next   http.RoundTripper
	meddle func(r *http.Request)
}

// RoundTrip implements http.RoundTripper.
func (m *meddler) RoundTrip(r *http.Request) (*http.Response, error) {
	m.meddle(r)
	return m.next.RoundTrip(r)
}

// TestBootISO_leavesOutVIFOfLostPort boots a machine anew while the port of a VIF of another client is removed: the machine gets the
// others.
func TestBootISO_leavesOutVIFOfLostPort(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{MaxMicroversion: "1.115"}
		id, instance, at := wired(t, fake, "neutron", false)
		ports, err := sitetest.NewClient(fake).Ironic.Ports(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		others := slices.IndexFunc(slices.Sorted(maps.Keys(at)), func(mac string) bool { return at[mac] == othersVIF })
		mac := slices.Sorted(maps.Keys(at))[others]
		removed := false
		run := sitetest.NewClient(fake, func(c *machine.Config) {
			c.Transport = &meddler{fake, func(r *http.Request) {
				if !removed && r.URL.Path == "/v1/nodes/"+id+"/vifs" && ironictest.NodeOf(t, fake, id).ProvisionState == "available" {
					ironictest.AsOther(t, fake, http.MethodDelete, "ports/"+ports[mac].UUID, nil)
					removed = true
				}
			}}
		})
		if _, _, err := run.BootISO(t.Context(), id, sitetest.Live("2"), withVIF(sitetest.Another(instance))); err != nil {
			t.Fatal(err)
		}
		wantBooted(t, fake, id, "2", 2)
		if got := slices.Collect(maps.Values(vifsAt(t, fake, id))); !removed || !slices.Equal(got, []string{ourVIF}) {
			t.Errorf("attached are %v", got)
		}
	})
}

// TestDeploy_connectsAgain deploys an image on a node that lost its connections in one of the ways in which a node loses them.
func TestDeploy_connectsAgain(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, fake *fakeironic.Server, id, instance string){
		"nothing happened": func(*testing.T, *fakeironic.Server, string, string) {},
		"another client has detached the VIF": func(t *testing.T, fake *fakeironic.Server, id, _ string) {
			ironictest.AsOther(t, fake, http.MethodDelete, "nodes/"+id+"/vifs/"+ourVIF, nil)
		},
		"undeploying was interrupted": func(t *testing.T, fake *fakeironic.Server, id, instance string) {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-time.After(5 * time.Minute)
				cancel()
			}()
			if _, err := sitetest.NewClient(fake).Undeploy(ctx, id, instance, instance, 4*time.Hour); err == nil {
				t.Fatal("the run was not interrupted")
			}
			<-time.After(time.Hour)
		},
		"the deployment fails at first": func(_ *testing.T, fake *fakeironic.Server, _, _ string) {
			fails := true
			fake.Fail = func(_ fakeironic.Node, verb string) string {
				if fails && verb == "rebuild" {
					fails = false
					return "no space left"
				}
				return ""
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := &fakeironic.Server{}
				id := sitetest.AddBootable(t, fake, "node-0", connected(sitetest.OverNetwork, "neutron"))
				client, instance := sitetest.NewClient(fake), ironic.NewUUID()
				if _, err := sitetest.Allocate(t.Context(), client, ironic.AllocationSpec{
					UUID: instance, Name: "web-0",
					ResourceClass: "baremetal",
				}); err != nil {
					t.Fatal(err)
				}
				options := withVIF(sitetest.Another(instance))
				if _, _, err := client.Deploy(t.Context(), id, sitetest.Debian("v1"), options); err != nil {
					t.Fatal(err)
				}
				fake.StepTime = 3 * time.Minute
				lose(t, fake, id, instance)
				options.Attempts = 2
				if _, _, err := sitetest.NewClient(fake).Deploy(t.Context(), id, sitetest.Debian("v2"), options); err != nil {
					t.Fatal(err)
				}
				if got := slices.Collect(maps.Values(vifsAt(t, fake, id))); !slices.Equal(got, []string{ourVIF}) {
					t.Errorf("attached are %v", got)
				}
			})
		})
	}
}

// TestDeploy_writesTraitsBeforeItConnects has instance_info written before a VIF is attached: Ironic chooses the port by its traits.
func TestDeploy_writesTraitsBeforeItConnects(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{}
		id := sitetest.AddBootable(t, fake, "node-0", connected(sitetest.OverNetwork, "neutron"))
		client, instance := sitetest.NewClient(fake), ironic.NewUUID()
		if _, err := client.ReserveNode(t.Context(), id, instance); err != nil {
			t.Fatal(err)
		}
		fake.ResetRequests()
		if _, _, err := client.Deploy(t.Context(), id, sitetest.Debian("v1"),
			withVIF(deploy.DeployOptions{Instance: instance, Attempts: 1, Timeout: time.Hour})); err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, r := range fake.Requests() {
			if r.Method != http.MethodGet {
				order = append(order, r.Method)
			}
		}
		if !slices.Equal(order, []string{http.MethodPatch, http.MethodPost, http.MethodPut}) {
			t.Errorf("requests: %v", order)
		}
	})
}

// Ironic 35 chooses the network of a VIF by the traits of the instance: it must know them before the VIF is attached, for a first
// deployment and for a rebuild.
func TestDeploy_tellsTraitsBeforeConnecting(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, instanceID := sitetest.Reserved(t, time.Minute)
		fake.Set(id, "network_interface", "flat")
		fake.Set(id, "traits", []any{"CUSTOM_NET_12", "CUSTOM_NET_13"})
		for i, version := range []string{"12", "13"} {
			fake.ResetRequests()
			d, o := sitetest.Debian(version), sitetest.OnceIn4h(instanceID)
			d.Traits, o.Connections.Wanted = []string{"CUSTOM_NET_" + version},
				[]deploy.VIF{{ID: fmt.Sprintf("00000000-0000-4000-8000-%012d", i)}}
			o.Other = deploy.RebuildOther
			if _, _, err := sitetest.NewClient(fake).Deploy(t.Context(), id, d, o); err != nil {
				t.Fatal(err)
			}
			var order []string
			for _, r := range fake.Requests() {
				switch {
				case r.Method == http.MethodPatch && strings.Contains(r.Body, "CUSTOM_NET_"+version):
					order = append(order, "traits")
				case r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/vifs"):
					order = append(order, "VIF")
				case r.Method == http.MethodPut && r.Path == ironictest.ProvisionPath(id):
					order = append(order, "verb")
				}
			}
			if want := []string{"traits", "VIF", "verb"}; !slices.Equal(order, want) {
				t.Errorf("deployment %d: sent %v, want %v", i, order, want)
			}
		}
	})
}

// A new live ISO that undeploys first loses the traits and the VIFs, and must bring them back in that order.
func TestBootISO_tellsTraitsBeforeConnectingAgain(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{MaxMicroversion: "1.115"}
		id, instance, _ := wired(t, fake, "neutron", false)
		fake.Set(id, "traits", []any{"CUSTOM_NET"})
		live := sitetest.Live("2")
		live.Traits = []string{"CUSTOM_NET"}
		if _, _, err := sitetest.NewClient(fake).BootISO(t.Context(), id, live, withVIF(sitetest.Another(instance))); err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, r := range fake.Requests() {
			switch {
			case r.Method == http.MethodPut && strings.Contains(r.Body, `"deleted"`):
				order = nil // Ironic forgets both
			case r.Method == http.MethodPatch && strings.Contains(r.Body, "CUSTOM_NET"):
				order = append(order, "traits")
			case r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/vifs"):
				order = append(order, "VIF")
			}
		}
		if want := []string{"traits", "VIF", "VIF"}; !slices.Equal(order, want) {
			t.Errorf("after the undeploy: %v, want %v", order, want)
		}
	})
}

// A VIF whose port Neutron does not change is attached again after a while: the port that has its MAC address may be gone by then.
func TestDeploy_attachesAgainWhenNeutronDidNotChangeThePort(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{}
		id := sitetest.AddBootable(t, fake, "node-0", connected(sitetest.OverNetwork, "neutron"))
		client, instance := sitetest.NewClient(fake), ironic.NewUUID()
		if _, err := client.ReserveNode(t.Context(), id, instance); err != nil {
			t.Fatal(err)
		}
		fake.Reject = ironictest.Once(http.MethodPost, "/v1/nodes/"+id+"/vifs", ironictest.Fault(http.StatusInternalServerError,
			"Unable to attach VIF "+ourVIF+" because Ironic can not update Neutron port "+ourVIF+
				" MAC address to match physical MAC address 52:54:00:00:00:01"))
		if _, _, err := client.Deploy(t.Context(), id, sitetest.Debian("v1"),
			withVIF(deploy.DeployOptions{Instance: instance, Attempts: 1, Timeout: time.Hour})); err != nil {
			t.Fatal(err)
		}
		if got := slices.Collect(maps.Values(vifsAt(t, fake, id))); !slices.Equal(got, []string{ourVIF}) {
			t.Errorf("attached are %v", got)
		}
	})
}
