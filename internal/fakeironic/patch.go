package fakeironic

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// patchOp is one operation of a JSON patch.
type patchOp struct {
	op, path string
	value    any
}

// String writes the operation as Python prints it.
func (p patchOp) String() string {
	if p.op == "remove" {
		return fmt.Sprintf("{'op': %s, 'path': %s}", pyRepr(p.op), pyRepr(p.path))
	}
	return fmt.Sprintf("{'op': %s, 'path': %s, 'value': %s}", pyRepr(p.op), pyRepr(p.path), pyRepr(p.value))
}

// pathPattern is what Ironic takes for a path: no dots, spaces, colons or escapes.
var pathPattern = regexp.MustCompile(`^(/[\p{L}\p{N}_-]+)+$`)

// patch decodes a JSON patch. Ironic knows three operations only.
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
		if !contains([]string{"op", "path", "value"}, key) {
			return refuse("Additional properties are not allowed (%s was unexpected)", pyRepr(key))
		}
	}
	for _, key := range []string{"op", "path"} {
		if _, given := members[key]; !given {
			return refuse("%s is a required property", pyRepr(key))
		}
	}
	op := patchOp{op: text(members["op"]), path: text(members["path"]), value: members["value"]}
	if !contains([]string{"add", "replace", "remove"}, op.op) {
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

// values returns what the patch gives to a path.
func patchValues(ops []patchOp, path string) []any {
	var out []any
	for _, op := range ops {
		if op.path == path && op.op != "remove" {
			out = append(out, op.value)
		}
	}
	return out
}

// checkPatchable refuses paths outside the fields that may be patched.
func checkPatchable(ops []patchOp, allowed []string) error {
	for _, op := range ops {
		if !contains(allowed, op.field()) {
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

// applyPatch changes document, operation by operation. After an error document is in an undefined state.
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
	store := func(any) {} // puts a list that was made anew back where it was
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

// notIndexable refuses to look into a scalar, with the Python name of its type.
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
