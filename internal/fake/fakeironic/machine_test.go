package fakeironic_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// lastPowerChange returns last_power_state_change of a node.
func (a *api) lastPowerChange(uuid string) string {
	n, _ := a.fake.Node(uuid)
	info, _ := n.Raw["driver_internal_info"].(map[string]any)
	stamp, _ := info["last_power_state_change"].(string)
	return stamp
}

func (a *api) power(uuid, target string) {
	a.t.Helper()
	a.must(http.StatusAccepted, http.MethodPut, "/v1/nodes/"+uuid+"/states/power", map[string]any{"target": target})
}

func TestMachine_powerCyclesPerOperation(t *testing.T) {
	t.Parallel()
	direct := map[string]any{"deploy_interface": "direct", "image_source": "http://images/i", "image_checksum": "c"}
	deploy := func(a *api, uuid string) { a.provision(uuid, "active"); a.state(uuid, "active") }
	undeploy := func(a *api, uuid string) { a.provision(uuid, "deleted"); a.state(uuid, "available") }
	to := func(target string) func(*api, string) { return func(a *api, uuid string) { a.power(uuid, target) } }
	for name, tt := range map[string]struct {
		boot    string
		info    map[string]any
		before  []string // power targets
		do      func(a *api, uuid string)
		cycles  int
		power   any
		changes bool // last_power_state_change
	}{
		"deploy of a live ISO, never switched": {"ipxe", liveISO(isoA), nil, deploy, 1, "power on", true},
		"deploy of a live ISO, off":            {"ipxe", liveISO(isoA), []string{"power off"}, deploy, 1, "power on", true},
		"deploy of a live ISO, on":             {"ipxe", liveISO(isoA), []string{"power on"}, deploy, 1, "power on", true},
		"deploy and undeploy of a live ISO": {
			"ipxe", liveISO(isoA), nil, func(a *api, uuid string) { deploy(a, uuid); undeploy(a, uuid) }, 1, "power off", true,
		},
		"undeploy and deploy anew": {
			"ipxe", liveISO(isoA), nil, func(a *api, uuid string) {
				deploy(a, uuid)
				undeploy(a, uuid)
				a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/"+uuid, patch("add", "/instance_info", liveISO(isoB)))
				deploy(a, uuid)
			}, 2, "power on", true,
		},
		"rebuild with another live ISO": {
			"ipxe", liveISO(isoA), nil, func(a *api, uuid string) {
				deploy(a, uuid)
				a.provision(uuid, "rebuild")
				a.state(uuid, "active")
			}, 2, "power on", true,
		},
		"undeploy of a live ISO, when off": {
			"ipxe", map[string]any{"deploy_interface": "ramdisk"}, []string{"power off"}, func(a *api, uuid string) {
				a.fake.Set(uuid, "provision_state", "active")
				undeploy(a, uuid)
			}, 0, "power off", false,
		},
		"deploy with direct": {"fake", direct, nil, deploy, 2, "power on", true},
		"deploy with fake":   {"fake", map[string]any{}, nil, deploy, 0, nil, false},
		"undeploy with fake": {
			"fake", map[string]any{}, []string{"power on"}, func(a *api, uuid string) {
				deploy(a, uuid)
				undeploy(a, uuid)
			}, 0, "power on", false,
		},
		"on":                    {"fake", map[string]any{}, nil, to("power on"), 1, "power on", true},
		"on, when on":           {"fake", map[string]any{}, []string{"power on"}, to("power on"), 0, "power on", false},
		"off":                   {"fake", map[string]any{}, []string{"power on"}, to("power off"), 0, "power off", true},
		"off, when off":         {"fake", map[string]any{}, []string{"power off"}, to("soft power off"), 0, "power off", false},
		"restart, when on":      {"fake", map[string]any{}, []string{"power on"}, to("rebooting"), 1, "power on", true},
		"soft restart, when on": {"fake", map[string]any{}, []string{"power on"}, to("soft rebooting"), 1, "power on", true},
		"restart, when off":     {"fake", map[string]any{}, []string{"power off"}, to("rebooting"), 1, "power on", true},
		"verification by an admin": {"fake", map[string]any{}, []string{"power off"}, func(a *api, uuid string) {
			a.provision(uuid, "manage")
		}, 0, "power off", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAPI(t, &fakeironic.Server{MaxMicroversion: "1.82"})
				uuid := a.netbooting("n1", tt.info)
				a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1", patch("add", "/boot_interface", tt.boot))
				for _, target := range tt.before {
					a.power(uuid, target)
				}
				cycles, stamp := a.fake.PowerCycles(uuid), a.lastPowerChange(uuid)
				time.Sleep(time.Hour)
				tt.do(a, uuid)
				n, _ := a.fake.Node(uuid)
				if got := a.fake.PowerCycles(uuid) - cycles; got != tt.cycles || n.Raw["power_state"] != tt.power {
					t.Errorf("%d starts, then %v; want %d, then %v", got, n.Raw["power_state"], tt.cycles, tt.power)
				}
				if got := a.lastPowerChange(uuid); (got != stamp) != tt.changes {
					t.Errorf("last_power_state_change went from %q to %q, want a change: %v", stamp, got, tt.changes)
				}
			})
		})
	}
}

