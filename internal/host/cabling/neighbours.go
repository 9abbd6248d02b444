package cabling

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/marks"
)

// proveCables names all cables of a host that are not as expected in one warning. Its title has the name of the host, so that Terraform does not
// fold the warnings of several hosts into one.
func proveCables(w Wish, s Seen) []decide.Notice {
	ends := w.Ends()
	if s.Heard == nil || len(ends) == 0 {
		return nil
	}
	cables, faults, unproved := w.wrong(s.Heard), []string(nil), 0
	for _, mac := range slices.Sorted(maps.Keys(ends)) {
		switch s.Heard.Prove(mac, ends[mac]) {
		case Wrong:
			if fault := faultOf(mac, cables, s.Other); fault != "" {
				faults = append(faults, fault)
			}
		case Silent:
			why := "has heard no switch: the cable is out, or the switch sends no LLDP"
			if s.Heard.Cards[mac].NoLink {
				why = "has no link"
			}
			faults = append(faults, fmt.Sprintf("%s %s (expected: %s)", mac, why, ends[mac]))
		case NoCard:
			faults = append(faults, fmt.Sprintf("the machine has no network card %s (expected: at %s)", mac, ends[mac]))
		case Unproved:
			unproved++
		case Right:
		}
	}
	if len(faults) == 0 && unproved > 0 {
		return []decide.Notice{decide.Warn(decide.At("ports"), "Cables are not proved", fmt.Sprintf("The inspection of host %s at %s has collected no LLDP data of %d of the network cards with expect_neighbor. "+
			"Let Ironic's ramdisk listen, with the kernel parameter ipa-collect-lldp=1 ([inspector]extra_kernel_params), and inspect the hosts again, for example with inspect_triggers.",
			w.Label, s.Heard.At.Format(time.RFC3339), unproved))}
	}
	if len(faults) == 0 {
		return nil
	}
	text := fmt.Sprintf("%s. The inspection ended at %s.", capital(strings.Join(faults, "; ")), s.Heard.At.Format(time.RFC3339))
	if !maps.Equal(ends, s.Ends) || s.Since.After(s.Heard.At) {
		return []decide.Notice{decide.Warn(decide.At("ports"), fmt.Sprintf("Cables of host %s are to be inspected again", w.Label), text+" expect_neighbor has changed since. Inspect the host again, for example with inspect_triggers, to prove it.")}
	}
	return []decide.Notice{decide.Warn(decide.At("ports"), fmt.Sprintf("Cables of host %s are not as expected", w.Label), text+" Correct the cables and inspect the host again, or correct expect_neighbor.")}
}

// capital returns a sentence with a capital first letter.
func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// wrong returns the cables of a host that end elsewhere.
func (w Wish) wrong(heard *Hearing) (cables []Cable) {
	if heard == nil {
		return nil
	}
	ends := w.Ends()
	for _, mac := range slices.Sorted(maps.Keys(ends)) {
		if heard.Prove(mac, ends[mac]) == Wrong {
			cables = append(cables, Cable{w.Label, mac, ends[mac], heard.Cards[mac].Neighbour})
		}
	}
	return cables
}

// faultOf says what is wrong with a cable, alone or together with another one; "" if that one has said so.
func faultOf(mac string, own, others []Cable) string {
	this := own[slices.IndexFunc(own, func(c Cable) bool { return c.MAC == mac })]
	for _, other := range own {
		if other.MAC != mac && Meets(this.Heard, other.Want) && Meets(other.Heard, this.Want) {
			if other.MAC < mac {
				return ""
			}
			return fmt.Sprintf("the cables of %s and %s are swapped (%s and %s)", mac, other.MAC, this.Want, other.Want)
		}
	}
	fault := fmt.Sprintf("%s is connected to %s, not to %s", mac, textOf(this.Heard), this.Want)
	if this.Heard.SwitchName == "" && isName(this.Want.Switch) {
		fault += " (that switch announces no name: expect its chassis ID)"
	}
	for _, other := range others {
		if other.Host == this.Host || !Meets(this.Heard, other.Want) {
			continue
		}
		if Meets(other.Heard, this.Want) {
			return fmt.Sprintf("the cables of %s and of %s of host %s are swapped (%s and %s)", mac, other.MAC, other.Host, this.Want, other.Want)
		}
		fault += fmt.Sprintf(", which is for %s of host %s", other.MAC, other.Host)
	}
	return fault
}

// textOf describes a neighbour as the switch spells it.
func textOf(n ironic.Neighbour) string {
	name, port := n.SwitchName, n.PortID
	if name == "" {
		name = n.SwitchID
	}
	if n.PortDescription != "" && !n.PortIsName {
		port += " (" + n.PortDescription + ")"
	}
	return strings.TrimSpace(name + " " + port)
}

// heard is what the hosts of a run have heard.
type heard struct {
	mu     sync.Mutex
	cables []Cable
}

// Share tells the other hosts of this run which cables of a host end elsewhere, and returns those of the other hosts that were planned before.
func Share(site *machine.Site, w Wish, hearing *Hearing) []Cable {
	run := machine.Kept(site, func(*machine.Site) *heard { return &heard{} })
	run.mu.Lock()
	defer run.mu.Unlock()
	others := slices.DeleteFunc(run.cables, func(c Cable) bool { return c.Host == w.Label })
	run.cables = append(slices.Clone(others), w.wrong(hearing)...)
	return others
}

// Hear returns what the cards of a node have heard in its last inspection. It asks for the inventory only if the inspection has ended after the
// one before; nil: there was none.
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

// EditNote adds to the patch of a node the note of what is expected of its cables, which allocations compare; it removes one that is not wanted
// any more.
func EditNote(edits *ironic.Patch, node *ironic.Node, ends map[string]End) {
	has := node.Extra[marks.KeyCabling]
	switch {
	case len(ends) > 0 && !ironic.SameJSON(has, ends):
		edits.Set("/extra/"+marks.KeyCabling, ends)
	case len(ends) == 0 && has != nil:
		edits.Remove("/extra/" + marks.KeyCabling)
	}
}

// Expected returns the ends of the cables that the note on a node expects, by MAC address.
func Expected(node *ironic.Node) map[string]End {
	text, err := json.Marshal(node.Extra[marks.KeyCabling])
	var ends map[string]End
	if err != nil || json.Unmarshal(text, &ends) != nil {
		return nil
	}
	return ends
}
