package notes

import (
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// KeyDiscovery is the key of the note which says which metal_discovery_import has claimed and named the node.
const KeyDiscovery = "terraform_metal_discovery"

// KeyEnrolled is the key of the note which says that a metal_host manages this unnamed node, so that discovery ignores it.
const KeyEnrolled = "terraform_metal_enrolled"

// Discovery is the record on a node of its discovery.
type Discovery struct {
	Version int    `json:"v"`
	Owner   string `json:"owner"`           // name of the metal_discovery_import
	Name    string `json:"name"`            // given once; a later change of the template does not change it
	From    string `json:"from"`            // the hardware property that the name was made from
	At      string `json:"at"`              // RFC 3339
	Taken   bool   `json:"taken,omitempty"` // a metal_host manages it
	Claim   string `json:"claim,omitempty"` // instance UUID that has reserved the node while it was named
}

// DiscoveryOf returns the discovery record of a node; nil if this provider did not discover it.
func DiscoveryOf(n *ironic.Node) *Discovery {
	if d := Read[Discovery](n.Extra, KeyDiscovery); d != nil && d.Owner != "" {
		return d
	}
	return nil
}

func sayDiscovery(n *ironic.Node, _ time.Time) (w Words) {
	if d := DiscoveryOf(n); d != nil {
		at, _ := time.Parse(time.RFC3339, d.At)
		w.Told = []Note{{At: at, Text: "discovered, and named " + d.Name + " after " + d.From, By: "metal_discovery_import " + d.Owner}}
	}
	return w
}
