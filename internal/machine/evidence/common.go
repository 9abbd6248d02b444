package evidence

import (
	"fmt"
	"net/netip"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/driverinfo"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// properties are what machines may have in common, the most telling first; "": not known.
var properties = []struct {
	name string
	of   func(n *ironic.Node) string
}{
	{"conductor", func(n *ironic.Node) string { return n.Conductor }},
	{"BMC network", bmcNetwork},
	{"image", func(n *ironic.Node) string { return rest.PlainURL(states.TextOf(n.InstanceInfo, "image_source")) }},
	{"conductor group", func(n *ironic.Node) string { return n.ConductorGroup }},
	{"vendor", func(n *ironic.Node) string { return states.TextOf(n.Properties, "vendor") }},
	{"resource class", func(n *ironic.Node) string { return n.ResourceClass }},
	{"boot interface", func(n *ironic.Node) string { return n.BootInterface }},
	{"deploy interface", func(n *ironic.Node) string { return n.DeployInterface }},
	{"driver", func(n *ironic.Node) string { return n.Driver }},
}

// bmcNetwork is the network of a BMC, by the usual length of its prefix; "" for a BMC with a host name.
func bmcNetwork(n *ironic.Node) string {
	address, err := netip.ParseAddr(driverinfo.BMCAddress(n.DriverInfo))
	if err != nil {
		return ""
	}
	bits := 24
	if address.Is6() {
		bits = 64
	}
	network, _ := address.Prefix(bits) // it has as many
	return network.String()
}

// chance is how likely what failed machines have in common may be by chance, if it is still told.
const chance = 0.01

// Common says what two or more machines that failed for one reason have in common and the others, which did not fail, have not; "" if
// nothing distinguishes them with enough certainty: were the failures spread at random, all of them would have it in one of a hundred
// cases.
func Common(failed, others []*ironic.Node) string {
	best, text := chance, ""
	for _, p := range properties {
		value := ""
		if len(failed) > 1 {
			value = p.of(failed[0])
		}
		alike := value != ""
		for _, n := range failed {
			alike = alike && p.of(n) == value
		}
		if !alike {
			continue
		}
		with := len(failed)
		for _, n := range others {
			if p.of(n) == value {
				with++
			}
		}
		likely := 1.0
		for i := range failed {
			likely *= float64(with-i) / float64(len(failed)+len(others)-i)
		}
		if likely <= best {
			if likely == best && text != "" {
				continue
			}
			best, text = likely, fmt.Sprintf("%d of %d failed: %s %s; 0 of %d elsewhere.", len(failed), with, p.name, value,
				len(failed)+len(others)-with)
		}
	}
	return text
}
