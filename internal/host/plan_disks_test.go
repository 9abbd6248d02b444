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
	const cleaned, late = "Cleaning erases data", "!Disks would be kept too late"
	for _, row := range []struct{ wish, seen, says, detail, cleanings string }{
		{"", "skip_block_devices=serial:A disks=A,B", "", "", "0"},
		{"", "", "", "", "0"},
		{"target_state=available", "disks=A,B", cleaned, "", "1"},
		{
			"target_state=available", "skip_block_devices=serial:B disks=A,B", cleaned + ", " + kept,
			`names: serial = "B". Of its last inspection these are /dev/sdb (B). The cleaning may erase the others: /dev/sda (A).`, "1",
		},
		{"target_state=available", "skip_block_devices=volume_name:osd", cleaned + ", " + kept, `names: volume_name = "osd".`, "1"},
		{"target_state=? skip_block_devices=serial:B", "disks=A,B", cleaned + ", " + kept, "may erase the others", "?"},
		{"skip_block_devices=serial:B", "disks=A,B", "", "", "0"},
		{"skip_block_devices=serial:C", "disks=A,B", none, `no disk with serial = "C"`, "0"},
		{"skip_block_devices=size:>=_100", "disks=A,B", "", "", "0"},
		{
			"skip_block_devices=", "skip_block_devices=serial:B disks=A,B", given,
			`keep serial = "B" any more. In its last inspection these were /dev/sdb (B). This plan cleans nothing`, "0",
		},
		{"skip_block_devices=name:/dev/sdb", "skip_block_devices=serial:B disks=A,B", given, "these were none", "0"},
		{
			"skip_block_devices=serial:A target_state=available", "skip_block_devices=serial:A,serial:B disks=A,B",
			cleaned + ", " + given + ", " + kept, "This plan cleans the machine, which wipes them, and raises cleanings", "1",
		},
		{"skip_block_devices=?", "skip_block_devices=serial:B disks=A,B", "", "", "0"},
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
