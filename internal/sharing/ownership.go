package sharing

import (
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// Ownership says who may use server hardware.
type Ownership string

// The users of server hardware, as Owner determines them.
const (
	// Free: no server profile is applied to it.
	Free Ownership = "free"
	// UsedByIronic: the server profile that is applied to it is the one in its node's driver_info.
	UsedByIronic Ownership = "ironic"
	// UsedByOneView: another server profile is applied to it. This package does not change such hardware.
	UsedByOneView Ownership = "oneview"
)

// Owner says who uses server hardware. It only compares the serverProfileUri of the hardware with applied_server_profile_uri in the
// driver_info of its node. The comparison of URIs ignores case, a slash at the end, and the appliance's address before the path.
func Owner(hardwareProfileURI, appliedProfileURI string) Ownership {
	switch {
	case strings.TrimSpace(hardwareProfileURI) == "":
		return Free
	case oneview.SameURI(hardwareProfileURI, appliedProfileURI):
		return UsedByIronic
	}
	return UsedByOneView
}
