// Package api reads requests and writes answers as Ironic does: documents and their schemas, patches, pages and errors.
package api

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Call is one request on its way through the API.
type Call struct {
	Method string
	Path   []string // segments after /v1, which a path may leave out
	Query  url.Values
	body   []byte
	Header http.Header
	Base   string  // scheme and host, for links
	Minor  int     // the API version of this request is 1.Minor
	Caller *Caller // nil without Keystone

	Newest int       // the highest API version of the server is 1.Newest
	Now    time.Time // when the server answers
}

// Legacy reports whether Ironic 21.4 answers.
func (c *Call) Legacy() bool { return c.Newest <= LegacyMinor }

// NewCall returns the call of a request. newest is the minor number of the server's highest API version, and now the time of the answer.
// Links in the answer use the Host header, as in Ironic.
func NewCall(r *http.Request, body []byte, newest int, now time.Time) *Call {
	scheme, host := "http", r.Host
	if r.URL.Scheme != "" {
		scheme = r.URL.Scheme
	} else if r.TLS != nil {
		scheme = "https"
	}
	if host == "" {
		host = r.URL.Host
	}
	c := &Call{Method: r.Method, Query: r.URL.Query(), body: body, Header: r.Header, Base: scheme + "://" + host, Newest: newest, Now: now}
	escaped := strings.Trim(r.URL.EscapedPath(), "/")
	for i, segment := range strings.Split(escaped, "/") {
		if i == 0 && (segment == "v1" || segment == "") {
			continue
		}
		if plain, err := url.PathUnescape(segment); err == nil {
			segment = plain
		}
		c.Path = append(c.Path, segment)
	}
	if len(c.Path) == 4 && c.Path[0] == "nodes" && c.Path[1] == "states" { // older clients name the node last
		c.Path = []string{"nodes", c.Path[3], "states", c.Path[2]}
	}
	return c
}

// Object decodes the body as a JSON object; schema names it in the error.
func (c *Call) Object(schema string) (map[string]any, error) {
	value, err := c.json()
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, Fault(http.StatusBadRequest, "Schema error for %s: %s is not of type 'object'", schema, PyRepr(value))
	}
	return object, nil
}

// json decodes the body. Ironic answers 500 to text that is not JSON.
func (c *Call) json() (any, error) {
	if len(bytes.TrimSpace(c.body)) == 0 {
		return map[string]any{}, nil
	}
	var value any
	if err := Decode(c.body, &value); err != nil {
		return nil, Fault(http.StatusInternalServerError,
			"Expecting property name enclosed in double quotes: line 1 column 2 (char 1)")
	}
	return value, nil
}

// Accept refuses query parameters other than names.
func (c *Call) Accept(names ...string) error {
	for _, key := range SortedKeys(c.Query) {
		if !slices.Contains(names, key) {
			return Fault(http.StatusBadRequest, "Unexpected arguments: %s", key)
		}
	}
	return nil
}

// Links returns the self and bookmark links of a resource.
func (c *Call) Links(path string) any {
	return []any{
		Ordered{{"href", c.Base + "/v1/" + path}, {"rel", "self"}},
		Ordered{{"href", c.Base + "/" + path}, {"rel", "bookmark"}},
	}
}

// Fields returns the fields that a query selects: summary if it selects none, nil for all.
func (c *Call) Fields(summary ...string) ([]string, error) {
	detail, _ := ParseBool(c.Query.Get("detail"))
	switch {
	case detail && c.Query.Has("fields"):
		return nil, Fault(http.StatusBadRequest, "Can not specify ?detail=True and fields in the same request.")
	case c.Query.Has("fields"):
		return SplitList(c.Query["fields"]), nil
	case detail:
		return nil, nil
	}
	return summary, nil
}

// Select returns the members with the given names, and links; all if fields is nil.
func (o Ordered) Select(fields []string) (Ordered, error) {
	if fields == nil {
		return o, nil
	}
	for _, name := range fields {
		if !slices.ContainsFunc(o, func(m Member) bool { return m.Key == name }) {
			return nil, Fault(http.StatusBadRequest, "Field(s) \"%s\" are not valid", name)
		}
	}
	return slices.DeleteFunc(slices.Clone(o), func(m Member) bool { return m.Key != "links" && !slices.Contains(fields, m.Key) }), nil
}

// SplitList splits the values of a query parameter at commas.
func SplitList(values []string) []string {
	var out []string
	for _, value := range values {
		for _, item := range strings.Split(value, ",") {
			if item != "" {
				out = append(out, item)
			}
		}
	}
	return out
}

// Caller is a user as Keystone describes it for a token.
type Caller struct {
	Project string   // ID of the project of the token; empty with another scope
	System  bool     // the token has the scope of the system
	Roles   []string // admin implies manager, manager implies member, member implies reader
}

// Project returns the project of a request. Without Keystone, Ironic believes the header.
func (c *Call) Project() string {
	if c.Caller == nil {
		return c.Header.Get("X-Project-Id")
	}
	return c.Caller.Project
}

// IsSystem reports whether the token of the user has the scope of the system.
func (c *Call) IsSystem() bool { return c.Caller != nil && c.Caller.System }

// LegacyMinor is the highest API version of Ironic 21.4.
const LegacyMinor = 82
