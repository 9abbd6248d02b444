package fakeironic_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

const (
	isoA = "http://images/a.iso"
	isoB = "http://images/b.iso"
)

// bothIronics are the highest API versions of Ironic 21.4 and 39.
var bothIronics = []string{"1.82", "1.115"}

func liveISO(url string) map[string]any {
	return map[string]any{"deploy_interface": "ramdisk", "boot_iso": url}
}

// netbooting creates an available node with network boot and without automated cleaning.
func (a *api) netbooting(name string, info map[string]any) string {
	a.t.Helper()
	uuid := a.node(name, map[string]any{"boot_interface": "ipxe", "automated_clean": false, "instance_info": info})
	a.must(http.StatusCreated, http.MethodPost, "/v1/ports", map[string]any{"node_uuid": uuid, "address": "52:54:00:00:00:01"})
	a.fake.Set(uuid, "provision_state", "available")
	return uuid
}

// redfish creates an available node with virtual media and without automated cleaning.
func (a *api) redfish(name string, info map[string]any) string {
	a.t.Helper()
	uuid := a.node(name, map[string]any{
		"driver": "redfish", "boot_interface": "redfish-virtual-media", "automated_clean": false, "instance_info": info,
		"driver_info": map[string]any{"redfish_address": "https://bmc"},
	})
	a.fake.Set(uuid, "provision_state", "available")
	a.fake.Set(uuid, "power_state", "power off")
	return uuid
}

// verdict returns the reason of GET validate for an interface, "" if it is valid.
func (a *api) verdict(uuid, kind string) string {
	a.t.Helper()
	result, isObject := a.must(http.StatusOK, http.MethodGet, "/v1/nodes/"+uuid+"/validate", nil)[kind].(map[string]any)
	if !isObject {
		a.t.Fatalf("no verdict on %s", kind)
	}
	reason, _ := result["reason"].(string)
	if result["result"] != (reason == "") {
		a.t.Errorf("verdict on %s is %v", kind, result)
	}
	return strings.ReplaceAll(reason, uuid, "U")
}

func TestBoot_ramdiskNeedsBootInterfaceAndImage(t *testing.T) {
	t.Parallel()
	const (
		nothing = "Cannot validate image information for node U because one or more parameters are missing from its instance_info and " +
			"insufficient information is present to boot from a remote volume. Missing are: ['kernel', 'ramdisk']"
		scheme   = "Validation of image href abc failed, reason: Scheme-less image href is not a UUID."
		protocol = "Validation of image href ftp://x/y failed, reason: Image download protocol ftp is not supported."

		both = "An 'image_source' and 'boot_iso' parameter may not be specified at the same time"
	)
	noRamdisk := strings.Replace(nothing, "'kernel', ", "", 1)
	for _, tt := range []struct {
		boot       string
		info       map[string]any
		old, since string // reasons of 21.4 and 39
	}{
		{"ipxe", map[string]any{}, nothing, nothing},
		{"pxe", map[string]any{}, nothing, nothing},
		{"redfish-virtual-media", map[string]any{}, nothing, nothing},
		{"ipxe", map[string]any{"boot_iso": isoA}, "", ""},
		{"pxe", map[string]any{"boot_iso": isoA}, "", ""},
		{"redfish-virtual-media", map[string]any{"boot_iso": isoA}, "", ""},
		{"ipxe", map[string]any{"kernel": "http://images/k", "ramdisk": "http://images/r"}, "", ""},
		{"ipxe", map[string]any{"kernel": "http://images/k"}, noRamdisk, noRamdisk},
		{"ipxe", map[string]any{"image_source": "http://images/i"}, nothing, ""},
		{"ipxe", map[string]any{"image_source": "http://images/i", "boot_iso": isoA}, both, both},
		{"redfish-virtual-media", map[string]any{"image_source": "http://images/i", "boot_iso": isoA}, both + ".", both + "."},
		{"ipxe", map[string]any{"boot_iso": "abc"}, scheme, scheme},
		{"ipxe", map[string]any{"boot_iso": "ftp://x/y"}, protocol, protocol},
	} {
		for i, want := range []string{tt.old, tt.since} {
			a := newAPI(t, &fakeironic.Server{MaxMicroversion: bothIronics[i]})
			tt.info["deploy_interface"] = "ramdisk"
			uuid := a.netbooting("n1", tt.info)
			a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1", patch("add", "/boot_interface", tt.boot))
			if boot, deploy := a.verdict(uuid, "boot"), a.verdict(uuid, "deploy"); boot != want || deploy != want {
				t.Errorf("%s with %v at %s: boot %q, deploy %q; want %q for both", tt.boot, tt.info, bothIronics[i], boot, deploy, want)
			}
			if want == "" {
				a.provision(uuid, "active")
				continue
			}
			a.refused(http.StatusBadRequest, "Failed to validate deploy or power info for node "+uuid+": "+
				strings.ReplaceAll(want, "U ", uuid+" "),
				http.MethodPut, provisionPath(uuid), requestOf("active"))
			a.state(uuid, "available")
		}
	}
}

