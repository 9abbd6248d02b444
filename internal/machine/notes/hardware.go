package notes

import (
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// KeyHardware is the key of the note which says whether the machine has the hardware that its metal_host expects. Allocations compare it.
const KeyHardware = "terraform_metal_hardware"

// Hardware is what a comparison of a machine with expect_hardware has found.
type Hardware struct {
	Inspected   time.Time `json:"inspected,omitzero"` // when the inspection ended whose inventory was compared
	Serial      string    `json:"serial,omitempty"`   // of the machine
	Differences []string  `json:"differences"`        // clauses; none: it is as expected
}

// NoteHardware adds to the patch of a node the note of a comparison; nil: none, as if nothing were expected.
func NoteHardware(patch *ironic.Patch, n *ironic.Node, now *Hardware) {
	has, exists := n.Extra[KeyHardware]
	switch {
	case now != nil && !ironic.SameJSON(has, now):
		patch.Set("/extra/"+KeyHardware, now)
	case now == nil && exists:
		patch.Remove("/extra/" + KeyHardware)
	}
}

// HardwareOf returns the last comparison of a node; nil if there was none.
func HardwareOf(n *ironic.Node) *Hardware { return Read[Hardware](n.Extra, KeyHardware) }

func sayHardware(n *ironic.Node, _ time.Time) (w Words) {
	if h := HardwareOf(n); h != nil && len(h.Differences) > 0 {
		w.Told = []Note{{At: h.Inspected, Text: "hardware is not as expected: " + strings.Join(h.Differences, "; "), Failed: true}}
	}
	return w
}
