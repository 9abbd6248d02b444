package host_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
)

// A plan that cleans says which disks it keeps, and one that gives a disk up says that the next cleaning wipes it.
func TestDecide_keptDisks(t *testing.T) {
	t.Parallel()
	const kept, given, none, root = "Cleaning keeps some disks", "Disks are given up", "No disk to keep", "!Root disk is kept"
	const parts, volumes = "Partitions are not kept", "Hardware change restarts the machine, All RAID volumes are deleted"
	const raid = volumes + ", !RAID would use kept disks"
	const cleaned, late, open = "Cleaning erases data", "!Disks would be kept too late", "Disks to keep are not known yet"
	for _, row := range []struct{ wish, seen, says, detail, cleanings string }{
		{"", "skip_block_devices=serial:A disks=A,B", "", "", "0"},
		{"", "", "", "", "0"},
		{"target_state=available", "disks=A,B", cleaned, "", "1"},
		{
			"target_state=available", "skip_block_devices=serial:B disks=A,B", cleaned + ", " + kept,
			`names: serial = "B". In the last inspection these were /dev/sdb (B). Not kept: /dev/sda (A).`, "1",
		},
		{"target_state=available", "skip_block_devices=volume_name:osd", cleaned + ", " + kept, `names: volume_name = "osd".`, "1"},
		{"target_state=? skip_block_devices=serial:B", "disks=A,B", cleaned + ", " + kept, "Not kept: /dev/sda (A).", "?"},
		{"skip_block_devices=serial:B", "disks=A,B", "", "", "0"},
		{"skip_block_devices=wwn:0x5,volume_name:osd", "", "", "", "0"},
		{"skip_block_devices=name:/dev/sdb", "disks=A,B", parts, `keeps name = "/dev/sdb". Ironic's agent`, "0"},
		{"hardware=soft skip_block_devices=serial:B", "", raid, "makes the software volumes", "1"},
		{"hardware=soft skip_block_devices=volume_name:osd", "", volumes, "only entries with volume_name keep volumes", "1"},
		{"hardware=raid! skip_block_devices=serial:B", "", volumes, "The BMC does not heed skip_block_devices", "1"},
		{"skip_block_devices=serial:C", "disks=A,B", none, `no disk with serial = "C"`, "0"},
		{"skip_block_devices=size:>=_100", "disks=A,B", parts + ", " + none, "write >= before it", "0"},
		{"skip_block_devices=model:<in>_SSD", "disks=A,B", parts, "", "0"},
		{
			"skip_block_devices=model:<in>_SSD target_state=available", "disks=A,B", cleaned + ", " + parts + ", " + kept,
			"Not kept: /dev/sda (A), /dev/sdb (B). Of these, operators and volumes may keep some.", "1",
		},
		{
			"skip_block_devices=", "skip_block_devices=serial:B disks=A,B", given,
			`keep serial = "B" any more. In its last inspection these were /dev/sdb (B). This plan cleans nothing`, "0",
		},
		{"skip_block_devices=wwn:0x1", "skip_block_devices=serial:B disks=A,B", given + ", " + none, "these were /dev/sdb (B)", "0"},
		{
			"skip_block_devices=serial:A target_state=available", "skip_block_devices=serial:A,serial:B disks=A,B",
			cleaned + ", " + given + ", " + kept, "This plan cleans the machine, which wipes them, and raises cleanings", "1",
		},
		{"skip_block_devices=?", "disks=A,B", "", "", "0"},
		{
			"skip_block_devices=?", "skip_block_devices=serial:B disks=A,B", open,
			`If none of them is serial = "B", cleanings wipe its disks: /dev/sdb (B).`, "0",
		},
		{"skip_block_devices=? target_state=available", "disks=A,B", cleaned + ", " + open, "This plan cleans the machine: to see", "1"},
		{"skip_block_devices=? target_state=available", "new", "New host is cleaned, " + open, "This plan cleans the machine: to see", "1"},
		{"skip_block_devices=", "skip_block_devices=serial:B target=available state=cleaning coming", cleaned + ", " + given, "", "1"},
		{"", "skip_block_devices=serial:B target=available state=cleaning coming", "", "", "0"},
		{"skip_block_devices=serial:B", "state=active reserved undeploys", late, "before it changes skip_block_devices", "0"},
		{"skip_block_devices=?", "state=active reserved undeploys", late, "", "0"},
		{"", "skip_block_devices=serial:B state=active reserved undeploys", "", "", "0"},
		{"root_device=serial:A skip_block_devices=serial:A", "", root, "keeps the disk of root_device", "0"},
		{"root_device=name:/dev/sda skip_block_devices=serial:A", "disks=A,B", root, "keeps the disk of root_device", "0"},
		{"root_device=serial:B skip_block_devices=serial:A", "disks=A,B", "", "", "0"},
		{"root_device=serial:A skip_block_devices=serial:A target_state=available", "new", "New host is cleaned, " + root, "", "1"},
	} {
		w, s := tell(t, row.wish, row.seen+" network=redfish-virtual-media")
		p := host.Decide(w, s)
		var says, details []string
		for _, n := range p.Notices {
			if n.Severity == decide.Refusal {
				n.Summary = "!" + n.Summary
			}
			says, details = append(says, n.Summary), append(details, n.Detail)
		}
		if got := strings.Join(says, ", "); got != row.says {
			t.Errorf("%s | %s: says %q, want %q", row.wish, row.seen, got, row.says)
		}
		if !strings.Contains(strings.Join(details, "\n"), row.detail) {
			t.Errorf("%s | %s: %q, want %q", row.wish, row.seen, details, row.detail)
		}
		cleanings := fmt.Sprint(p.Forecast.Cleanings.V)
		if p.Forecast.Cleanings.Unknown {
			cleanings = "?"
		}
		if cleanings != row.cleanings {
			t.Errorf("%s | %s: cleanings %s, want %s", row.wish, row.seen, cleanings, row.cleanings)
		}
	}
}
