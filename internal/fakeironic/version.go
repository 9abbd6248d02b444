package fakeironic

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

const (
	newestMinor = 115 // Ironic 39
	legacyMinor = 82  // Ironic 21.4

	versionHeader = "X-OpenStack-Ironic-API-Version"
	minHeader     = "X-OpenStack-Ironic-API-Minimum-Version"
	maxHeader     = "X-OpenStack-Ironic-API-Maximum-Version"
)

// maxMinor is the minor part of the highest API version spoken.
func (s *Server) maxMinor() int {
	minor, err := strconv.Atoi(strings.TrimPrefix(s.MaxMicroversion, "1."))
	if err != nil {
		return newestMinor
	}
	return minor
}

// legacy says that the server behaves as Ironic 21.4.
func (s *Server) legacy() bool { return s.maxMinor() <= legacyMinor }

// negotiate finds the API version of a request, 1.minor. No header means 1.1.
func (s *Server) negotiate(header http.Header) (int, *apiError) {
	wanted := header.Get(versionHeader)
	if wanted == "" && !s.legacy() {
		if service, version, found := strings.Cut(header.Get("OpenStack-API-Version"), " "); found && service == "baremetal" {
			wanted = version
		}
	}
	if wanted == "" {
		return 1, nil
	}
	if strings.EqualFold(wanted, "latest") {
		return s.maxMinor(), nil
	}
	major, minor, err := parseVersion(wanted)
	if err != nil {
		return 0, routerFault(http.StatusNotAcceptable, "Invalid value for %s header", versionHeader)
	}
	if major != 1 || minor < 1 || minor > s.maxMinor() {
		complaint := "Version %s was requested but the minor version is not supported by this service. The supported version range is: [1.1, 1.%d]."
		if major != 1 {
			complaint = "Mutually exclusive versions requested. Version %s requested but not supported by this service. " +
				"The supported version range is: [1.1, 1.%d]."
		}
		refused := routerFault(http.StatusNotAcceptable, complaint, wanted, s.maxMinor())
		refused.header = http.Header{}
		s.addVersionHeaders(refused.header, 0)
		return 0, refused
	}
	return minor, nil
}

// parseVersion takes "1.82" apart.
func parseVersion(text string) (major, minor int, err error) {
	first, second, found := strings.Cut(text, ".")
	if !found {
		return 0, 0, fmt.Errorf("version %q has no dot", text)
	}
	if major, err = strconv.Atoi(first); err != nil {
		return 0, 0, err
	}
	minor, err = strconv.Atoi(second)
	return major, minor, err
}

// addVersionHeaders tells the range of API versions and, when minor is not zero, the one in use.
func (s *Server) addVersionHeaders(header http.Header, minor int) {
	header.Set(minHeader, "1.1")
	header.Set(maxHeader, fmt.Sprintf("1.%d", s.maxMinor()))
	if minor > 0 {
		header.Set(versionHeader, fmt.Sprintf("1.%d", minor))
	}
}

// versionDocument describes API v1.
func (s *Server) versionDocument(c *call) ordered {
	return ordered{
		{"id", "v1"},
		{"links", []any{ordered{{"href", c.base + "/v1/"}, {"rel", "self"}}}},
		{"status", "CURRENT"},
		{"min_version", "1.1"},
		{"version", fmt.Sprintf("1.%d", s.maxMinor())},
	}
}

// root answers GET /.
func (s *Server) root(c *call) reply {
	return ok(http.StatusOK, ordered{
		{"name", "OpenStack Ironic API"},
		{"description", "Ironic is an OpenStack project which enables the provision and management of baremetal machines."},
		{"default_version", s.versionDocument(c)},
		{"versions", []any{s.versionDocument(c)}},
	})
}

// v1 answers GET /v1. The list of resources shows what the API version has.
func (s *Server) v1(c *call) reply {
	document := ordered{
		{"id", "v1"},
		{"links", []any{ordered{{"href", c.base + "/v1/"}, {"rel", "self"}}}},
		{"media_types", ordered{{"base", "application/json"}, {"type", "application/vnd.openstack.ironic.v1+json"}}},
	}
	for _, resource := range []struct {
		name  string
		since int
	}{
		{"chassis", 1}, {"nodes", 1}, {"ports", 1}, {"drivers", 1}, {"portgroups", 23}, {"conductors", 49}, {"allocations", 52},
	} {
		if c.minor >= resource.since {
			document = append(document, member{resource.name, c.links(resource.name + "/")})
		}
	}
	return ok(http.StatusOK, append(document, member{"version", s.versionDocument(c)}))
}
