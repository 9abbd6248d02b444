package evidence

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/disks"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/ramdisk"
)

// Disks compares root_device of a node with the disks of its last inspection; nil: there is none.
func Disks(n *ironic.Node, found *ironic.Inventory) []string {
	if found == nil || len(found.Disks) == 0 {
		return []string{"Ironic has no list of the node's disks to compare root_device with: inspect it."}
	}
	values, _ := n.InstanceInfo["root_device"].(map[string]any)
	if len(values) == 0 {
		values, _ = n.Properties["root_device"].(map[string]any)
	}
	left := disks.SplitBy(disks.HintsOf(n.Properties), found.Disks).Others
	has := fmt.Sprintf("The last inspection found %s", disks.Labels(found.Disks))
	if kept := len(found.Disks) - len(left); kept > 0 {
		has += fmt.Sprintf(", of which skip_block_devices keeps %d", kept)
	}
	if len(values) == 0 {
		return []string{has + ". The node has no root_device: the agent takes the smallest disk of at least 4 GiB."}
	}
	root := disks.HintOf(values)
	var fit []ironic.Disk
	for _, d := range left {
		switch fits, known := root.Fits(d); {
		case !known:
			return []string{has + fmt.Sprintf(". Only Ironic's agent can compare root_device (%s) with them.", root)}
		case fits:
			fit = append(fit, d)
		}
	}
	if len(fit) == 0 {
		return []string{has + fmt.Sprintf(". root_device (%s) fits none of them: correct it, or inspect the machine if its disks were "+
			"changed since.", root)}
	}
	return []string{has + fmt.Sprintf(". root_device (%s) fits %s, so it is correct, and the disk is missing or failing now; unless "+
		"disks were changed since.", root, disks.Labels(fit))}
}

// Agent says whether Ironic's agent has reported since an operation began; a zero time: not known.
func Agent(n *ironic.Node, began time.Time) []string {
	heard := ironic.InternalTime(n, ramdisk.KeyHeartbeat)
	at := heard.UTC().Format(time.DateTime + " UTC")
	switch {
	case n.Hidden.DriverInternalInfo:
		return nil
	case heard.IsZero(), !began.IsZero() && heard.Before(began):
		return []string{"The agent of Ironic's ramdisk has not reported since the operation began: the machine did not boot the " +
			"ramdisk, or the ramdisk does not reach Ironic's API."}
	case began.IsZero():
		return []string{fmt.Sprintf("The agent of Ironic's ramdisk reported last at %s. If the operation began later, the machine did not "+
			"boot the ramdisk, or the ramdisk does not reach Ironic's API.", at)}
	}
	return []string{fmt.Sprintf("The agent of Ironic's ramdisk reported last at %s: the machine booted the ramdisk and reached Ironic's "+
		"API, and was lost then.", at)}
}

// Cards compares the ports of a node with the network cards of its last inspection; nil: there is none.
func Cards(n *ironic.Node, ports map[string]ironic.Port, found *ironic.Inventory) (facts []string) {
	macs := slices.Sorted(maps.Keys(ports))
	if lacks := (ramdisk.NetworkBoot{Interface: n.BootInterface, Ports: ramdisk.PXEPorts(ports)}).Lacks(); lacks != "" {
		facts = append(facts, fmt.Sprintf("The node boots from the network (%s), and %s.", n.BootInterface, lacks))
	}
	if found == nil || len(found.Interfaces) == 0 || len(macs) == 0 {
		return facts
	}
	var cards []string
	for _, mac := range found.Addresses() {
		cards = append(cards, ironic.MAC(mac))
	}
	strange := slices.DeleteFunc(macs, func(mac string) bool { return slices.Contains(cards, ironic.MAC(mac)) })
	boot := found.BootMAC()
	_, known := ports[boot]
	switch {
	case len(strange) > 0:
		facts = append(facts, fmt.Sprintf("No card of the last inspection has the MAC address of port %s: a typing error, or a card that "+
			"was exchanged. The inspection found %s.", strings.Join(strange, ", "), strings.Join(cards, ", ")))
	case boot != "" && !known:
		facts = append(facts, fmt.Sprintf("The machine booted from card %s for its last inspection, and the node has no port for "+
			"it.", boot))
	default:
		facts = append(facts, "The last inspection found a card for each port, so no MAC address is mistyped. That says nothing about "+
			"cables and DHCP.")
	}
	return facts
}

// Conductors says whether the conductor of a node runs.
func Conductors(n *ironic.Node, all []ironic.Conductor) []string {
	alive := 0
	var own *ironic.Conductor
	for i := range all {
		if all[i].Alive {
			alive++
		}
		if all[i].Hostname == cmp.Or(n.Reservation, n.Conductor) {
			own = &all[i]
		}
	}
	sum := fmt.Sprintf("%d of %d conductors run", alive, len(all))
	switch {
	case own == nil:
		return []string{sum + "."}
	case own.Alive:
		return []string{fmt.Sprintf("%s; so does %s, which works for the node. Whether it was restarted meanwhile, its log tells.", sum,
			own.Hostname)}
	}
	return []string{fmt.Sprintf("%s; %s, which works for the node, has not reported since %s, so it is down.", sum, own.Hostname,
		own.UpdatedAt.UTC().Format(time.DateTime+" UTC"))}
}

// mostSettings is how many BIOS settings facts tell of.
const mostSettings = 3

// Settings says what the BIOS takes for the settings that Ironic's words name.
func Settings(words string, settings map[string]ironic.BIOSSetting) (facts []string) {
	named := strings.FieldsFunc(words, func(r rune) bool { return strings.ContainsRune(" \t\n'\"`,:;()[]{}=", r) })
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if !slices.Contains(named, name) || len(facts) == mostSettings {
			continue
		}
		s := settings[name]
		switch {
		case s.Type == "Password": // its value is a secret
		case s.ReadOnly:
			facts = append(facts, fmt.Sprintf("The BIOS setting %s is read-only, and is %q.", name, s.Text()))
		case len(s.Allowed) > 0:
			facts = append(facts, fmt.Sprintf("The BIOS setting %s takes %s, and is %q.", name, strings.Join(s.Allowed, ", "), s.Text()))
		case s.Lower != nil && s.Upper != nil:
			facts = append(facts, fmt.Sprintf("The BIOS setting %s takes %d to %d, and is %s.", name, *s.Lower, *s.Upper, s.Text()))
		}
	}
	return facts
}

// Image says what the server of an image answered to a HEAD request, or why there is no answer.
func Image(address string, status int, failed error) []string {
	const elsewhere = " The conductor, or the ramdisk, asks from elsewhere: that is a hint only."
	redirect, redirected := errors.AsType[*rest.RedirectError](failed)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](failed)
	signed := ""
	switch {
	case redirected:
		status, signed = redirect.Status, " It redirects to "+redirect.To()+", which was not asked."
	case untrusted:
		return []string{"The certificate of the image's server is not trusted here (" + rest.Origin(address) + ")." + elsewhere}
	case failed != nil:
		return []string{"The server of the image does not answer here (" + rest.Origin(address) + ")." + elsewhere}
	case status == http.StatusForbidden:
		signed = " It may permit the address for a download alone."
	}
	return []string{fmt.Sprintf("Asked from here, the server of the image answers %d %s to %s.%s%s", status, http.StatusText(status),
		rest.PlainURL(address), signed, elsewhere)}
}
