package fakeironic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// call is one request on its way through the API.
type call struct {
	method string
	path   []string // segments after /v1
	query  url.Values
	body   []byte
	header http.Header
	base   string  // scheme and host, for links
	minor  int     // the API version of this request is 1.minor
	caller *Caller // nil without Keystone

	newest int       // the highest API version of the server is 1.newest
	now    time.Time // when the server answers
}

// legacy reports whether Ironic 21.4 answers.
func (c *call) legacy() bool { return c.newest <= legacyMinor }

// newCall parses a request that a server answers now. Links use the Host header, as in Ironic.
func newCall(r *http.Request, body []byte, newest int, now time.Time) *call {
	scheme, host := "http", r.Host
	if r.URL.Scheme != "" {
		scheme = r.URL.Scheme
	} else if r.TLS != nil {
		scheme = "https"
	}
	if host == "" {
		host = r.URL.Host
	}
	c := &call{method: r.Method, query: r.URL.Query(), body: body, header: r.Header, base: scheme + "://" + host, newest: newest, now: now}
	escaped := strings.Trim(r.URL.EscapedPath(), "/")
	for i, segment := range strings.Split(escaped, "/") {
		if i == 0 { // v1
			continue
		}
		if plain, err := url.PathUnescape(segment); err == nil {
			segment = plain
		}
		c.path = append(c.path, segment)
	}
	return c
}

// object decodes the body as a JSON object; schema names it in the error.
func (c *call) object(schema string) (map[string]any, error) {
	value, err := c.json()
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, fault(http.StatusBadRequest, "Schema error for %s: %s is not of type 'object'", schema, pyRepr(value))
	}
	return object, nil
}

// json decodes the body. Ironic answers 500 to text that is not JSON.
func (c *call) json() (any, error) {
	if len(bytes.TrimSpace(c.body)) == 0 {
		return map[string]any{}, nil
	}
	var value any
	if err := json.Unmarshal(c.body, &value); err != nil {
		return nil, fault(http.StatusInternalServerError,
			"Expecting property name enclosed in double quotes: line 1 column 2 (char 1)")
	}
	return value, nil
}

// accept refuses query parameters other than names.
func (c *call) accept(names ...string) error {
	for _, key := range sortedKeys(c.query) {
		if !slices.Contains(names, key) {
			return fault(http.StatusBadRequest, "Unexpected arguments: %s", key)
		}
	}
	return nil
}

// links returns the self and bookmark links of a resource.
func (c *call) links(path string) any {
	return []any{
		ordered{{"href", c.base + "/v1/" + path}, {"rel", "self"}},
		ordered{{"href", c.base + "/" + path}, {"rel", "bookmark"}},
	}
}

// ok answers with a JSON body.
func ok(status int, value any) reply {
	return reply{status: status, header: http.Header{"Content-Type": {"application/json"}}, body: encode(value)}
}

// done answers without a body.
func done(status int) reply { return reply{status: status, header: http.Header{}} }

// created answers 201 with the Location of the new resource.
func (c *call) created(path string, value any) reply {
	answer := ok(http.StatusCreated, value)
	answer.header.Set("Location", c.base+"/v1/"+path)
	return answer
}

// apiError is an error answer. Ironic has several formats for it.
type apiError struct {
	status int
	text   string
	header http.Header

	router   bool // made by the router: code, title and description instead of a faultstring
	basic    bool // made by the http_basic middleware
	keystone bool // made by keystonemiddleware
	empty    bool // has no body
}

// Error implements error.
func (e *apiError) Error() string { return e.text }

// fault returns an error of the application, the common case.
func fault(status int, format string, args ...any) *apiError {
	return &apiError{status: status, text: fmt.Sprintf(format, args...)}
}

// routerFault returns an error of the router: the path, method or version does not exist.
func routerFault(status int, format string, args ...any) *apiError {
	return &apiError{status: status, text: fmt.Sprintf(format, args...), router: true}
}

// notAcceptable refuses a feature that the requested API version lacks.
func notAcceptable() *apiError { return fault(http.StatusNotAcceptable, "Request not acceptable.") }

// notAcceptableBefore refuses a parameter and names the first API version that has it.
func notAcceptableBefore(minor int) *apiError {
	return fault(http.StatusNotAcceptable, "Request not acceptable. The minimal required API version should be 1.%d", minor)
}

// unexpectedRPC is the answer where a bug in the conductor raises an exception.
func unexpectedRPC() *apiError {
	return fault(http.StatusInternalServerError, "Unexpected error raised by RPC")
}

// methodNotAllowed refuses a method and lists the allowed ones.
func methodNotAllowed(allowed string) *apiError {
	e := routerFault(http.StatusMethodNotAllowed, "")
	e.header = http.Header{"Allow": {allowed}}
	return e
}

