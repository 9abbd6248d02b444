package fakeironic_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// methods returns the deploy interface of a node, and the one that Ironic keeps aside.
func methods(node map[string]any) string {
	internal, _ := node["driver_internal_info"].(map[string]any)
	return fmt.Sprint(node["deploy_interface"], " ", internal["original_deploy_interface"])
}

func TestAutodetect_rewritesTheDeployInterface(t *testing.T) {
	t.Parallel()
	sum := func(source string) map[string]any {
		return map[string]any{"image_source": source, "image_checksum": "c"}
	}
	for name, tt := range map[string]struct {
		info map[string]any
		want string
	}{
		"a disk image":     {sum("http://images/i"), "direct autodetect"},
		"a container":      {sum("oci://registry/bootc:1"), "bootc autodetect"},
		"a disk in OCI":    {sum("oci://registry/disk:1"), "direct autodetect"},
		"an ISO, asked":    {map[string]any{"boot_iso": isoA, "ironic_ramdisk_deploy": true}, "ramdisk autodetect"},
		"an ISO, override": {liveISO(isoA), "autodetect <nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAPI(t, &fakeironic.Server{StepTime: time.Second})
				uuid := a.netbooting("n1", nil)
				path := "/v1/nodes/" + uuid
				a.must(http.StatusOK, http.MethodPatch, path, patch("add", "/deploy_interface", "autodetect"))
				a.must(http.StatusOK, http.MethodPatch, path, patch("add", "/instance_info", tt.info))
				a.provision(uuid, "active")
				time.Sleep(time.Minute)
				if got := methods(a.state(uuid, "active")); got != tt.want {
					t.Errorf("active: %s, want %s", got, tt.want)
				}
				a.refusedUnlessSame(uuid, path)
				a.provision(uuid, "deleted")
				time.Sleep(time.Minute)
				if got := methods(a.state(uuid, "available")); got != "autodetect <nil>" {
					t.Errorf("undeployed: %s", got)
				}
			})
		})
	}
}

// refusedUnlessSame checks that a client cannot change the deploy interface of an active node, and that maintenance permits it, which ends
// the detection.
func (a *api) refusedUnlessSame(uuid, path string) {
	a.t.Helper()
	a.refused(http.StatusConflict, "can not have deploy_interface updated", http.MethodPatch, path,
		patch("add", "/deploy_interface", "custom-agent"))
	before := a.state(uuid, "active")
	a.must(http.StatusAccepted, http.MethodPut, path+"/maintenance", map[string]any{})
	a.must(http.StatusOK, http.MethodPatch, path, patch("add", "/deploy_interface", "custom-agent"))
	if got := methods(a.state(uuid, "active")); got != "custom-agent <nil>" {
		a.t.Errorf("changed in maintenance: %s", got)
	}
	a.must(http.StatusOK, http.MethodPatch, path, patch("add", "/deploy_interface", "autodetect"))
	a.must(http.StatusAccepted, http.MethodDelete, path+"/maintenance", nil)
	a.fake.Set(uuid, "deploy_interface", before["deploy_interface"])
	a.fake.Set(uuid, "driver_internal_info", before["driver_internal_info"])
}

// A deployment that Ironic refuses has rewritten the interface all the same, and the next one does not choose again.
func TestAutodetect_staysAfterARefusal(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.netbooting("n1", nil)
	a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1", patch("add", "/deploy_interface", "autodetect"))
	a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1", patch("add", "/instance_info", map[string]any{"boot_iso": isoA}))
	a.refused(http.StatusBadRequest, "Missing are: ['instance_info.image_source']", http.MethodPut, provisionPath(uuid),
		requestOf("active"))
	if got := methods(a.state(uuid, "available")); got != "direct autodetect" {
		t.Errorf("refused: %s", got)
	}
}

