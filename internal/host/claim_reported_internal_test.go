package host

import (
	"fmt"
	"slices"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/identity"
)

func TestReportedConflicts(t *testing.T) {
	t.Parallel()
	const (
		bmc       = "10.0.0.5"
		mac1      = "52:54:00:00:00:01"
		mac2      = "52:54:00:00:00:02"
		otherCard = "52:54:00:00:00:99"
	)
	discovered := func(id string, ports ...string) *entry {
		return &entry{Identity: identity.Identity{Addresses: ports}, node: &ironic.Node{UUID: id}}
	}
	says := func(address string, macs ...string) *report { return &report{BMCs: []string{address}, addresses: macs} }
	for _, tt := range []struct {
		name    string
		macs    []string // of the wanted node
		found   []string // nodes in conflict already
		entries []*entry
		reports map[string]*report
		want    []string
	}{
		{name: "no machine reports it", entries: []*entry{discovered("a", mac1)}, reports: map[string]*report{"a": says("10.0.0.6", mac1)}},
		{name: "no inventory", entries: []*entry{discovered("a", mac1)}},
		{
			name: "host without ports", entries: []*entry{discovered("a", mac1)}, reports: map[string]*report{"a": says(bmc, mac1)},
			want: []string{"a"},
		},
		{
			name: "a card without a port", macs: []string{mac2}, entries: []*entry{discovered("a", mac1)},
			reports: map[string]*report{"a": says(bmc, mac1, mac2)}, want: []string{"a"},
		},
		{
			name: "other cards", macs: []string{otherCard}, entries: []*entry{discovered("a", mac1)},
			reports: map[string]*report{"a": says(bmc, mac1)}, want: []string{"a, doubtful"},
		},
		{
			name: "in conflict by name or MAC address", macs: []string{mac1}, found: []string{"a"},
			entries: []*entry{discovered("b", mac2), discovered("a", mac1)}, reports: map[string]*report{
				"a": says(bmc, mac1),
				"b": says(bmc, mac2),
			},
		},
		{
			name: "the name of another machine", found: []string{"a"},
			entries: []*entry{discovered("b", mac2), discovered("a", mac1)}, reports: map[string]*report{
				"a": says("10.0.0.6", mac1),
				"b": says(bmc, mac2),
			}, want: []string{"b"},
		},
		{
			name: "a second node of the machine", entries: []*entry{discovered("ghost"), discovered("a", mac1)},
			reports: map[string]*report{"a": says(bmc, mac1), "ghost": says(bmc, mac1)}, want: []string{"a"},
		},
		{
			name: "two machines", entries: []*entry{discovered("a", mac1), discovered("b", mac2)},
			reports: map[string]*report{"a": says(bmc, mac1), "b": says(bmc, mac2)}, want: []string{"a", "b"},
		},
	} {
		wanted := entryOf(Candidate{UUID: "w", DriverInfo: map[string]any{"redfish_address": "https://" + bmc}, Addresses: tt.macs})
		var found []conflict
		for _, id := range tt.found {
			found = append(found, conflict{entry: discovered(id), what: identity.Name})
		}
		var got []string
		for _, x := range reportedConflicts(wanted, found, tt.entries, tt.reports) {
			text := x.node.UUID
			if x.doubtful {
				text += ", doubtful"
			}
			got = append(got, text)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.name, fmt.Sprint(got), fmt.Sprint(tt.want))
		}
	}
}
