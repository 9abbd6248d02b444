// Package cabling proves the cables of a host: what its network cards have heard from their switches in an inspection, against the
// neighbours that its ports expect. A note on the node has these for allocations.
package cabling

import (
	"context"
	"encoding/json"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// End is the end of a cable at a switch.
type End struct {
	Switch string `json:"switch"` // its name, chassis ID or management address
	Port   string `json:"port"`
}

// String returns both, such as: tor-12a Ethernet1/17.
func (e End) String() string { return e.Switch + " " + e.Port }

// Hearing is what the network cards of a machine have heard from their switches in an inspection.
type Hearing struct {
	At    time.Time       `json:"at"`    // when the inspection ended
	Cards map[string]Card `json:"cards"` // by MAC address
}

// Card is what a network card has heard.
type Card struct {
	ironic.Neighbour
	Listened bool `json:"listened"`
	NoLink   bool `json:"no_link,omitempty"`
}

// Verdict says what an inspection proves of a cable.
type Verdict string

// The verdicts.
const (
	Right    Verdict = "right"
	Wrong    Verdict = "wrong"     // the card has heard another port
	Silent   Verdict = "silent"    // it has heard none
	NoCard   Verdict = "no card"   // the machine has no such card
	Unproved Verdict = "not known" // the ramdisk was not told to listen, or there was no inspection
)

// HearingOf returns what an inventory says of the neighbours. An inspection that has left no inventory has heard nothing, and proves
// nothing. Of devices with one MAC address, such as a card and a VLAN on it, the one that has heard most counts.
func HearingOf(inventory *ironic.Inventory, at time.Time) *Hearing {
	h := &Hearing{At: at, Cards: map[string]Card{}}
	if inventory == nil {
		return h
	}
	for _, card := range inventory.Interfaces {
		neighbour, listened := inventory.Neighbours[card.Name]
		mac := card.MAC
		if had := h.Cards[mac]; had.Neighbour != (ironic.Neighbour{}) || had.Listened && !listened {
			continue
		}
		h.Cards[mac] = Card{Neighbour: neighbour, Listened: listened, NoLink: card.HasCarrier != nil && !*card.HasCarrier}
	}
	return h
}

// Prove says what an inspection proves of the cable of a network card.
func (h *Hearing) Prove(mac string, want End) Verdict {
	card, exists := h.Cards[mac]
	switch {
	case len(h.Cards) == 0:
		return Unproved
	case !exists:
		return NoCard
	case !card.Listened:
		return Unproved
	case card.Neighbour == ironic.Neighbour{}:
		return Silent
	case Meets(card.Neighbour, want):
		return Right
	}
	return Wrong
}

// Proves reports whether all cables of a machine are as expected, and whether that is known.
func (h *Hearing) Proves(expected map[string]End) (right, known bool) {
	right, known = true, true
	for _, mac := range slices.Sorted(maps.Keys(expected)) {
		switch h.Prove(mac, expected[mac]) {
		case Wrong, Silent, NoCard:
			return false, true
		case Unproved:
			right, known = false, false
		case Right:
		}
	}
	return right, known
}

// Meets reports whether a neighbour is the port of a switch that is expected.
func Meets(heard ironic.Neighbour, want End) bool {
	if !isSwitch(heard, want.Switch) {
		return false
	}
	port := normalPort(want.Port)
	if normalPort(heard.PortID) == port {
		return true
	}
	return !heard.PortIsName && heard.PortDescription != "" && normalPort(heard.PortDescription) == port
}

// isSwitch reports whether a neighbour is the switch with a name, chassis ID or management address.
func isSwitch(heard ironic.Neighbour, name string) bool {
	if mac := bareMAC(name); mac != "" {
		return mac == bareMAC(heard.SwitchID)
	}
	if address, err := netip.ParseAddr(name); err == nil {
		other, bad := netip.ParseAddr(heard.SwitchID)
		return bad == nil && other == address
	}
	return sameHost(name, heard.SwitchName) || strings.EqualFold(strings.TrimSpace(name), strings.TrimSpace(heard.SwitchID))
}

// IsName reports whether a text is the name of a switch, and neither a MAC address nor an IP address.
func IsName(text string) bool {
	_, err := netip.ParseAddr(text)
	return bareMAC(text) == "" && err != nil
}

// sameHost compares names of switches. One without a domain is that of any domain.
func sameHost(a, b string) bool {
	a, b = strings.ToLower(strings.TrimSpace(a)), strings.ToLower(strings.TrimSpace(b))
	first, domain, _ := strings.Cut(a, ".")
	other, otherDomain, _ := strings.Cut(b, ".")
	return a != "" && first == other && (domain == "" || otherDomain == "" || domain == otherDomain)
}

var hexMAC = regexp.MustCompile(`^[0-9a-f]{12}$`)

// bareMAC returns the digits of a MAC address; "" if the text is none.
func bareMAC(text string) string {
	bare := strings.ToLower(strings.NewReplacer(":", "", "-", "", ".", "").Replace(strings.TrimSpace(text)))
	if !hexMAC.MatchString(bare) {
		return ""
	}
	return bare
}

// kindOfPort is the beginning of a port's name that says its kind, if a digit follows.
var kindOfPort = regexp.MustCompile(`^([a-z]+(?:-channel)?) ?([0-9].*)$`)

// kinds are the kinds of ports by their abbreviations. Kinds of different speed stay different (reference/ironic.md#lldp).
var kinds = map[string]string{
	"e": "ethernet", "et": "ethernet", "eth": "ethernet", "ethernet": "ethernet",
	"fa": "fastethernet", "fastethernet": "fastethernet",
	"gi": "gigabitethernet", "gig": "gigabitethernet", "gigabitethernet": "gigabitethernet",
	"te": "tengigabitethernet", "ten": "tengigabitethernet", "tengige": "tengigabitethernet", "tengigabitethernet": "tengigabitethernet",
	"twe": "twentyfivegige", "twentyfivegige": "twentyfivegige", "twentyfivegigabitethernet": "twentyfivegige",
	"fo": "fortygigabitethernet", "fortygige": "fortygigabitethernet", "fortygigabitethernet": "fortygigabitethernet",
	"hu": "hundredgige", "hundredgige": "hundredgige", "hundredgigabitethernet": "hundredgige",
	"po": "port-channel", "port-channel": "port-channel",
}

// normalPort returns the name of a port in one form, such as ethernet1/17 for Eth1/17. Other names, such as swp1 and ge-0/0/1, stay as they
// are, in lower case; a MAC address loses its separators.
func normalPort(name string) string {
	name = strings.ToLower(strings.Trim(name, " \t\x00"))
	if mac := bareMAC(name); mac != "" {
		return mac
	}
	if parts := kindOfPort.FindStringSubmatch(name); parts != nil && kinds[parts[1]] != "" {
		return kinds[parts[1]] + parts[2]
	}
	if strings.HasPrefix(name, "ge-") || strings.HasPrefix(name, "xe-") || strings.HasPrefix(name, "et-") {
		return strings.TrimSuffix(name, ".0") // the unit of Junos
	}
	return name
}

// Hear returns what the cards of a node have heard in its last inspection. It asks for the inventory only if the inspection has ended after
// the one before; nil: there was none.
func Hear(ctx context.Context, site *machine.Site, node *ironic.Node, before *Hearing) (*Hearing, error) {
	at := machine.InspectedAt(node)
	if at.IsZero() || before != nil && !at.After(before.At) {
		return before, nil
	}
	inventory, err := site.Ironic.Inventory(ctx, node.UUID)
	if err != nil {
		return before, err
	}
	return HearingOf(inventory, at), nil
}

// EditNote adds to the patch of a node the note of what is expected of its cables, which allocations compare; it removes one that is not
// wanted any more.
func EditNote(edits *ironic.Patch, node *ironic.Node, ends map[string]End) {
	has := node.Extra[notes.KeyCabling]
	switch {
	case len(ends) > 0 && !ironic.SameJSON(has, ends):
		edits.Set("/extra/"+notes.KeyCabling, ends)
	case len(ends) == 0 && has != nil:
		edits.Remove("/extra/" + notes.KeyCabling)
	}
}

// Expected returns the ends of the cables that the note on a node expects, by MAC address.
func Expected(node *ironic.Node) map[string]End {
	text, err := json.Marshal(node.Extra[notes.KeyCabling])
	var ends map[string]End
	if err != nil || json.Unmarshal(text, &ends) != nil {
		return nil
	}
	return ends
}
