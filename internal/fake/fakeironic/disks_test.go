package fakeironic_test

import (
	"net/http"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// twoDisks are a large disk, and a small one with data in a partition.
func twoDisks(fakeironic.Node) []*fakeironic.Disk {
	root, data := fakeironic.SampleDisk("/dev/sda", "ROOT"), fakeironic.SampleDisk("/dev/sdb", "DATA")
	data["size"] = 400.0 * (1 << 30)
	return []*fakeironic.Disk{{Facts: root, Content: "old"}, {Facts: data, Content: "data", Partition: "data"}}
}

// Cleaning, deploying and RAID do to disks what the agent does: it keeps what skip_block_devices names, but neither from software RAID nor,
// in the step for metadata, partitions that the hint does not name.
func TestDisks_areKeptAsByTheAgent(t *testing.T) {
	t.Parallel()
	serial, raid := []any{map[string]any{"serial": "DATA"}}, []map[string]any{step("raid", "create_configuration")}
	const image = "image http://images/v1"
	for name, tt := range map[string]struct {
		keep            any
		steps           []map[string]any // of a manual cleaning; nil: the verbs
		verbs           []string
		content, within string // of the disk, and of its partition
	}{
		"cleaned":              {nil, nil, []string{"provide"}, "", ""},
		"kept":                 {serial, nil, []string{"provide"}, "data", "data"},
		"kept by its size":     {[]any{map[string]any{"size": "400"}}, nil, []string{"provide"}, "data", ""},
		"a text":               {`[{"serial": "DATA"}]`, nil, []string{"provide"}, "", ""},
		"deployed on":          {nil, nil, []string{"provide", "active"}, image, image},
		"never deployed on":    {serial, nil, []string{"provide", "active"}, "data", "data"},
		"after a rebuild":      {serial, nil, []string{"provide", "active", "rebuild"}, "data", "data"},
		"after an undeploy":    {serial, nil, []string{"provide", "active", "deleted"}, "data", "data"},
		"software RAID":        {serial, raid, nil, "RAID", ""},
		"a cleaning by hand":   {serial, []map[string]any{step("deploy", "erase_devices")}, nil, "data", "data"},
		"another one, no list": {nil, []map[string]any{step("deploy", "erase_devices_metadata")}, nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAPI(t, &fakeironic.Server{Disks: twoDisks})
			uuid := a.node("n", map[string]any{
				"driver": "redfish", "boot_interface": "redfish-virtual-media", "raid_interface": "agent",
				"driver_info":   map[string]any{"redfish_address": "https://bmc"},
				"properties":    map[string]any{"skip_block_devices": tt.keep},
				"instance_info": map[string]any{"image_source": "http://images/v1", "image_checksum": "a1"},
			})
			a.provision(uuid, "manage")
			if tt.steps != nil {
				a.must(http.StatusNoContent, http.MethodPut, "/v1/nodes/"+uuid+"/states/raid", map[string]any{
					"logical_disks": []any{map[string]any{"size_gb": "MAX", "raid_level": "1", "controller": "software"}},
				})
				a.clean(uuid, "manageable", tt.steps...)
			}
			for _, verb := range tt.verbs {
				a.provision(uuid, verb)
			}
			for _, d := range a.fake.DisksOn(uuid) {
				if d.Serial() == "DATA" && (d.Content != tt.content || d.Partition != tt.within) {
					t.Errorf("the disk has %q, its partition %q", d.Content, d.Partition)
				}
			}
		})
	}
}
