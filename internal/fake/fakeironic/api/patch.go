package api

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// PatchOp is one operation of a JSON patch.
type PatchOp struct {
	Op, Path string
	Value    any
}

// String formats the operation as Python's repr does.
func (p PatchOp) String() string {
	if p.Op == "remove" {
		return fmt.Sprintf("{'op': %s, 'path': %s}", PyRepr(p.Op), PyRepr(p.Path))
	}
	return fmt.Sprintf("{'op': %s, 'path': %s, 'value': %s}", PyRepr(p.Op), PyRepr(p.Path), PyRepr(p.Value))
}

// pathPattern matches the paths that Ironic accepts: no dots, spaces, colons or escapes.
var pathPattern = regexp.MustCompile(`^(/[\p{L}\p{N}_-]+)+$`)

// Patch decodes a JSON patch. Ironic supports only three operations.
func (c *Call) Patch() ([]PatchOp, error) {
	value, err := c.json()
	if err != nil {
		return nil, err
	}
	list, isList := value.([]any)
	if !isList {
		return nil, Fault(http.StatusBadRequest, "Schema error for patch: %s is not of type 'array'", PyRepr(value))
	}
	ops := make([]PatchOp, len(list))
	for i, item := range list {
		if ops[i], err = readOp(item); err != nil {
			return nil, err
		}
	}
	return ops, nil
}

func readOp(item any) (PatchOp, error) {
	refuse := func(format string, args ...any) (PatchOp, error) {
		return PatchOp{}, Fault(http.StatusBadRequest, "Schema error for patch: %s", fmt.Sprintf(format, args...))
	}
	members, isObject := item.(map[string]any)
	if !isObject {
		return refuse("%s is not of type 'object'", PyRepr(item))
	}
	for _, key := range SortedKeys(members) {
		if !slices.Contains([]string{"op", "path", "value"}, key) {
			return refuse("Additional properties are not allowed (%s was unexpected)", PyRepr(key))
		}
	}
	for _, key := range []string{"op", "path"} {
		if _, given := members[key]; !given {
			return refuse("%s is a required property", PyRepr(key))
		}
	}
	op := PatchOp{Op: Text(members["op"]), Path: Text(members["path"]), Value: members["value"]}
	if !slices.Contains([]string{"add", "replace", "remove"}, op.Op) {
		return refuse("%s is not one of ['add', 'replace', 'remove']", PyRepr(members["op"]))
	}
	if !pathPattern.MatchString(op.Path) {
		return refuse("%s does not match '^(/[\\\\w-]+)+$'", PyRepr(members["path"]))
	}
	if _, given := members["value"]; !given && op.Op != "remove" {
		return PatchOp{}, Fault(http.StatusBadRequest, "Couldn't apply patch '{'op': %s, 'path': %s}'. Reason: The operation does not "+
			"contain a 'value' member",
			PyRepr(op.Op), PyRepr(op.Path))
	}
	return op, nil
}

// PatchValues returns the values that the patch sets at a path.
func PatchValues(ops []PatchOp, path string) []any {
	var out []any
	for _, op := range ops {
		if op.Path == path && op.Op != "remove" {
			out = append(out, op.Value)
		}
	}
	return out
}

// CheckPatchable refuses paths outside the allowed fields.
func CheckPatchable(ops []PatchOp, allowed []string) error {
	for _, op := range ops {
		if !slices.Contains(allowed, op.Field()) {
			return Fault(http.StatusBadRequest, "Cannot patch %s. Only the following can be updated: %s", op.Path,
				strings.Join(allowed, ", "))
		}
	}
	return nil
}

// Field is the first part of the path.
func (p PatchOp) Field() string {
	first, _, _ := strings.Cut(p.Path[1:], "/")
	return first
}

// ApplyPatch applies the operations to document in order. After an error the content of document is undefined.
func ApplyPatch(document map[string]any, ops []PatchOp) error {
	for _, op := range ops {
		if err := applyOp(document, op); err != nil {
			return Fault(http.StatusBadRequest, "Couldn't apply patch '%s'. Reason: %s", op, err)
		}
	}
	return nil
}

func applyOp(document map[string]any, op PatchOp) error {
	path := strings.Split(op.Path[1:], "/")
	last := path[len(path)-1]
	var parent any = document
	store := func(any) {} // replaces parent in its own parent, because a changed list is a new slice
	for _, part := range path[:len(path)-1] {
		switch holder := parent.(type) {
		case map[string]any:
			inner, found := holder[part]
			if !found {
				return fmt.Errorf("member '%s' not found in %s", part, PyRepr(holder))
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
	name := map[string]string{"null": "NoneType", "boolean": "bool", "string": "str", "number": "int"}[JSONType(value)]
	//nolint:staticcheck // Ironic's text
	return fmt.Errorf("Document '<class '%s'>' does not support indexing, must be mapping/sequence or support __getitem__", name)
}

func applyToObject(holder map[string]any, key string, op PatchOp) error {
	_, exists := holder[key]
	switch {
	case op.Op == "add" || op.Op == "replace" && exists:
		holder[key] = Clone(op.Value)
	case op.Op == "remove" && exists:
		delete(holder, key)
	default:
		return fmt.Errorf("can't %s a non-existent object '%s'", op.Op, key)
	}
	return nil
}

func applyToList(holder []any, key string, op PatchOp) ([]any, error) {
	at, err := strconv.Atoi(key)
	if key == "-" && op.Op == "add" {
		at, err = len(holder), nil
	}
	if err != nil {
		return nil, fmt.Errorf("'%s' is not a valid sequence index", key)
	}
	switch {
	case op.Op == "add" && at >= 0 && at <= len(holder):
		return slices.Insert(slices.Clone(holder), at, Clone(op.Value)), nil
	case op.Op == "replace" && at >= 0 && at < len(holder):
		out := slices.Clone(holder)
		out[at] = Clone(op.Value)
		return out, nil
	case op.Op == "remove" && at >= 0 && at < len(holder):
		return slices.Delete(slices.Clone(holder), at, at+1), nil
	case op.Op == "add":
		return nil, fmt.Errorf("can't insert outside of list")
	case op.Op == "replace":
		return nil, fmt.Errorf("can't replace outside of list")
	}
	return nil, fmt.Errorf("can't remove a non-existent object '%s'", key)
}
