package oneview

import (
	"fmt"
	"net/url"
	"regexp"
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

// collection is the name of a kind of resource in paths below /rest.
type collection string

// The collections that this package reads.
const (
	hardwareCollection collection = "server-hardware"
	templateCollection collection = "server-profile-templates"
	profileCollection  collection = "server-profiles"
)

// idPattern matches the last segment of a resource's path.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// path checks that a URI names one resource of the collection, and returns its path on the appliance. A request to the path of a
// collection, such as DELETE, could affect every resource in it.
func (l collection) path(uri string) (string, error) {
	path := strings.TrimSpace(uri)
	if u, err := url.Parse(path); err == nil && u.Scheme != "" && u.Host != "" {
		path = u.Path
	}
	prefix := "/rest/" + string(l) + "/"
	path = strings.TrimRight(path, "/")
	if len(path) <= len(prefix) || !strings.EqualFold(path[:len(prefix)], prefix) || !idPattern.MatchString(path[len(prefix):]) {
		return "", fmt.Errorf("%q is not the URI of a resource of OneView: it must look like %s<id>", uri, prefix)
	}
	return prefix + path[len(prefix):], nil
}

// canonical returns the URI of a resource in the appliance's spelling. It does not change a text that is no URI of a resource.
func (l collection) canonical(uri string) string {
	if path, err := l.path(uri); err == nil {
		return path
	}
	return uri
}
