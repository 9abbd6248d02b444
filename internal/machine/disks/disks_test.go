package disks_test

import (
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
		"a blank":     {[]any{map[string]any{"model": "SSD 1"}}, "/dev/sda (A)", "", true, 1, 1},
		"an operator": {[]any{map[string]any{"size": ">= 100"}}, "none", "", true, 2, 1},
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