func TestBoot_fakeInterfaceRefusesARamdisk(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.available("n1", nil)
	a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1", patch("add", "/instance_info", liveISO(isoA)))
	const want = "Invalid configuration: The boot interface must have the `ramdisk_boot` capability. You are using an incompatible " +
		"boot interface."
	if boot, deploy := a.verdict(uuid, "boot"), a.verdict(uuid, "deploy"); boot != "" || deploy != want {
		t.Errorf("boot %q, deploy %q; want nothing and %q", boot, deploy, want)
	}
	a.refused(http.StatusBadRequest, want, http.MethodPut, provisionPath(uuid), requestOf("active"))
}

func TestBoot_networkBootNeedsAPort(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.available("n1", map[string]any{"boot_interface": "ipxe"})
	const want = "Node U does not have any port associated with it"
	if boot, deploy := a.verdict(uuid, "boot"), a.verdict(uuid, "deploy"); boot != want || deploy != "" {
		t.Errorf("with the deploy interface fake: boot %q, deploy %q; want %q and nothing", boot, deploy, want)
	}
	a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1", patch("add", "/instance_info", liveISO(isoA)))
	if boot, deploy := a.verdict(uuid, "boot"), a.verdict(uuid, "deploy"); boot != want || deploy != want {
		t.Errorf("boot %q, deploy %q; want %q for both", boot, deploy, want)
	}
	a.refused(http.StatusBadRequest, "does not have any port associated with it", http.MethodPut, provisionPath(uuid), requestOf("active"))
}

func TestDeploy_refusalStillSetsTheImageType(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.netbooting("n1", map[string]any{"deploy_interface": "ramdisk", "boot_iso": isoA, "image_source": "http://images/i"})
	a.refused(http.StatusBadRequest, "may not be specified at the same time", http.MethodPut, provisionPath(uuid), requestOf("active"))
	info, _ := a.state(uuid, "available")["instance_info"].(map[string]any)
	if info["image_type"] != "whole-disk" {
		t.Errorf("instance_info = %v, want an image_type in it", info)
	}
}

func TestBoot_rebuildBootsTheNewISO(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{MaxMicroversion: "1.82"})
	uuid := a.netbooting("n1", liveISO(isoA))
	a.provision(uuid, "active")
	a.state(uuid, "active")
	a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1", patch("add", "/instance_info/boot_iso", isoB))
	if got := a.fake.BootedISO(uuid); got != isoA {
		t.Errorf("after the patch it runs %q, want still %q", got, isoA)
	}
	a.provision(uuid, "rebuild")
	a.state(uuid, "active")
	if got, cycles := a.fake.BootedISO(uuid), a.fake.PowerCycles(uuid); got != isoB || cycles != 2 {
		t.Errorf("after the rebuild it runs %q after %d starts, want %q after 2", got, cycles, isoB)
	}
}

func TestBoot_rebuildWithoutImageFailsSince26(t *testing.T) {
	t.Parallel()
	const broken = `{"error_message":"{\"faultcode\":\"Server\",\"faultstring\":\"Unexpected error raised by RPC\",\"debuginfo\":null}"}`
	for version, status := range map[string]int{"1.82": 202, "1.91": 202, "1.92": 500, "1.115": 500} {
		a := newAPI(t, &fakeironic.Server{MaxMicroversion: version})
		uuid := a.netbooting("n1", liveISO(isoA))
		a.provision(uuid, "active")
		a.state(uuid, "active")
		got := a.do(http.MethodPut, provisionPath(uuid), requestOf("rebuild"))
		if got.status != status || status == 500 && got.text != broken {
			t.Errorf("rebuild at %s = %d %s, want %d", version, got.status, got.text, status)
		}
		if n := a.state(uuid, "active"); n["last_error"] != nil || n["power_state"] != "power on" {
			t.Errorf("at %s: last_error %v, power_state %v; want the node unchanged", version, n["last_error"], n["power_state"])
		}
	}
}