// reply encodes the error in its format.
func (e *apiError) reply() reply {
	header := e.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Type", "application/json")
	switch {
	case e.empty:
		header.Set("Content-Type", "text/plain")
		return reply{status: e.status, header: header}
	case e.keystone:
		body := map[string]any{"error": map[string]any{"code": e.status, "title": http.StatusText(e.status), "message": e.text}}
		return reply{status: e.status, header: header, body: encode(body)}
	case e.basic:
		body := map[string]any{"error": map[string]any{"message": e.text, "code": e.status}}
		return reply{status: e.status, header: header, body: encode(body)}
	case e.router:
		inner := ordered{{"code", e.status}, {"title", http.StatusText(e.status)}, {"description", e.text}}
		return reply{status: e.status, header: header, body: encode(ordered{{"error_message", string(encode(inner))}})}
	}
	code := "Client"
	if e.status >= http.StatusInternalServerError {
		code = "Server"
	}
	inner := ordered{{"faultcode", code}, {"faultstring", e.text}, {"debuginfo", nil}}
	return reply{status: e.status, header: header, body: encode(ordered{{"error_message", string(encode(inner))}})}
}

// notBool refuses a value that is not a boolean.
func notBool(key string, value any) error {
	return fault(http.StatusBadRequest, "Invalid %s: Unrecognized value '%s', acceptable values are: '0', '1', 'f', 'false', 'n', 'no', 'off', "+
		"'on', 't', 'true', 'y', 'yes'", key, pyText(value))
}

// invalidAction refuses an action in the current state of a node.
func invalidAction(action, uuid, current string) error {
	return fault(http.StatusBadRequest, "The requested action \"%s\" can not be performed on node \"%s\" while it is in state \"%s\".",
		action, uuid, current)
}

// pageOf is one page of a list.
type pageOf[T any] struct {
	items []T
	next  string
}

// maxLimit is the server's largest page.
const maxLimit = 1000

// paged returns the page of a list that limit and marker select. As in Ironic, a full page has a next link even if nothing
// follows. fields are the fields that the list shows.
func paged[T any](c *call, fields []string, all []T, id func(T) string, known func(marker string) error) (pageOf[T], error) {
	var page pageOf[T]
	limit := maxLimit
	if c.query.Has("limit") {
		asked, err := strconv.Atoi(c.query.Get("limit"))
		if err != nil {
			return page, fault(http.StatusBadRequest, "Expected an integer for limit: %s", c.query.Get("limit"))
		}
		if asked <= 0 {
			return page, fault(http.StatusBadRequest, "Limit must be positive")
		}
		limit = min(asked, maxLimit)
	}
	start := 0
	if marker := c.query.Get("marker"); marker != "" {
		if !isUUID(marker) {
			return page, fault(http.StatusBadRequest, "Expected UUID for marker: %s", marker)
		}
		if err := known(marker); err != nil {
			return page, err
		}
		for i, item := range all {
			if id(item) == marker {
				start = i + 1
			}
		}
	}
	page.items = all[start:]
	if len(page.items) >= limit && !c.query.Has("instance_uuid") {
		page.items = page.items[:limit]
		page.next = nextLink(c, fields, limit, id(page.items[limit-1]))
	}
	return page, nil
}

// nextLink is the URL of the next page. As in Ironic it drops most filters: a client that follows it gets the rest of the
// unfiltered list.
func nextLink(c *call, fields []string, limit int, marker string) string {
	key, direction := c.query.Get("sort_key"), c.query.Get("sort_dir")
	if key == "" {
		key = "id"
	}
	if direction == "" {
		direction = "asc"
	}
	parts := []string{"sort_key=" + key, "sort_dir=" + direction}
	for _, flag := range []string{"associated", "maintenance", "retired"} {
		if set, _ := parseBool(c.query.Get(flag)); set {
			parts = append(parts, flag+"=True")
		}
	}
	if c.query.Has("detail") {
		parts = append(parts, "detail="+pyBool(c.query.Get("detail")))
	}
	if len(fields) > 0 {
		parts = append(parts, "fields="+strings.Join(fields, ","))
	}
	parts = append(parts, "limit="+strconv.Itoa(limit), "marker="+marker)
	return c.base + "/v1/" + strings.Join(c.path, "/") + "?" + strings.Join(parts, "&")
}

// splitList splits the values of a query parameter at commas.
func splitList(values []string) []string {
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

// reply encodes the page; name is the member that holds the list. The items are already JSON.
func (p pageOf[T]) reply(name string, items []json.RawMessage) reply {
	size := 64 + len(p.next)
	for _, item := range items {
		size += len(item) + 2
	}
	body := append(make([]byte, 0, size), `{"`+name+`": [`...)
	for i, item := range items {
		if i > 0 {
			body = append(body, ", "...)
		}
		body = append(body, item...)
	}
	body = append(body, ']')
	if p.next != "" {
		body = append(append(body, `, "next": `...), encode(p.next)...)
	}
	answer := ok(http.StatusOK, nil)
	answer.body = append(body, '}')
	return answer
}
