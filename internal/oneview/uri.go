package oneview

import (
	"net/url"
	"strings"
)

// SameURI reports whether two URIs name the same resource of an appliance. It compares only the paths, and ignores case, surrounding
// spaces and slashes at the end. A URI without a path names no resource, so it differs from every URI.
func SameURI(a, b string) bool {
	key := URIKey(a)
	return key != "" && key == URIKey(b)
}

// URIKey returns a URI in the form that SameURI compares, for keys of maps; empty if it names no resource.
func URIKey(uri string) string {
	uri = strings.TrimSpace(uri)
	if u, err := url.Parse(uri); err == nil && u.Scheme != "" && u.Host != "" {
		uri = u.EscapedPath()
	}
	return strings.ToLower(strings.TrimRight(uri, "/"))
}

// IsHardwareURI reports whether a text has the form of a URI of server hardware.
func IsHardwareURI(uri string) bool {
	_, err := hardwareCollection.path(uri)
	return err == nil
}

// ProfileURI returns the URI of a server profile in the appliance's spelling. It does not change a text that is not such a URI.
func ProfileURI(uri string) string { return profileCollection.canonical(uri) }