func TestBoot_undeployRemovesTheInstancesInterfaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, &fakeironic.Server{StepTime: time.Hour})
		uuid := a.node("n1", map[string]any{"boot_interface": "ipxe"})
		a.must(http.StatusCreated, http.MethodPost, "/v1/ports", map[string]any{"node_uuid": uuid, "address": "52:54:00:00:00:01"})
		a.fake.Set(uuid, "provision_state", "available")
		a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1", patch("add", "/instance_info", liveISO(isoA)))
		a.provision(uuid, "active")
		time.Sleep(time.Hour)
		a.state(uuid, "active")
		a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1", patch("add", "/automated_clean", false))
		a.provision(uuid, "deleted")
		a.state(uuid, "deleting")
		time.Sleep(time.Hour)
		got := a.state(uuid, "available")
		if fmt.Sprint(got["instance_info"]) != "map[]" || got["power_state"] != "power off" || got["deploy_interface"] != "fake" {
			t.Errorf("instance_info %v, power_state %v, deploy_interface %v; want none, power off, fake", got["instance_info"],
				got["power_state"], got["deploy_interface"])
		}
		if got, want := fmt.Sprint(a.fake.Walk(uuid)), "[enroll available deploying active deleting cleaning available]"; got != want {
			t.Errorf("Walk = %s, want %s: cleaning for no time", got, want)
		}
	})
}

func TestBoot_cleaningAfterALiveISOBootsARamdisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, &fakeironic.Server{StepTime: time.Hour})
		uuid := a.netbooting("n1", liveISO(isoA))
		a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1", patch("replace", "/automated_clean", nil))
		a.provision(uuid, "active")
		time.Sleep(time.Hour)
		a.provision(uuid, "deleted")
		time.Sleep(2 * time.Hour)
		a.state(uuid, "clean wait") // although the node's own deploy interface is fake
		time.Sleep(2 * time.Hour)
		a.state(uuid, "available")
		if got, iso := a.fake.PowerCycles(uuid), a.fake.BootedISO(uuid); got != 2 || iso != "" {
			t.Errorf("%d starts, the last one with %q; want 2, and no ISO", got, iso)
		}
	})
}

func TestBoot_unreachableISOLeavesTheMachineOff(t *testing.T) {
	t.Parallel()
	const reason = "Got HTTP code 404 instead of 200 in response to HEAD request."
	for _, version := range bothIronics {
		fake := &fakeironic.Server{MaxMicroversion: version, ImageFault: func(url string) string {
			if strings.HasPrefix(url, isoB) {
				return reason
			}
			return ""
		}}
		a := newAPI(t, fake)
		uuid := a.netbooting("n1", liveISO(isoA))
		a.provision(uuid, "active")
		a.provision(uuid, "deleted")
		a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1", patch("add", "/instance_info", liveISO(isoB+"?token=t")))
		a.provision(uuid, "active")
		got := a.state(uuid, "deploy failed")
		want := "Deploy step deploy.deploy failed: Validation of image href " + isoB + "?token=t failed, reason: " + reason + "."
		if got["last_error"] != want || got["power_state"] != "power off" || got["target_provision_state"] != "active" {
			t.Errorf("at %s: last_error %v, power_state %v, target %v; want %q, power off, active", version, got["last_error"],
				got["power_state"],
				got["target_provision_state"], want)
		}
		if iso, cycles := fake.BootedISO(uuid), fake.PowerCycles(uuid); iso != isoA || cycles != 1 {
			t.Errorf("at %s: last started with %q, %d starts; want %q and 1", version, iso, cycles, isoA)
		}
		a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1", patch("add", "/instance_info/boot_iso", isoA))
		a.provision(uuid, "active")
		a.state(uuid, "active")
	}
}