func TestMachine_lastPowerChangeIncludesFailedChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, &fakeironic.Server{StepTime: time.Hour, Fail: func(fakeironic.Node, string) string { return "no answer" }})
		uuid := a.node("n1", nil)
		want := time.Now().UTC().Format("2006-01-02T15:04:05.000000")
		a.power(uuid, "power on")
		time.Sleep(time.Hour)
		if got := a.lastPowerChange(uuid); got != want || a.fake.PowerCycles(uuid) != 0 {
			t.Errorf("last_power_state_change = %q with %d starts, want %q with 0", got, a.fake.PowerCycles(uuid), want)
		}
	})
}

func TestMachine_isOffDuringALiveISODeployment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, &fakeironic.Server{StepTime: time.Hour})
		uuid := a.netbooting("n1", liveISO(isoA))
		a.fake.Set(uuid, "power_state", "power on")
		a.provision(uuid, "active")
		for _, want := range []string{"power on", "power off", "power on"} {
			if n, _ := a.fake.Node(uuid); n.PowerState != want {
				t.Errorf("in %s: %s, want %s", n.ProvisionState, n.PowerState, want)
			}
			time.Sleep(30 * time.Minute)
		}
	})
}

func TestMachine_bootsTheSelectedDevice(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	a := newAPI(t, fake)
	uuid := a.redfish("n1", liveISO(isoA))
	path := "/v1/nodes/" + uuid
	attach := func(url string) {
		a.must(http.StatusNoContent, http.MethodPost, path+"/vmedia", map[string]any{"device_type": "cdrom", "image_url": url})
	}
	device := func(name string, persistent bool) {
		a.must(http.StatusNoContent, http.MethodPut, path+"/management/boot_device",
			map[string]any{"boot_device": name, "persistent": persistent})
	}
	restart := func(when, want string) {
		t.Helper()
		a.power(uuid, "rebooting")
		if got := fake.BootedISO(uuid); got != want {
			t.Errorf("%s it starts from %q, want %q", when, got, want)
		}
	}
	if got := fake.BootedISO(uuid); got != "" {
		t.Errorf("a new machine has started from %q", got)
	}
	a.provision(uuid, "active")
	a.state(uuid, "active")
	restart("after the deployment", isoA)
	a.must(http.StatusOK, http.MethodPatch, path, patch("add", "/instance_info/boot_iso", isoB))
	restart("after a patch alone", isoA)
	attach(isoB)
	if got := fake.BootedISO(uuid); got != isoA {
		t.Errorf("before the restart it runs %q, want %q", got, isoA)
	}
	restart("with other media", isoB)
	device("disk", false)
	restart("from the disk, once", "")
	device("cdrom", false)
	restart("from the drive, once", isoB)
	restart("the time after", "")
	device("cdrom", true)
	restart("from the drive for good", isoB)
	a.must(http.StatusNoContent, http.MethodDelete, path+"/vmedia", nil)
	restart("from an empty drive", "")
	attach(isoA)
	a.provision(uuid, "deleted")
	a.state(uuid, "available")
	restart("after the undeployment", "")
}

