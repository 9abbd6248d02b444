package fakeoneview

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// call is one request to the API.
type call struct {
	method  string
	path    []string // segments, the first is rest
	uri     string   // the path and the raw query
	query   url.Values
	header  http.Header
	body    []byte
	version int // the API version of this request
	effects []Effect
}

func newCall(r *http.Request, body []byte, effects []Effect) *call {
	c := &call{method: r.Method, uri: r.URL.RequestURI(), query: r.URL.Query(), header: r.Header, body: body, effects: effects}
	c.path = strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	return c
}

// at returns the segment i of the path, "" after its end.
func (c *call) at(i int) string {
	if i < len(c.path) {
		return c.path[i]
	}
	return ""
}

// object decodes the body as a JSON object.
func (c *call) object() (map[string]any, error) {
	var object map[string]any
	if err := json.Unmarshal(c.body, &object); err != nil || object == nil {
		return nil, fault(http.StatusBadRequest, "INVALID_JSON_FORMAT", "The body of the request is not a JSON object.")
	}
	return object, nil
}

// checkContentType refuses a body with a Content-Type that is not JSON.
func (c *call) checkContentType() error {
	if len(bytes.TrimSpace(c.body)) == 0 && c.method != http.MethodPatch {
		return nil
	}
	kind, _, _ := mime.ParseMediaType(c.header.Get("Content-Type"))
	want := "application/json"
	if c.method == http.MethodPatch && c.version >= 300 {
		want = "application/json-patch+json"
	}
	if (c.method == http.MethodPost || c.method == http.MethodPut || c.method == http.MethodPatch) && kind != want {
		return fault(http.StatusUnsupportedMediaType, "GENERIC_HTTP_415", "The content type %q is not supported.", kind)
	}
	return nil
}

// jsonReply answers with a JSON body.
func jsonReply(status int, value any) Reply {
	body, err := json.Marshal(value)
	if err != nil {
		panic("fakeoneview: encode an answer: " + err.Error())
	}
	return Reply{Status: status, Header: http.Header{"Content-Type": {"application/json;charset=UTF-8"}}, Body: body}
}

// entity answers with one resource and its ETag.
func (s *Server) entity(c *call, document map[string]any) Reply {
	tag := text(document, "eTag")
	if tag != "" && strings.Trim(c.header.Get("If-None-Match"), `"`) == tag {
		return Reply{Status: http.StatusNotModified, Header: http.Header{}}
	}
	answer := jsonReply(http.StatusOK, s.spell(document))
	if tag != "" {
		answer.Header.Set("ETag", tag)
	}
	return answer
}

// clone returns a deep copy of a JSON object.
func clone(document map[string]any) map[string]any {
	raw, err := json.Marshal(document)
	if err != nil {
		panic("fakeoneview: encode a document: " + err.Error())
	}
	var copied map[string]any
	if err := json.Unmarshal(raw, &copied); err != nil {
		panic("fakeoneview: decode a document: " + err.Error()) // cannot happen: json.Marshal made it
	}
	return copied
}

// text returns a member of a document, "" if it is not a string.
func text(document map[string]any, key string) string {
	value, _ := document[key].(string)
	return value
}

// orNull returns value, or null if it is empty.
func orNull(value string) any {
	if value == "" {
		return nil
	}
	return value
}

// sameURI reports whether two URIs are the same except for letter case, a slash at the end, scheme and host.
func sameURI(a, b string) bool { return strings.EqualFold(bareURI(a), bareURI(b)) }

func bareURI(uri string) string {
	if !strings.HasPrefix(uri, "/") {
		if parsed, err := url.Parse(uri); err == nil {
			uri = parsed.Path
		}
	}
	return strings.TrimRight(uri, "/")
}

// spell applies SpellURI to the URIs in a document.
func (s *Server) spell(document map[string]any) map[string]any {
	if s.SpellURI == nil {
		return document
	}
	for key, value := range document {
		if uri, ok := value.(string); ok && strings.HasSuffix(strings.ToLower(key), "uri") && uri != "" {
			document[key] = s.SpellURI(uri)
		}
	}
	return document
}