func TestBoot_failedRebuildRemovesTheISO(t *testing.T) {
	t.Parallel()
	for _, node := range []func(*api) string{
		func(a *api) string { return a.netbooting("n1", liveISO(isoA)) },
		func(a *api) string { return a.redfish("n1", liveISO(isoA)) },
	} {
		a := newAPI(t, &fakeironic.Server{MaxMicroversion: "1.82", ImageFault: func(url string) string {
			return strings.TrimPrefix(url, isoA)
		}})
		uuid := node(a)
		a.provision(uuid, "active")
		a.state(uuid, "active")
		a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1", patch("add", "/instance_info/boot_iso", isoB))
		a.provision(uuid, "rebuild")
		if got := a.state(uuid, "deploy failed"); got["power_state"] != "power off" {
			t.Errorf("power_state = %v, want power off", got["power_state"])
		}
		a.power(uuid, "power on")
		if got := a.fake.BootedISO(uuid); got != "" {
			t.Errorf("switched on, the machine starts from %q, want nothing", got)
		}
	}
}

func TestBoot_39LosesLastErrorWithVirtualMedia(t *testing.T) {
	t.Parallel()
	for version, lost := range map[string]bool{"1.82": false, "1.115": true} {
		for _, delay := range []time.Duration{0, time.Nanosecond} {
			a := newAPI(t, &fakeironic.Server{MaxMicroversion: version, UnlockDelay: delay, ImageFault: func(string) string {
				return "no answer"
			}})
			uuid := a.redfish("n1", liveISO(isoA))
			a.provision(uuid, "active")
			a.state(uuid, "deploy failed")
			if got := a.state(uuid, "deploy failed")["last_error"]; (got == nil) != lost {
				t.Errorf("last_error at %s = %v, want lost: %v", version, got, lost)
			}
		}
	}
}

func TestBoot_fakeHardwareHasNoVirtualMedia(t *testing.T) {
	t.Parallel()
	const aborted = ".. An unhandled exception was encountered while aborting. More information may be found in the log file."
	for _, tt := range []struct{ version, address, deploy, undeploy string }{
		{
			"1.82", "", ": Missing the following Redfish properties in node U driver_info: ['redfish_address'].. Also failed to clean " +
				"up due to: Missing the following Redfish properties in node U driver_info: ['redfish_address']",
			"Missing the following Redfish properties in node U driver_info: ['redfish_address']",
		},
		{"1.82", "https://bmc", " with KeyError: 'fake-hardware'" + aborted, "'fake-hardware'"},
		{
			"1.115", "https://bmc", " with NoSuchOptError: no such option fake-hardware in group [DEFAULT]" + aborted,
			"no such option fake-hardware in group [DEFAULT]",
		},
	} {
		a := newAPI(t, &fakeironic.Server{MaxMicroversion: tt.version})
		uuid := a.available("n1", map[string]any{
			"boot_interface": "redfish-virtual-media", "instance_info": liveISO(isoA),
			"driver_info": map[string]any{"redfish_address": tt.address},
		})
		a.provision(uuid, "active")
		lastError, _ := a.state(uuid, "deploy failed")["last_error"].(string)
		if got := strings.ReplaceAll(lastError, uuid, "U"); got != "Deploy step deploy.deploy failed"+tt.deploy {
			t.Errorf("last_error = %q, want %q", got, tt.deploy)
		}
		a.provision(uuid, "deleted")
		got := a.state(uuid, "error")
		lastError, _ = got["last_error"].(string)
		if text := strings.ReplaceAll(lastError, uuid, "U"); text != "Failed to tear down: "+tt.undeploy ||
			fmt.Sprint(got["instance_info"]) != "map[]" {
			t.Errorf("last_error = %q, instance_info = %v; want %q, none", text, got["instance_info"], tt.undeploy)
		}
	}
}

func TestBoot_failureCanBeInjected(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
		if verb == "active" {
			return "the BMC is on fire"
		}
		return ""
	}})
	uuid := a.redfish("n1", liveISO(isoA))
	a.provision(uuid, "active")
	if got := a.state(uuid, "deploy failed"); got["last_error"] != "the BMC is on fire" || got["power_state"] != "power off" ||
		a.fake.PowerCycles(uuid) != 0 {
		t.Errorf("last_error %v, power_state %v, %d starts; want the error, power off, 0", got["last_error"], got["power_state"],
			a.fake.PowerCycles(uuid))
	}
}
