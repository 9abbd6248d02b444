package fakeironic

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// kind lists the JSON types that a member may have.
type kind struct {
	types     []string // in the order of the error message
	maxLength int
}

// The kinds that many members have.
var (
	stringKind = kind{types: []string{"string"}}
	textKind   = kind{types: []string{"string", "null"}}
	objectKind = kind{types: []string{"object", "null"}}
	boolKind   = kind{types: []string{"string", "boolean", "null"}}
	listKind   = kind{types: []string{"array", "null"}}
	classKind  = kind{types: []string{"string", "null"}, maxLength: 80}
)

// schema checks a body and refuses members that it does not list.
type schema struct {
	name     string // in the error message: "Schema error for <name>: "
	members  map[string]kind
	required []string
}

// check returns the first error in the body.
func (s schema) check(body map[string]any) error {
	for _, key := range sortedKeys(body) {
		k, known := s.members[key]
		if !known {
			return s.fault("Additional properties are not allowed (%s was unexpected)", pyRepr(key))
		}
		if err := s.checkKind(k, body[key]); err != nil {
			return err
		}
	}
	for _, key := range s.required {
		if _, given := body[key]; !given {
			return s.fault("%s is a required property", pyRepr(key))
		}
	}
	return nil
}

// checkKind refuses a value of another kind.
func (s schema) checkKind(k kind, value any) error {
	if !slices.Contains(k.types, jsonType(value)) {
		quoted := make([]string, len(k.types))
		for i, t := range k.types {
			quoted[i] = pyRepr(t)
		}
		return s.fault("%s is not of type %s", pyRepr(value), strings.Join(quoted, ", "))
	}
	if k.maxLength > 0 && utf8.RuneCountInString(text(value)) > k.maxLength {
		return s.fault("%s is too long", pyRepr(value))
	}
	return nil
}

// checkTexts refuses a list with a member that is not a string; name is the name of the body's schema.
func checkTexts(name string, value any) error {
	list, _ := value.([]any)
	for _, item := range list {
		if err := (schema{name: name}).checkKind(stringKind, item); err != nil {
			return err
		}
	}
	return nil
}

// fault returns the error of a body that the schema refuses.
func (s schema) fault(format string, args ...any) error {
	subject := ""
	if s.name != "" {
		subject = " for " + s.name
	}
	return fault(http.StatusBadRequest, "Schema error%s: %s", subject, fmt.Sprintf(format, args...))
}