func TestMachine_oneTimeDeviceIsUsedOnce(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	a := newAPI(t, fake)
	uuid := a.redfish("n1", liveISO(isoA))
	path := "/v1/nodes/" + uuid
	a.must(http.StatusOK, http.MethodPatch, path, patch("add", "/boot_interface", "ipxe"))
	a.must(http.StatusCreated, http.MethodPost, "/v1/ports", map[string]any{"node_uuid": uuid, "address": "52:54:00:00:00:01"})
	a.provision(uuid, "active")
	a.state(uuid, "active")
	a.must(http.StatusNoContent, http.MethodPost, path+"/vmedia", map[string]any{"device_type": "cdrom", "image_url": isoB})
	a.power(uuid, "rebooting")
	if got := fake.BootedISO(uuid); got != isoA {
		t.Errorf("with media but the network as boot device it starts from %q, want %q", got, isoA)
	}
	a.must(http.StatusNoContent, http.MethodPut, path+"/management/boot_device", map[string]any{"boot_device": "cdrom"})
	for _, want := range []string{isoB, isoA} {
		a.power(uuid, "rebooting")
		if got := fake.BootedISO(uuid); got != want {
			t.Errorf("starts from %q, want %q", got, want)
		}
	}
	a.must(http.StatusNoContent, http.MethodDelete, path+"/vmedia", nil)
	a.must(http.StatusNoContent, http.MethodPut, path+"/management/boot_device", map[string]any{"boot_device": "cdrom"})
	a.power(uuid, "rebooting")
	if got := fake.BootedISO(uuid); got != isoA {
		t.Errorf("with an empty drive it starts from %q, want %q", got, isoA)
	}
}

func TestMachine_bootsTheLastDeployment(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	a := newAPI(t, fake)
	uuid := a.netbooting("n1", nil)
	a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1",
		patch("add", "/driver_info", map[string]any{"deploy_kernel": "k", "deploy_ramdisk": "r"}))
	image := map[string]any{"deploy_interface": "direct", "image_source": "http://images/i", "image_checksum": "c"}
	for _, tt := range []struct {
		info map[string]any
		want string
	}{{liveISO(isoA), isoA}, {image, ""}, {liveISO(isoB), isoB}, {image, ""}} {
		a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1", patch("add", "/instance_info", tt.info))
		a.provision(uuid, "active")
		a.state(uuid, "active")
		for range 2 {
			if got := fake.BootedISO(uuid); got != tt.want {
				t.Errorf("with %v it starts from %q, want %q", tt.info, got, tt.want)
			}
			a.power(uuid, "rebooting")
		}
		// The next deployment starts without an undeploy, as after a failed deployment.
		a.fake.Set(uuid, "provision_state", "deploy failed")
	}
}

func TestMachine_directDeploymentRemovesTheISO(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeironic.Server{StepTime: time.Hour}
		a := newAPI(t, fake)
		uuid := a.redfish("n1", liveISO(isoA))
		path := "/v1/nodes/" + uuid
		a.must(http.StatusOK, http.MethodPatch, path, patch("add", "/driver_info/deploy_iso", "http://images/agent.iso"))
		a.provision(uuid, "active")
		time.Sleep(time.Hour)
		a.fake.Set(uuid, "provision_state", "deploy failed")
		a.must(http.StatusOK, http.MethodPatch, path, patch("add", "/instance_info", map[string]any{
			"deploy_interface": "direct", "image_source": "http://images/i", "image_checksum": "c",
		}))
		a.provision(uuid, "active")
		for _, tt := range []struct {
			state, iso string
			cycles     int
		}{{"deploying", isoA, 1}, {"wait call-back", "", 2}, {"deploying", "", 2}, {"active", "", 3}} {
			a.state(uuid, tt.state)
			if iso, cycles := fake.BootedISO(uuid), fake.PowerCycles(uuid); iso != tt.iso || cycles != tt.cycles {
				t.Errorf("in %s: started %d times, last from %q; want %d, %q", tt.state, cycles, iso, tt.cycles, tt.iso)
			}
			time.Sleep(time.Hour)
		}
		a.must(http.StatusNoContent, http.MethodPost, path+"/vmedia", cdrom(isoB))
		time.Sleep(time.Hour)
		a.power(uuid, "rebooting")
		time.Sleep(time.Hour)
		if got := fake.BootedISO(uuid); got != "" {
			t.Errorf("with media and no boot device it starts from %q", got)
		}
	})
}

func TestMachine_unknownNode(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	if fake.PowerCycles("nope") != 0 || fake.BootedISO("nope") != "" {
		t.Error("an unknown node has a machine")
	}
}
