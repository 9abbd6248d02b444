package host_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// startStepsSite starts an Ironic that takes clean steps at BMCs.
func startStepsSite(t *testing.T) *site.Site {
	t.Helper()
	s := site.StartWithBMCs(t, nil)
	if s.Fake != nil {
		t.Skip("the fake Ironic takes no steps at a BMC")
	}
	return s
}

// agentNode adds a manageable node whose machine runs a simulated ramdisk, and returns its UUID.
func agentNode(t *testing.T, s *site.Site, config fakebmc.Config, fields map[string]any) (*bmc.Controller, string) {
	t.Helper()
	mac, iso := s.MAC(1), bmc.ServeISO(t)
	config.MACs, config.Machine = []string{mac}, bmc.NewAgent(t, s, mac)
	b := bmc.Start(t, s, "m", config)
	node := b.Node("ipxe")
	maps.Copy(node, fields)
	info := site.Part[map[string]any](t, node, "driver_info")
	info["deploy_kernel"], info["deploy_ramdisk"] = iso.URL("kernel"), iso.URL("ramdisk")
	id := site.AddNode(t, s, "n", node)
	s.Must(http.MethodPost, "ports", map[string]any{"node_uuid": id, "address": mac})
	s.Verb(id, "manage", "manageable")
	t.Cleanup(func() {
		if !t.Failed() {
			s.Verb(id, "provide", "available")
		}
	})
	return b, id
}

// clean runs clean steps on a manageable node, and returns the node afterwards.
func clean(t *testing.T, s *site.Site, node string, steps ...map[string]any) map[string]any {
	t.Helper()
	s.Must(http.MethodPut, "nodes/"+node+"/states/provision", map[string]any{"target": "clean", "clean_steps": steps})
	var after map[string]any
	for range 3 { // a firmware update takes more than a minute
		deadline := time.Now().Add(50 * time.Second)
		site.Until(t, "the clean steps to end", func() bool {
			after = s.Node(node)
			return after["reservation"] == nil && slices.Contains([]any{"manageable", "clean failed"}, after["provision_state"]) ||
				time.Now().After(deadline)
		})
	}
	if after["provision_state"] != "manageable" {
		t.Fatalf("the node is %v: %v", after["provision_state"], after["last_error"])
	}
	return after
}

// step is a clean step.
func step(part, name string, args map[string]any) map[string]any {
	return map[string]any{"interface": part, "step": name, "args": args}
}

// Ironic resets and changes BIOS settings through the BMC, and shows them with what the registry says about them.
func TestAccBMC_stepsChangeTheBIOS(t *testing.T) {
	t.Parallel()
	s := startStepsSite(t)
	b, id := agentNode(t, s, fakebmc.Config{}, map[string]any{"bios_interface": "redfish"})
	settings := []any{map[string]any{"name": "ProcTurboMode", "value": "Disabled"}}
	clean(t, s, id, step("bios", "factory_reset", map[string]any{}),
		step("bios", "apply_configuration", map[string]any{"settings": settings}))
	shown := map[string]string{}
	for _, item := range site.Part[[]any](t, s.Must(http.MethodGet, "nodes/"+id+"/bios?detail=true", nil), "bios") {
		setting, _ := item.(map[string]any)
		shown[site.Text(setting["name"])] = fmt.Sprintf("%v %v %v %v %v", setting["value"], setting["attribute_type"],
			setting["allowable_values"], setting["upper_bound"], setting["read_only"])
	}
	for name, want := range map[string]string{
		"ProcTurboMode":  "Disabled Enumeration [Enabled Disabled] <nil> false",
		"QuietBootDelay": "5 Integer [] 60 false",
		"BoardRevision":  "A2 String [] <nil> true",
	} {
		if shown[name] != want {
			t.Errorf("%s is %q, want %q", name, shown[name], want)
		}
	}
	if n := b.Count(fakebmc.Configured); n != 2 {
		t.Errorf("BIOS settings were applied %d times, want 2: %v", n, b.History())
	}
}

// Ironic creates and deletes RAID volumes, at once, or by a restart for each controller that needs one.
func TestAccBMC_stepsChangeTheRAID(t *testing.T) {
	t.Parallel()
	for name, quirks := range map[string][]fakebmc.Quirk{"at once": nil, "on reset": {fakebmc.VolumesOnReset}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startStepsSite(t)
			b, id := agentNode(t, s, fakebmc.Config{Quirks: quirks, Drives: []int64{480e9, 480e9, 960e9, 960e9}},
				map[string]any{"raid_interface": "redfish"})
			s.Must(http.MethodPut, "nodes/"+id+"/states/raid", map[string]any{"logical_disks": []any{
				map[string]any{"size_gb": 100, "raid_level": "1", "is_root_volume": true},
				map[string]any{"size_gb": "MAX", "raid_level": "0", "controller": "RAID.1", "physical_disks": []any{"2", "3"}},
			}})
			wantVolumes(t, clean(t, s, id, step("raid", "create_configuration", map[string]any{})), "1 100", "0 1788")
			wantVolumes(t, clean(t, s, id, step("raid", "delete_configuration", map[string]any{})))
			if n := b.Count(fakebmc.Configured); n != 4 {
				t.Errorf("volumes were changed %d times, want 4: %v", n, b.History())
			}
		})
	}
}

// wantVolumes fails a test unless a node's raid_config has these levels and sizes.
func wantVolumes(t *testing.T, node map[string]any, want ...string) {
	t.Helper()
	var got []string
	for _, item := range site.Part[[]any](t, site.Part[map[string]any](t, node, "raid_config"), "logical_disks") {
		disk, _ := item.(map[string]any)
		got = append(got, fmt.Sprint(disk["raid_level"], " ", disk["size_gb"]))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the volumes are %q, want %q", got, want)
	}
}

// Ironic updates firmware through the BMC, and shows the versions. The BMC restarts with its new firmware.
func TestAccBMC_stepsUpdateFirmware(t *testing.T) {
	t.Parallel()
	s := startStepsSite(t)
	const version = "1.86" // of the API
	b, id := agentNode(t, s, fakebmc.Config{UpdateTime: time.Second, RestartTime: 3 * time.Second}, nil)
	if status, _ := s.CallAt(version, http.MethodPatch, "nodes/"+id,
		[]any{map[string]any{"op": "replace", "path": "/firmware_interface", "value": "redfish"}}); status == http.StatusNotAcceptable {
		t.Skip("this Ironic does not update firmware")
	}
	var settings []any
	for _, component := range []string{"bmc", "bios"} {
		settings = append(settings, map[string]any{"component": component, "url": "http://127.0.0.1/" + component + "-2.0.bin"})
	}
	clean(t, s, id, step("firmware", "update", map[string]any{"settings": settings}))
	_, answer := s.CallAt(version, http.MethodGet, "nodes/"+id+"/firmware", nil)
	shown := map[string]any{}
	for _, item := range site.Part[[]any](t, answer, "firmware") {
		component, _ := item.(map[string]any)
		shown[site.Text(component["component"])] = component["current_version"]
	}
	if shown["bmc"] != "2.0" || shown["bios"] != "2.0" {
		t.Errorf("the versions are %v; %v", shown, b.History())
	}
}
