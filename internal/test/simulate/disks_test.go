package simulate_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

var diskSeeds = seedsFlag("disks", "1-20", "which lives of a machine with a kept disk TestSimulate_keptDisksKeepTheirBytes lives")

// A disk that the configuration keeps is never written, whatever becomes of the machine and of its record: it is cleaned, deployed,
// rebuilt, undeployed, inspected and serviced, runs are killed, and another client removes the list or deletes the idle node.
func TestSimulate_keptDisksKeepTheirBytes(t *testing.T) {
	t.Parallel()
	var others atomic.Int64 // how often the other disk was written
	var all int64
	t.Cleanup(func() {
		if others.Load() < 2*all {
			t.Errorf("in all lives, the disk that is not kept was written %d times", others.Load())
		}
	})
	for seed := range seedsOf(t, diskSeeds) {
		all++
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) { liveWithDisks(t, seed, &others) })
		})
	}
}

const keptSerial = "DATA"

// keeping lets the host keep its second disk.
func keeping(config configuration) configuration {
	return with(config, "metal_host.a", "skip_block_devices", []any{object{"serial": keptSerial}})
}

// keptChoices are what the user may want of the machine.
func keptChoices(n int) []configuration {
	version := fmt.Sprint("v", n)
	idle := one("metal_host.a", installed("v1")["metal_host.a"])
	serviced := with(installed(version), "metal_host.a", "bios_settings", object{"AssetTag": version})
	return []configuration{
		keeping(idle), keeping(installed(version)), keeping(replaced(version)),
		keeping(idle.clone().more("metal_host.a", object{"inspect_triggers": object{"n": version}})),
		keeping(with(serviced, "metal_host.a", "hardware_changes", object{"on_active": "service"})),
		keeping(idle.clone().more("metal_host.a", object{"bios_settings": object{"AssetTag": version}})),
		keeping(installed(version).more("metal_host.a", object{"replaced": object{"part": "machine", "on": version}})),
	}
}

func liveWithDisks(t *testing.T, seed uint64, others *atomic.Int64) {
	t.Helper()
	s := randomSite(seed)
	defer s.check(t, fmt.Sprintf("seed %d", seed))
	s.secrets, s.fake.StepTime = []string{secret}, time.Second
	s.fake.Disks = func(fakeironic.Node) []*fakeironic.Disk {
		root, data := fakeironic.SampleDisk("/dev/sda", "ROOT"), fakeironic.SampleDisk("/dev/sdb", keptSerial)
		data["size"] = 4.0 * (1 << 30) // without hints, the agent deploys on the smallest disk
		return []*fakeironic.Disk{{Facts: root, Content: "old"}, {Facts: data, Content: "data", Partition: "data"}}
	}
	s.fake.Writes = func(n fakeironic.Node, serial, what string) {
		if others.Add(1); serial == keptSerial {
			s.broken("the kept disk of node %s was %s in state %s", n.Name, what, n.ProvisionState)
		}
	}
	w := s.workspace("w", nil)
	last := keptChoices(0)[0]
	w.apply(t, last, death{})
	for n := range 4 + s.below(4) {
		s.spoilList()
		choices := keptChoices(n)
		next := choices[s.below(len(choices))]
		d := trouble{}
		if s.below(3) == 0 {
			d.kill = 1 + s.below(25)
		}
		s.tell("the user wants: %v", next)
		if end := w.applyIn(t, next, d); end.plan.failed || end.failed {
			s.tell("the user keeps the disk first")
			w.applyIn(t, last, trouble{})
		}
		if end := w.applyIn(t, next, trouble{}); !end.plan.failed && !end.failed {
			last = next
		}
		if len(s.faults) > 0 {
			return
		}
	}
}

// spoilList lets another client remove the list of kept disks, or delete an idle node.
func (s *site) spoilList() {
	for _, n := range s.fake.Nodes() {
		switch s.below(4) {
		case 0:
			s.tell("another client removes the list of %s in state %s", n.Name, n.ProvisionState)
			s.fake.Set(n.UUID, "properties", map[string]any{"cpu_arch": "x86_64"})
		case 1:
			if n.ProvisionState == "available" && n.InstanceUUID == "" {
				s.tell("another client deletes %s", n.Name)
				_, _, _ = s.send("DELETE", "nodes/"+n.UUID, nil)
			}
		}
	}
}