func TestDeployInterfaces_byVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]map[string]string{
		"1.82":  {"redfish": "direct ramdisk anaconda custom-agent", "fake-hardware": "fake direct ramdisk anaconda custom-agent"},
		"1.109": {"redfish": "direct ramdisk anaconda custom-agent"},
		"1.115": {
			"redfish": "autodetect direct ramdisk bootc anaconda custom-agent", "manual-management": "autodetect direct ramdisk bootc " +
				"noop anaconda custom-agent",
			"fake-hardware": "fake autodetect direct ramdisk bootc anaconda custom-agent",
		},
	} {
		for driver, names := range want {
			a := newAPI(t, &fakeironic.Server{MaxMicroversion: version})
			got := a.must(http.StatusOK, http.MethodGet, "/v1/drivers/"+driver, nil)
			enabled := list(t, got, "enabled_deploy_interfaces")
			for name := range strings.FieldsSeq(names) {
				if !slices.Contains(enabled, any(name)) {
					t.Errorf("%s, %s: %v lacks %s", version, driver, enabled, name)
				}
			}
			if first, _, _ := strings.Cut(names, " "); len(enabled) != len(strings.Fields(names)) ||
				got["default_deploy_interface"] != first {
				t.Errorf("%s, %s: %v, default %v", version, driver, enabled, got["default_deploy_interface"])
			}
		}
	}
	a := newAPI(t, &fakeironic.Server{})
	a.node("n1", map[string]any{"deploy_interface": "noop"}) // fake-hardware takes every interface
	a.refused(http.StatusBadRequest, "is not supported by hardware type RedfishHardware", http.MethodPost, "/v1/nodes",
		map[string]any{"driver": "redfish", "deploy_interface": "noop"})
	a = newAPI(t, &fakeironic.Server{MaxMicroversion: "1.82"})
	a.refused(http.StatusBadRequest, "Could not find the following interface", http.MethodPost, "/v1/nodes",
		map[string]any{"driver": "fake-hardware", "deploy_interface": "autodetect"})
}

func TestDeployInterfaces_validation(t *testing.T) {
	t.Parallel()
	disk, tree := map[string]any{"image_source": "http://images/i"}, map[string]any{
		"image_source": "http://images/tree/", "kernel": "k",
		"ramdisk": "r",
	}
	const noSource = "Missing are: ['instance_info.image_source']"
	for _, tt := range []struct {
		how, boot string
		info      map[string]any
		want      string
	}{
		{"autodetect", "ipxe", nil, noSource},
		{"autodetect", "fake", disk, "must be provided in instance_info"},
		{"autodetect", "ipxe", map[string]any{"boot_iso": isoA}, noSource},
		{"anaconda", "ipxe", nil, "Missing are: ['image_source', 'kernel', 'ramdisk']"},
		{"anaconda", "ipxe", disk, ""},
		{"anaconda", "ipxe", tree, ""},
		{"anaconda", "fake", nil, ""},
		{"bootc", "fake", nil, "Invalid image href None."},
		{"bootc", "ipxe", disk, "Invalid image href http://images/i."},
		{"bootc", "ipxe", map[string]any{"image_source": "oci://registry/app:1"}, ""},
		{"custom-agent", "fake", nil, ""},
		{"custom-agent", "ipxe", disk, ""},
		{"noop", "fake", nil, ""},
	} {
		a := newAPI(t, &fakeironic.Server{})
		uuid := a.netbooting("n1", tt.info)
		for field, value := range map[string]any{"deploy_interface": tt.how, "boot_interface": tt.boot} {
			a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/"+uuid, patch("add", "/"+field, value))
		}
		if reason := a.verdict(uuid, "deploy"); !strings.Contains(reason, tt.want) || tt.want == "" && reason != "" {
			t.Errorf("%s, %s, %v: %q, want %q", tt.how, tt.boot, tt.info, reason, tt.want)
		}
	}
}

// The installer is checked only while it is prepared.
func TestDeployInterfaces_incompleteInstaller(t *testing.T) {
	t.Parallel()
	for want, info := range map[string]map[string]any{
		"KeyError: 'ks_template'":  {"image_source": "http://images/i"},
		"Missing are: ['root_gb']": {"image_source": "http://images/i", "kernel": "k", "ramdisk": "r"},
		"":                         {"image_source": "http://images/tree/", "kernel": "k", "ramdisk": "r"},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := newAPI(t, &fakeironic.Server{StepTime: time.Second})
			uuid := a.netbooting("n1", info)
			a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/"+uuid, patch("add", "/deploy_interface", "anaconda"))
			a.provision(uuid, "active")
			time.Sleep(time.Minute)
			state := map[bool]string{true: "active", false: "deploy failed"}[want == ""]
			if text := fmt.Sprint(a.state(uuid, state)["last_error"]); !strings.Contains(text, want) {
				t.Errorf("last_error is %s, want %s", text, want)
			}
		})
	}
}
