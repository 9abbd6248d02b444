package disks_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/disks"
)

func TestSplitBy(t *testing.T) {
	t.Parallel()
	spins, not := true, false
	all := []ironic.Disk{
		{Name: "/dev/sda", Serial: "A", Model: "SSD 1", Size: 100 << 30, Rotational: &not},
		{Name: "/dev/sdb", Serial: "B", WWN: "0x2", Size: 4000 << 30, Rotational: &spins},
	}
	for name, row := range map[string]struct {
		hints          any
		kept, useless  string
		open           bool
		others, number int
	}{
		"one": {[]any{map[string]any{"serial": "b"}}, "/dev/sdb (B)", "", false, 1, 1},
		"all values": {
			[]any{map[string]any{"serial": "A", "name": "/dev/sdb"}}, "none", `name = "/dev/sdb", serial = "A"`, false, 2, 1,
		},
		"a number":    {[]any{map[string]any{"size": 4000.0}}, "/dev/sdb (B)", "", false, 1, 1},
		"rotational":  {[]any{map[string]any{"rotational": true}}, "/dev/sdb (B)", "", false, 1, 1},
		"a blank":     {[]any{map[string]any{"model": "SSD 1"}}, "/dev/sda (A)", "", false, 1, 1},
		"at least":    {[]any{map[string]any{"size": ">= 101"}}, "/dev/sdb (B)", "", false, 1, 1},
		"not exactly": {[]any{map[string]any{"size": "99"}}, "none", `size = "99"`, false, 2, 1},
		"a range":     {[]any{map[string]any{"size": "<range-in> [ 1 200 ]"}}, "none", "", true, 2, 1},
		"a part":      {[]any{map[string]any{"model": "<in> SSD"}}, "none", "", true, 2, 1},
		"an operator": {[]any{map[string]any{"serial": "s!= A"}}, "none", "", true, 2, 1},
		"a volume":    {[]any{map[string]any{"volume_name": "osd"}}, "none", "", true, 2, 1},
		"a text":      {`[{"serial":"A"}]`, "none", "", false, 2, 0},
		"several, one bad": {
			[]any{map[string]any{"wwn": "0x2"}, map[string]any{"serial": "C"}},
			"/dev/sdb (B)",
			`serial = "C"`, false, 1, 2,
		},
	} {
		hints := disks.HintsOf(map[string]any{disks.KeySkip: row.hints})
		s := disks.SplitBy(hints, all)
		if len(hints) != row.number || disks.Labels(s.Kept) != row.kept || disks.Names(s.Useless) != row.useless || s.Open != row.open ||
			len(s.Others) != row.others {
			t.Errorf("%s: %d hints, %+v", name, len(hints), s)
		}
	}
}

// Ironic's agent compares sizes to the byte: 894 GiB is none of a disk of 894.25 GiB.
func TestHint_sizesAreExact(t *testing.T) {
	t.Parallel()
	const size = 960197124096 // 894.25 GiB
	for hint, want := range map[string]bool{
		"894": false, "== 894": false, "895": false, ">= 894": true, "> 894": true, "= 894": true, ">=895": false, "<= 894": false,
		"<895": true, "!= 894": true,
	} {
		if fits, known := (disks.Hint{"size": hint}).Fits(ironic.Disk{Size: size}); fits != want || !known {
			t.Errorf("%q fits: %t, known: %t", hint, fits, known)
		}
	}
}

// A message names some disks of many.
func TestLabels_areFew(t *testing.T) {
	t.Parallel()
	if got := disks.Labels(make([]ironic.Disk, 60)); !strings.HasSuffix(got, ", 52 more") {
		t.Errorf("got %q", got)
	}
}

// The agent compares partitions, too. Of a SCSI disk with a wwn, they have another serial number.
func TestWithoutPartitions(t *testing.T) {
	t.Parallel()
	all := []ironic.Disk{{Name: "/dev/sda", Serial: "A", WWN: "0x5000c50015ea71ac"}, {Name: "/dev/nvme0n1", Serial: "N", WWN: "eui.1"}}
	for _, tt := range []struct {
		hint  disks.Hint
		loses bool
	}{
		{disks.Hint{"wwn": "0x5000c50015ea71ac"}, false},
		{disks.Hint{"volume_name": "osd"}, false},
		{disks.Hint{"serial": "N"}, false},
		{disks.Hint{"serial": "A"}, true},
		{disks.Hint{"serial": "A", "wwn": "0x5000c50015ea71ac"}, true},
		{disks.Hint{"size": ">= 1"}, true},
	} {
		if loses := len(disks.WithoutPartitions([]disks.Hint{tt.hint}, all)) > 0; loses != tt.loses {
			t.Errorf("%s: the partitions are lost: %t", tt.hint, loses)
		}
	}
}

// A plan refuses the hints that Ironic's parser refuses, and no others.
func TestHint_faultsAreThoseOfIronicsParser(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("testdata/hints.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		verdict, text, _ := strings.Cut(line, " ")
		var hint disks.Hint
		if verdict == "#" {
			continue
		}
		if err := json.Unmarshal([]byte(text), &hint); err != nil {
			t.Fatal(line, err)
		}
		if fault := hint.Fault(); (fault == "") != (verdict == "accepted") {
			t.Errorf("%s: %q", strings.TrimSpace(line), fault)
		}
	}
}

// The names and units of other tools are told in Ironic's words.
func TestHint_faultsSayWhatToWrite(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ key, text, want string }{
		{"deviceName", "/dev/sda", "write name"},
		{"minSizeGigabytes", "500", `write size = ">= 500"`},
		{"serialNumber", "A", "write serial"},
		{"wwnWithExtension", "0x1", "write wwn_with_extension"},
		{"size", "500GB", `write "500"`},
		{"size", ">=500 GiB", `write ">= 500"`},
		{"size", "<range-in> [ 1 200 ]", `such as ">= 400"`},
		{"rotational", "ssd", `"false" for others`},
	} {
		if fault := (disks.Hint{tt.key: tt.text}).Fault(); !strings.Contains(fault, tt.want) {
			t.Errorf("%s = %q: %q, want %q", tt.key, tt.text, fault, tt.want)
		}
	}
}