// jsonType returns the JSON type of a value.
func jsonType(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		return "number"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return ""
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,255}$`)

// validName reports whether a node or an allocation may have the name.
func validName(name string) bool { return namePattern.MatchString(name) }

// readMAC checks a MAC address and returns it in lower case.
func readMAC(value any) (string, error) {
	mac := strings.ToLower(text(value))
	if !macPattern.MatchString(mac) {
		return "", fault(http.StatusBadRequest, "Expected valid MAC address for address: %s", pyText(value))
	}
	return mac, nil
}

var macPattern = regexp.MustCompile(`^[0-9a-f]{2}(:[0-9a-f]{2}){5}$`)

// datapathPattern is the OpenFlow ID of a switch.
var datapathPattern = regexp.MustCompile(`^[0-9a-f]{16}$`)

// checkLink checks local_link_connection and changes its switch_id to lower case.
func checkLink(body map[string]any) error {
	link := object(body["local_link_connection"])
	if len(link) == 0 {
		return nil
	}
	complaint := ""
	for _, key := range sortedKeys(link) {
		if !slices.Contains([]string{"port_id", "switch_id", "hostname", "switch_info", "network_type"}, key) {
			complaint = fmt.Sprintf("Additional properties are not allowed (%s was unexpected)", pyRepr(key))
		}
	}
	for _, key := range []string{"port_id", "switch_id"} {
		if _, given := link[key]; complaint == "" && !given && link["network_type"] != "unmanaged" && link["hostname"] == nil {
			complaint = pyRepr(key) + " is a required property"
		}
	}
	if complaint != "" {
		return fault(http.StatusBadRequest, "Schema error for local_link_connection: %s is not valid under any of the given schemas. Possible root "+
			"cause: %s", pyRepr(link), complaint)
	}
	if id := strings.ToLower(text(link["switch_id"])); id != "" {
		if !macPattern.MatchString(id) && !datapathPattern.MatchString(id) {
			return fault(http.StatusBadRequest, "Expected a MAC address or OpenFlow datapath ID but received %s.", text(link["switch_id"]))
		}
		link["switch_id"] = id
	}
	return nil
}

// patchOp is one operation of a JSON patch.
type patchOp struct {
	op, path string
	value    any
}

// String formats the operation as Python's repr does.
func (p patchOp) String() string {
	if p.op == "remove" {
		return fmt.Sprintf("{'op': %s, 'path': %s}", pyRepr(p.op), pyRepr(p.path))
	}
	return fmt.Sprintf("{'op': %s, 'path': %s, 'value': %s}", pyRepr(p.op), pyRepr(p.path), pyRepr(p.value))
}

// pathPattern matches the paths that Ironic accepts: no dots, spaces, colons or escapes.
var pathPattern = regexp.MustCompile(`^(/[\p{L}\p{N}_-]+)+$`)

// patch decodes a JSON patch. Ironic supports only three operations.
func (c *call) patch() ([]patchOp, error) {
	value, err := c.json()
	if err != nil {
		return nil, err
	}
	list, isList := value.([]any)
	if !isList {
		return nil, fault(http.StatusBadRequest, "Schema error for patch: %s is not of type 'array'", pyRepr(value))
	}
	ops := make([]patchOp, len(list))
	for i, item := range list {
		if ops[i], err = readOp(item); err != nil {
			return nil, err
		}
	}
	return ops, nil
}

func readOp(item any) (patchOp, error) {
	refuse := func(format string, args ...any) (patchOp, error) {
		return patchOp{}, fault(http.StatusBadRequest, "Schema error for patch: %s", fmt.Sprintf(format, args...))
	}
	members, isObject := item.(map[string]any)
	if !isObject {
		return refuse("%s is not of type 'object'", pyRepr(item))
	}
	for _, key := range sortedKeys(members) {
		if !slices.Contains([]string{"op", "path", "value"}, key) {
			return refuse("Additional properties are not allowed (%s was unexpected)", pyRepr(key))
		}
	}
	for _, key := range []string{"op", "path"} {
		if _, given := members[key]; !given {
			return refuse("%s is a required property", pyRepr(key))
		}
	}
	op := patchOp{op: text(members["op"]), path: text(members["path"]), value: members["value"]}
	if !slices.Contains([]string{"add", "replace", "remove"}, op.op) {
		return refuse("%s is not one of ['add', 'replace', 'remove']", pyRepr(members["op"]))
	}
	if !pathPattern.MatchString(op.path) {
		return refuse("%s does not match '^(/[\\\\w-]+)+$'", pyRepr(members["path"]))
	}
	if _, given := members["value"]; !given && op.op != "remove" {
		return patchOp{}, fault(http.StatusBadRequest, "Couldn't apply patch '{'op': %s, 'path': %s}'. Reason: The operation does not contain a 'value' member",
			pyRepr(op.op), pyRepr(op.path))
	}
	return op, nil
}

// patchValues returns the values that the patch sets at a path.
func patchValues(ops []patchOp, path string) []any {
	var out []any
	for _, op := range ops {
		if op.path == path && op.op != "remove" {
			out = append(out, op.value)
		}
	}
	return out
}

// checkPatchable refuses paths outside the allowed fields.
func checkPatchable(ops []patchOp, allowed []string) error {
	for _, op := range ops {
		if !slices.Contains(allowed, op.field()) {
			return fault(http.StatusBadRequest, "Cannot patch %s. Only the following can be updated: %s", op.path, strings.Join(allowed, ", "))
		}
	}
	return nil
}

// field is the first part of the path.
func (p patchOp) field() string {
	first, _, _ := strings.Cut(p.path[1:], "/")
	return first
}

// applyPatch applies the operations to document in order. After an error the content of document is undefined.
func applyPatch(document map[string]any, ops []patchOp) error {
	for _, op := range ops {
		if err := applyOp(document, op); err != nil {
			return fault(http.StatusBadRequest, "Couldn't apply patch '%s'. Reason: %s", op, err)
		}
	}
	return nil
}

func applyOp(document map[string]any, op patchOp) error {
	path := strings.Split(op.path[1:], "/")
	last := path[len(path)-1]
	var parent any = document
	store := func(any) {} // replaces parent in its own parent, because a changed list is a new slice
	for _, part := range path[:len(path)-1] {
		switch holder := parent.(type) {
		case map[string]any:
			inner, found := holder[part]
			if !found {
				return fmt.Errorf("member '%s' not found in %s", part, pyRepr(holder))
			}
			parent, store = inner, func(list any) { holder[part] = list }
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(holder) {
				return fmt.Errorf("list index out of range")
			}
			parent, store = holder[i], func(list any) { holder[i] = list }
		default:
			return notIndexable(parent)
		}
	}
	switch holder := parent.(type) {
	case map[string]any:
		return applyToObject(holder, last, op)
	case []any:
		list, err := applyToList(holder, last, op)
		if err == nil {
			store(list)
		}
		return err
	}
	return notIndexable(parent)
}

// notIndexable refuses a path into a scalar and names its Python type.
func notIndexable(value any) error {
	name := map[string]string{"null": "NoneType", "boolean": "bool", "string": "str", "number": "int"}[jsonType(value)]
	return fmt.Errorf("Document '<class '%s'>' does not support indexing, must be mapping/sequence or support __getitem__", name) //nolint:staticcheck // Ironic's text
}

func applyToObject(holder map[string]any, key string, op patchOp) error {
	_, exists := holder[key]
	switch {
	case op.op == "add" || op.op == "replace" && exists:
		holder[key] = clone(op.value)
	case op.op == "remove" && exists:
		delete(holder, key)
	default:
		return fmt.Errorf("can't %s a non-existent object '%s'", op.op, key)
	}
	return nil
}

func applyToList(holder []any, key string, op patchOp) ([]any, error) {
	at, err := strconv.Atoi(key)
	if key == "-" && op.op == "add" {
		at, err = len(holder), nil
	}
	if err != nil {
		return nil, fmt.Errorf("'%s' is not a valid sequence index", key)
	}
	switch {
	case op.op == "add" && at >= 0 && at <= len(holder):
		return slices.Insert(slices.Clone(holder), at, clone(op.value)), nil
	case op.op == "replace" && at >= 0 && at < len(holder):
		out := slices.Clone(holder)
		out[at] = clone(op.value)
		return out, nil
	case op.op == "remove" && at >= 0 && at < len(holder):
		return slices.Delete(slices.Clone(holder), at, at+1), nil
	case op.op == "add":
		return nil, fmt.Errorf("can't insert outside of list")
	case op.op == "replace":
		return nil, fmt.Errorf("can't replace outside of list")
	}
	return nil, fmt.Errorf("can't remove a non-existent object '%s'", key)
}
