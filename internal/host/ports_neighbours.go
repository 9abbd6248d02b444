package host

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/cabling"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// proveCables names all cables of a host that are not as expected in one warning. Its title has the name of the host, so that Terraform
// does not fold the warnings of several hosts into one.
func proveCables(w PortsWish, s PortsSeen) []decide.Notice {
	ends := w.Ends()
	if s.Heard == nil || len(ends) == 0 {
		return nil
	}
	cables, faults, unproved := w.wrong(s.Heard), []string(nil), 0
	for _, mac := range slices.Sorted(maps.Keys(ends)) {
		switch s.Heard.Prove(mac, ends[mac]) {
		case cabling.Wrong:
			if fault := faultOf(mac, cables, s.Other); fault != "" {
				faults = append(faults, fault)
			}
		case cabling.Silent:
			why := "has heard no switch: the cable is out, or the switch sends no LLDP"
			if s.Heard.Cards[mac].NoLink {
				why = "has no link"
			}
			faults = append(faults, fmt.Sprintf("%s %s (expected: %s)", mac, why, ends[mac]))
		case cabling.NoCard:
			faults = append(faults, fmt.Sprintf("the machine has no network card %s (expected: at %s)", mac, ends[mac]))
		case cabling.Unproved:
			unproved++
		case cabling.Right:
		}
	}
	if len(faults) == 0 && unproved > 0 {
		return []decide.Notice{decide.Warn(decide.At("ports"), "Cables are not proved",
			fmt.Sprintf("The inspection of host %s at %s has collected no LLDP data of %d of the network cards with expect_neighbor. Let "+
				"Ironic's ramdisk listen, with the kernel parameter ipa-collect-lldp=1 ([inspector]extra_kernel_params), and inspect the "+
				"hosts again, for example with inspect_triggers.",
				w.Label, s.Heard.At.Format(time.RFC3339), unproved))}
	}
	if len(faults) == 0 {
		return nil
	}
	text := fmt.Sprintf("%s. The inspection ended at %s.", capital(strings.Join(faults, "; ")), s.Heard.At.Format(time.RFC3339))
	if !maps.Equal(ends, s.Ends) || s.Since.After(s.Heard.At) {
		return []decide.Notice{decide.Warn(decide.At("ports"), fmt.Sprintf("Cables of host %s are to be inspected again", w.Label),
			text+" expect_neighbor has changed since. Inspect the host again, for example with inspect_triggers, to prove it.")}
	}
	return []decide.Notice{decide.Warn(decide.At("ports"), fmt.Sprintf("Cables of host %s are not as expected", w.Label),
		text+" Correct the cables and inspect the host again, or correct expect_neighbor.")}
}

// capital returns a sentence with a capital first letter.
func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// wrong returns the cables of a host that end elsewhere.
func (w PortsWish) wrong(heard *cabling.Hearing) (cables []Cable) {
	if heard == nil {
		return nil
	}
	ends := w.Ends()
	for _, mac := range slices.Sorted(maps.Keys(ends)) {
		if heard.Prove(mac, ends[mac]) == cabling.Wrong {
			cables = append(cables, Cable{w.Label, mac, ends[mac], heard.Cards[mac].Neighbour})
		}
	}
	return cables
}

// faultOf says what is wrong with a cable, alone or together with another one; "" if that one has said so.
func faultOf(mac string, own, others []Cable) string {
	this := own[slices.IndexFunc(own, func(c Cable) bool { return c.MAC == mac })]
	for _, other := range own {
		if other.MAC != mac && cabling.Meets(this.Heard, other.Want) && cabling.Meets(other.Heard, this.Want) {
			if other.MAC < mac {
				return ""
			}
			return fmt.Sprintf("the cables of %s and %s are swapped (%s and %s)", mac, other.MAC, this.Want, other.Want)
		}
	}
	fault := fmt.Sprintf("%s is connected to %s, not to %s", mac, textOf(this.Heard), this.Want)
	if this.Heard.SwitchName == "" && cabling.IsName(this.Want.Switch) {
		fault += " (that switch announces no name: expect its chassis ID)"
	}
	for _, other := range others {
		if other.Host == this.Host || !cabling.Meets(this.Heard, other.Want) {
			continue
		}
		if cabling.Meets(other.Heard, this.Want) {
			return fmt.Sprintf("the cables of %s and of %s of host %s are swapped (%s and %s)", mac, other.MAC, other.Host,
				this.Want, other.Want)
		}
		fault += fmt.Sprintf(", which is for %s of host %s", other.MAC, other.Host)
	}
	return fault
}

// textOf describes a neighbour as the switch spells it.
func textOf(n ironic.Neighbour) string {
	name, port := n.SwitchName, n.PortID
	name = cmp.Or(name, n.SwitchID)
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

// ShareCables tells the other hosts of this run which cables of a host end elsewhere, and returns those of the other hosts that were
// planned before.
func ShareCables(site *machine.Site, w PortsWish, hearing *cabling.Hearing) []Cable {
	run := machine.Kept(site, func(*machine.Site) *heard { return &heard{} })
	run.mu.Lock()
	defer run.mu.Unlock()
	others := slices.DeleteFunc(run.cables, func(c Cable) bool { return c.Host == w.Label })
	run.cables = append(slices.Clone(others), w.wrong(hearing)...)
	return others
}
