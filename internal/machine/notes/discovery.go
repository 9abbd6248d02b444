package notes

import (
	"encoding/json"

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
}

// DiscoveryOf returns the discovery record of a node; nil if this provider did not discover it.
func DiscoveryOf(n *ironic.Node) *Discovery {
	text, err := json.Marshal(n.Extra[KeyDiscovery])
	var d Discovery
	if err != nil || json.Unmarshal(text, &d) != nil || d.Owner == "" {
		return nil
	}
	return &d
}
