package fakeoneview

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

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

func (c *call) object() (map[string]any, error) {
	var object map[string]any
	if err := json.Unmarshal(c.body, &object); err != nil || object == nil {
		return nil, fault(http.StatusBadRequest, "INVALID_JSON_FORMAT", "The body of the request is not a JSON object.")
	}
	return object, nil
}

// checkContentType refuses a body that is not JSON. HPE's SDKs send patches as application/json-patch+json and as application/json.
func (c *call) checkContentType() error {
	kind, _, _ := mime.ParseMediaType(c.header.Get("Content-Type"))
	patch := c.method == http.MethodPatch
	has := patch || len(bytes.TrimSpace(c.body)) > 0 && (c.method == http.MethodPost || c.method == http.MethodPut)
	if !has || kind == "application/json" || patch && kind == "application/json-patch+json" {
		return nil
	}
	return fault(http.StatusUnsupportedMediaType, "GENERIC_HTTP_415", "The content type %q is not supported.", kind)
}

// replaced decodes a patch, which must have one operation that replaces a value.
func (c *call) replaced() (path string, value any, err error) {
	var patch []struct {
		Op, Path string
		Value    any
	}
	if err := json.Unmarshal(c.body, &patch); err != nil || len(patch) != 1 || patch[0].Op != "replace" {
		return "", nil, fault(http.StatusBadRequest, "INVALID_PATCH", "The body must be one replace operation.")
	}
	return patch[0].Path, patch[0].Value, nil
}

func jsonReply(status int, value any) Reply {
	body, err := json.Marshal(value)
	if err != nil {
		panic("fakeoneview: encode an answer: " + err.Error())
	}
	return Reply{Status: status, Header: http.Header{"Content-Type": {"application/json;charset=UTF-8"}}, Body: body}
}

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

// Problem is one error as OneView describes it, in the body of an answer or among the taskErrors of a task.
type Problem struct {
	Code    string // errorCode
	Message string
	Details string   // empty means null
	Actions []string // recommendedActions
}

func problem(code, action, format string, args ...any) *Problem {
	return &Problem{Code: code, Message: fmt.Sprintf(format, args...), Actions: []string{action}}
}

func (p Problem) document() map[string]any {
	actions := []any{}
	for _, action := range p.Actions {
		actions = append(actions, action)
	}
	return map[string]any{
		"errorCode": p.Code, "message": p.Message, "details": orNull(p.Details), "recommendedActions": actions,
		"errorSource": nil, "nestedErrors": []any{}, "data": map[string]any{},
	}
}

type apiError struct {
	status  int
	problem Problem
}

// Error implements error.
func (e *apiError) Error() string { return e.problem.Message }

func fault(status int, code, format string, args ...any) *apiError {
	return &apiError{status: status, problem: Problem{Code: code, Message: fmt.Sprintf(format, args...)}}
}

func (e *apiError) reply() Reply { return jsonReply(e.status, e.problem.document()) }

// notAuthorized is the answer to a missing, unknown or expired session, and to a session without the permission.
func notAuthorized() *apiError {
	const text = "User not authorized for this operation."
	return &apiError{http.StatusUnauthorized, Problem{
		Code: "AUTHORIZATION", Message: "Authorization error: " + text, Details: text,
		Actions: []string{"Please verify your credentials and re-authenticate before attempting the operation again."},
	}}
}

// loginFailed is the answer to a wrong name or password.
func loginFailed() *apiError {
	return &apiError{http.StatusBadRequest, Problem{
		Code: "AUTHN_AUTH_FAIL", Message: "Invalid username or password or directory.",
		Details: "Authentication failed.", Actions: []string{"Verify the username, password and directory and try again."},
	}}
}

func notFound(what string) *apiError {
	return fault(http.StatusNotFound, "RESOURCE_NOT_FOUND", "The requested resource %s could not be found.", what)
}

func profileNotFound() *apiError {
	return fault(http.StatusNotFound, "ProfileNotFoundException", "The requested profile cannot be retrieved")
}

// staleETag is the answer to an If-Match with an old version. The real code for profiles is not known.
func staleETag() *apiError {
	return fault(http.StatusPreconditionFailed, "CRM_ETAG_CHECK_FAILED",
		"The resource has been modified since it was read: the ETag does not match.")
}

// locked is the answer while another operation is in progress on the resource.
func locked(name string) *apiError {
	return fault(http.StatusConflict, "RESOURCE_LOCKED",
		"The resource %s is locked in a transitory state. Wait until the current operation has ended.", name)
}

func methodNotAllowed(method string) *apiError {
	return fault(http.StatusMethodNotAllowed, "GENERIC_HTTP_405", "The method %s is not allowed for this resource.", method)
}

func badField(field, format string, args ...any) *apiError {
	return fault(http.StatusBadRequest, "INVALID_ATTRIBUTE", "The attribute %q is not valid: %s", field, fmt.Sprintf(format, args...))
}

// resourceTypes has the values of type from an API version on.
type resourceTypes struct {
	from              int
	profile, template string
}

// typesAt returns the values of type in an API version.
func typesAt(version int) resourceTypes {
	found := resourceTypes{}
	for _, t := range []resourceTypes{
		{200, "ServerProfileV5", "ServerProfileTemplateV1"},
		{300, "ServerProfileV6", "ServerProfileTemplateV2"},
		{500, "ServerProfileV7", "ServerProfileTemplateV3"},
		{600, "ServerProfileV8", "ServerProfileTemplateV4"},
		{800, "ServerProfileV9", "ServerProfileTemplateV5"},
		{1000, "ServerProfileV10", "ServerProfileTemplateV6"},
		{1200, "ServerProfileV11", "ServerProfileTemplateV7"},
		{1600, "ServerProfileV12", "ServerProfileTemplateV8"},
	} {
		if version >= t.from {
			found = t
		}
	}
	return found
}

// fill sets an empty string to a default.
func fill[T ~string](value *T, otherwise T) {
	if *value == "" {
		*value = otherwise
	}
}

// newUUID returns a random UUID in lower case.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
