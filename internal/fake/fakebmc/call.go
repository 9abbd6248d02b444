package fakebmc

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strings"
)

type object = map[string]any

type call struct {
	*Server
	method  string
	path    string // without a slash at the end
	request *http.Request
	body    object
	hasBody bool
	bmc     *BMC     // the machine in the path; nil if there is none
	allowed []*BMC   // the machines whose password the client has
	session *session // nil with basic authentication
	name    string   // the last variable part of the path
}

// resource is what answers requests to a path. Parts in braces stand for any name; {machine} is the name of a machine.
type resource struct {
	path   string
	open   bool // needs no authentication
	exists func(*call) bool
	get    func(*call) object
	status func(*call) int // of a GET; nil means 200
	patch  func(*call) *fault
	post   func(*call) (reply, *fault)
	delete func(*call) (reply, *fault)
}

// find returns the resource of a path, and the names that its variable parts have; nil if there is none.
func find(path string) (*resource, []string) {
	parts := strings.Split(path, "/")
next:
	for i := range resources {
		pattern := strings.Split(resources[i].path, "/")
		if len(pattern) != len(parts) {
			continue
		}
		var names []string
		for j := range parts {
			switch {
			case strings.HasPrefix(pattern[j], "{"):
				names = append(names, parts[j])
			case pattern[j] != parts[j]:
				continue next
			}
		}
		return &resources[i], names
	}
	return nil, nil
}

// missing finds the machine in the path, and reports whether the resource does not exist.
func (c *call) missing(res *resource, names []string) bool {
	if strings.Contains(res.path, "{machine}") {
		at := slices.IndexFunc(c.allowed, func(b *BMC) bool { return b.config.Name == names[0] })
		if at < 0 {
			return true
		}
		c.bmc = c.allowed[at]
	}
	return res.exists != nil && !res.exists(c)
}

func (c *call) serve(res *resource) (reply, *fault) {
	switch {
	case (c.method == http.MethodGet || c.method == http.MethodHead) && res.get != nil:
		body := res.get(c)
		answer := reply{status: http.StatusOK, body: body, header: map[string]string{"ETag": etag(body), "Allow": allow(res)}}
		if res.status != nil {
			answer.status = res.status(c)
		}
		return answer, nil
	case c.method == http.MethodPatch && res.patch != nil:
		if match := c.request.Header.Get("If-Match"); match != "" && match != "*" && weak(match) != weak(etag(res.get(c))) {
			return reply{}, problem(http.StatusPreconditionFailed, "PreconditionFailed",
				"The ETag supplied did not match the ETag required to change this resource.")
		}
		if fault := res.patch(c); fault != nil {
			return reply{}, fault
		}
		body := res.get(c)
		return reply{status: http.StatusOK, body: body, header: map[string]string{"ETag": etag(body)}}, nil
	case c.method == http.MethodPost && res.post != nil:
		return res.post(c)
	case c.method == http.MethodDelete && res.delete != nil:
		return res.delete(c)
	}
	fault := problem(http.StatusMethodNotAllowed, "OperationNotAllowed", "The HTTP method is not allowed on this resource.")
	fault.allow = allow(res)
	return reply{}, fault
}

func allow(res *resource) string {
	var methods []string
	for _, m := range []struct {
		name string
		has  bool
	}{{"GET, HEAD", res.get != nil}, {"PATCH", res.patch != nil}, {"POST", res.post != nil}, {"DELETE", res.delete != nil}} {
		if m.has {
			methods = append(methods, m.name)
		}
	}
	return strings.Join(methods, ", ")
}

func etag(body object) string {
	text, _ := json.Marshal(body) // documents have no values that cannot be encoded
	sum := fnv.New64a()
	_, _ = sum.Write(text) // never fails
	return fmt.Sprintf("W/\"%x\"", sum.Sum64())
}

// weak removes the mark of a weak ETag, because clients disagree whether to send it.
func weak(tag string) string { return strings.TrimPrefix(tag, "W/") }

// text returns a string in the body; "" if it is absent.
func (c *call) text(key string) string {
	value, _ := c.body[key].(string)
	return value
}

// fault is an error answer with one message of DMTF's Base registry.
type fault struct {
	status  int
	id      string // in the registry
	message string
	related string // JSON pointer of the property that the message is about
	allow   string
}

func problem(status int, id, format string, args ...any) *fault {
	return &fault{status: status, id: id, message: fmt.Sprintf(format, args...)}
}

func done(err error) (reply, *fault) {
	if err != nil {
		return reply{}, problem(http.StatusInternalServerError, "InternalError", "The request failed due to an internal service error: %v",
			err)
	}
	return reply{status: http.StatusNoContent}, nil
}

// badParameter is the error of an action with a wrong parameter.
func (c *call) badParameter(name, value string) *fault {
	if _, given := c.body[name]; !given {
		return missingParameter(name)
	}
	return about(name, "ActionParameterNotSupported", "The value '%s' for the parameter %s is not supported.", value, name)
}

// about is the error of a request whose property or parameter is wrong.
func about(name, id, format string, args ...any) *fault {
	f := problem(http.StatusBadRequest, id, format, args...)
	f.related = "#/" + name
	return f
}

func missingParameter(name string) *fault {
	return about(name, "ActionParameterMissing", "The action requires the parameter %s to be present in the request body.", name)
}

func badProperty(name string, value any) *fault {
	return about(name, "PropertyValueNotInList", "The value '%v' for the property %s is not in the list of acceptable values.", value, name)
}

func notWritable(name string) *fault {
	return about(name, "PropertyNotWritable", "The property %s is a read only property and cannot be assigned a value.", name)
}

// base is the Base registry whose messages the errors cite.
const base = "Base.1.5"

func (f *fault) reply() reply {
	info := object{
		"@odata.type": "#Message.v1_1_1.Message", "MessageId": base + "." + f.id, "Message": f.message, "Severity": "Critical",
		"MessageSeverity": "Critical", "Resolution": "Correct the request and resubmit it.",
	}
	if f.related != "" {
		info["RelatedProperties"] = []string{f.related}
	}
	answer := reply{status: f.status, body: object{"error": object{
		"code": base + "." + f.id, "message": f.message, "@Message.ExtendedInfo": []object{info},
	}}}
	if f.allow != "" {
		answer.header = map[string]string{"Allow": f.allow}
	}
	return answer
}

// success is the message of what succeeded. Clients of old and new schemas look for its severity.
func success() object {
	return object{
		"MessageId": base + ".Success", "Message": "Successfully Completed Request", "Severity": "OK", "MessageSeverity": "OK",
		"Resolution": "None",
	}
}

// document makes a resource of a schema, as in "ComputerSystem.v1_13_0".
func document(path, schema, name string, fields object) object {
	kind, _, _ := strings.Cut(schema, ".")
	doc := object{
		"@odata.id": path, "@odata.type": "#" + schema + "." + kind,
		"Id": path[strings.LastIndex(path, "/")+1:], "Name": name,
	}
	for key, value := range fields {
		doc[key] = value
	}
	return doc
}

// collection makes a collection of resources of a kind.
func collection(path, kind string, members []string) object {
	return object{
		"@odata.id": path, "@odata.type": "#" + kind + "Collection." + kind + "Collection", "Name": kind + " Collection",
		"Members": links(members...), "Members@odata.count": len(members),
	}
}

func link(path string) object { return object{"@odata.id": path} }

func links(paths ...string) []object {
	all := []object{}
	for _, path := range paths {
		all = append(all, link(path))
	}
	return all
}

func healthy() object { return object{"State": "Enabled", "Health": "OK", "HealthRollup": "OK"} }
