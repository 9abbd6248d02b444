package oneview

import (
	"net/url"
	"strings"
)

// Ownership says who may use server hardware.
type Ownership string

// Who uses server hardware, by the one rule of Owner.
const (
	// Free: no server profile is applied to it.
	Free Ownership = "free"
	// UsedByIronic: the server profile that is applied to it is the one in its node's driver_info.
	UsedByIronic Ownership = "ironic"
	// UsedByOneView: another server profile is applied to it. It is not ours to touch.
	UsedByOneView Ownership = "oneview"
)

// Owner is the rule by which Ironic and OneView share hardware. It compares the serverProfileUri of the server hardware
// with applied_server_profile_uri in the driver_info of its node, and nothing else. URIs are compared by meaning: neither
// case, nor a slash at the end, nor the name of the appliance before the path counts.
func Owner(hardwareProfileURI, appliedProfileURI string) Ownership {
	switch {
	case strings.TrimSpace(hardwareProfileURI) == "":
		return Free
	case sameURI(hardwareProfileURI, appliedProfileURI):
		return UsedByIronic
	}
	return UsedByOneView
}

// sameURI reports whether two URIs name the same resource. A URI that names nothing is not the same as another.
func sameURI(a, b string) bool {
	a, b = normalURI(a), normalURI(b)
	return a != "" && a == b
}

// normalURI is how a URI is written for comparison: only the path, in lower case, without slashes at its end. It is empty if
// there is no path.
func normalURI(uri string) string {
	uri = strings.TrimSpace(uri)
	if u, err := url.Parse(uri); err == nil && u.Scheme != "" && u.Host != "" {
		uri = u.EscapedPath()
	}
	return strings.ToLower(strings.TrimRight(uri, "/"))
}
