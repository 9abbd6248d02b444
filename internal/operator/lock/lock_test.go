package lock_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/hardware"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/lock"
)

// machineOf returns a machine of a rack.
func machineOf(n int, change func(m *hardware.Model)) lock.Machine {
	model := hardware.Model{
		Manufacturer: "Example Systems", Product: "Example R750", CPUArch: "x86_64", CPUs: 80, MemoryMB: 524288,
		Disks: []hardware.Disks{{Count: 2, SizeGB: 480, Type: "ssd"}, {Count: 4, SizeGB: 1600, Type: "nvme"}},
		NICs:  []hardware.NICs{{Count: 2, SpeedMbps: 25000}}, GPUs: []hardware.GPUs{},
		Firmware: map[string]string{"bios": "1.2", "bmc": "<7.0>"},
	}
	if change != nil {
		change(&model)
	}
	return lock.Machine{
		Machine: hardware.Machine{Model: model, Serial: fmt.Sprintf("S%d", n), Inspected: true}, NodeID: fmt.Sprintf("id-%d", n),
		NodeName: fmt.Sprintf("rack1-%02d", n),
	}
}

const locked = `{
  "Example R750": {
    "manufacturer": "Example Systems",
    "product": "Example R750",
    "cpu_arch": "x86_64",
    "cpus": 80,
    "memory_mb": 524288,
    "disks": [
      {"count": 2, "size_gb": 480, "type": "ssd"},
      {"count": 4, "size_gb": 1600, "type": "nvme"}
    ],
    "nics": [
      {"count": 2, "speed_mbps": 25000}
    ],
    "gpus": [],
    "firmware": {
      "bios": "1.2",
      "bmc": "<7.0>"
    }
  }
}
`

// encoded returns the text of a file.
func encoded(t *testing.T, file lock.File) string {
	t.Helper()
	text, err := file.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A file has one line a fact, in one order, and is read as it was written.
func TestFile_oneLineAFact(t *testing.T) {
	t.Parallel()
	file, differ := lock.File(nil).With([]lock.Machine{machineOf(1, nil), machineOf(2, nil)})
	if text := encoded(t, file); text != locked || len(differ) > 0 {
		t.Fatalf("%s\n%v", text, differ)
	}
	again, err := lock.Parse([]byte(locked))
	if err != nil || encoded(t, again) != locked {
		t.Errorf("%v:\n%s", err, encoded(t, again))
	}
	if _, err := lock.Parse([]byte(`{"R1": {"cpu": 1}}`)); err == nil || !strings.Contains(err.Error(), `model R1: unknown key "cpu"`) {
		t.Errorf("a misspelt key: %v", err)
	}
}

// What differs among the machines of a model is left out, and told with the machines; the others stay as they are written.
func TestWith_leavesOutWhatDiffers(t *testing.T) {
	t.Parallel()
	before, err := lock.Parse([]byte(`{"Example R650": {"cpus": 64}, "Example R750": {"memory_mb": 520000, "cpus": 160}}`))
	if err != nil {
		t.Fatal(err)
	}
	var machines []lock.Machine
	for n := range 6 {
		machines = append(machines, machineOf(n, func(m *hardware.Model) {
			m.Firmware["bios"] = "1.2"
			if n == 3 {
				m.Firmware["bios"] = "1.1"
				m.NICs[0].SpeedMbps = 10000
			}
			if n == 4 {
				m.NICs, m.CPUs = nil, 0
			}
		}))
	}
	machines = append(machines, lock.Machine{NodeID: "id-9"})
	file, differ := before.With(machines)
	model := file["Example R750"]
	if model.MemoryMB != 520000 || model.CPUs != 80 || model.Firmware["bios"] != "" || model.Firmware["bmc"] != "<7.0>" ||
		fmt.Sprint(model.NICs) != "[{2 0}]" || file["Example R650"].CPUs != 64 {
		t.Errorf("%s", encoded(t, file))
	}
	want := `Example R750: firmware.bios differs, and is left out: "1.2" (5 machines), "1.1" (rack1-03); ` +
		`Example R750: nics differs, and is left out: "2 network cards of 25000 Mbit/s" (4 machines), ` +
		`"2 network cards of 10000 Mbit/s" (rack1-03)`
	var texts []string
	for _, one := range differ {
		texts = append(texts, one.String())
	}
	if got := strings.Join(texts, "; "); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if unknown := lock.Unknown(machines); len(unknown) != 1 || !strings.HasPrefix(unknown[0], "id-9: Ironic has no inventory") {
		t.Errorf("unknown: %q", unknown)
	}
	for _, one := range file.Check(machines[:6]) {
		if len(one.Differences) > 0 {
			t.Errorf("a machine differs from what all have in common: %s", one)
		}
	}
}

// A check names each machine that differs, and what differs.
func TestCheck(t *testing.T) {
	t.Parallel()
	file, err := lock.Parse([]byte(locked))
	if err != nil {
		t.Fatal(err)
	}
	all := file.Check([]lock.Machine{
		machineOf(1, nil), machineOf(2, func(m *hardware.Model) { m.MemoryMB, m.Disks[1].Count = 458752, 3 }),
		machineOf(3, func(m *hardware.Model) { m.Product = "Example R650" }),
		{NodeID: "id-4"},
		{NodeID: "id-5", Machine: hardware.Machine{Inspected: true}},
	})
	var texts []string
	for _, one := range all {
		texts = append(texts, one.String())
	}
	want := []string{
		"", "rack1-02 (Example R750): 448 of 512 GiB of memory: a DIMM is missing; 3 of 4 disks of 1600 GB (nvme): 1 missing",
		`rack1-03 (Example R650): the file has no model "Example R650"`, "id-4: Ironic has no inventory of it: inspect it",
		"id-5: its inventory names no product",
	}
	if got := strings.Join(texts, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("%s", got)
	}
}
