package oneview

import (
	"context"
	"errors"
	"time"
)

// PrepareOptions says what profile a node shall have.
type PrepareOptions struct {
	NodeID string
	// Name of the profile; empty: "<node name> [<node UUID>]". If the hardware has a profile of ours already, an empty name
	// leaves it as it is, unless it is a temporary one: that is renamed, because Sync removes temporary profiles that are
	// not needed any more.
	Name        string
	HardwareURI string        // empty: server_hardware_uri of the node
	TemplateURI string        // empty: server_profile_template_uri of the node
	Limit       time.Duration // zero: DefaultLimit

	// Record is called with the profile's URI as soon as it is known, which is before it is applied, and with "" when it
	// was removed again because it could not be applied. It may be nil.
	Record func(profileURI string)
}

// DefaultLimit is how long Prepare and Release work at most, if not told otherwise: what the appliance's own tools allow.
const DefaultLimit = 45 * time.Minute

// Applied is a profile that is applied to the hardware of a node.
type Applied struct {
	Profile  *Profile
	Hardware *Hardware
	Reused   bool // it was there already
}

// Prepare gives a node's hardware a server profile made from a template, and tells Ironic.
func (p *Pool) Prepare(ctx context.Context, o PrepareOptions) (*Applied, error) {
	return nil, errors.ErrUnsupported
}
