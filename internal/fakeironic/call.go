package fakeironic

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// call is one request on its way through the API.
type call struct {
	method string
	path   []string // segments behind /v1
	query  url.Values
	body   []byte
	header http.Header
	base   string // scheme and host, for links
	minor  int    // the API version of this request is 1.minor
}

// newCall takes the request apart. Links are built from the Host header, as in Ironic.
func newCall(r *http.Request, body []byte) *call {
	scheme, host := "http", r.Host
	if r.URL.Scheme != "" {
		scheme = r.URL.Scheme
	} else if r.TLS != nil {
		scheme = "https"
	}
	if host == "" {
		host = r.URL.Host
	}
	c := &call{method: r.Method, query: r.URL.Query(), body: body, header: r.Header, base: scheme + "://" + host}
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

// accept refuses query parameters that are not in the list.
func (c *call) accept(names ...string) error {
	for _, key := range sortedKeys(c.query) {
		if !contains(names, key) {
			return fault(http.StatusBadRequest, "Unexpected arguments: %s", key)
		}
	}
	return nil
}

// links are the self and bookmark links of a thing.
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

// created answers 201 with the Location of the new thing.
func (c *call) created(path string, value any) reply {
	answer := ok(http.StatusCreated, value)
	answer.header.Set("Location", c.base+"/v1/"+path)
	return answer
}
