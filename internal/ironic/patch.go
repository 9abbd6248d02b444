package ironic

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
)

// Patch is a list of edits of a node. Attributes and keys of maps that it does not name stay as they are.
type Patch []nodes.UpdateOperation

// keyPattern is what all versions of Ironic accept as one step of a patch's path (reference/ironic.md#patching-a-node).
var keyPattern = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// ValidKey reports whether a key of extra, properties, driver_info or instance_info can be changed later. Ironic accepts other
// keys at creation, but a patch cannot address a key with a dot, colon, slash or space.
func ValidKey(key string) bool { return keyPattern.MatchString(key) }

// Set sets the attribute at a path such as "/extra/team".
func (p *Patch) Set(path string, value any) {
	*p = append(*p, nodes.UpdateOperation{Op: nodes.AddOp, Path: path, Value: value})
}

// With returns the patch with one more edit that sets an attribute.
func (p Patch) With(path string, value any) Patch {
	p.Set(path, value)
	return p
}

// extraEdits returns the edits that set keys of a port's or port group's extra and remove others. If a patch cannot address one of them, it
// sends the whole object, with what it has besides.
func extraEdits(has, set map[string]any, without []string) (edits Patch) {
	nameable := true
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if !SameJSON(set[key], has[key]) {
			edits.Set("/extra/"+key, set[key])
			nameable = nameable && ValidKey(key)
		}
	}
	for _, key := range without {
		if _, exists := has[key]; exists {
			edits.Remove("/extra/" + key)
			nameable = nameable && ValidKey(key)
		}
	}
	if nameable {
		return edits
	}
	return Patch{}.With("/extra", extraAfter(has, set, without))
}

// extraAfter returns the extra of a port or port group once keys of it are set and others removed.
func extraAfter(has, set map[string]any, without []string) map[string]any {
	after := map[string]any{}
	maps.Copy(after, has)
	for _, key := range without {
		delete(after, key)
	}
	maps.Copy(after, set)
	return after
}

// Replace sets what exists at a path. Ironic refuses the whole patch with status 400 if nothing is there.
func (p *Patch) Replace(path string, value any) {
	*p = append(*p, nodes.UpdateOperation{Op: nodes.ReplaceOp, Path: path, Value: value})
}

// Remove resets the attribute at path to Ironic's default, or removes a key.
func (p *Patch) Remove(path string) {
	switch path {
	case "/automated_clean": // Ironic answers 500 to a remove of these three (reference/ironic.md#patching-a-node)
		*p = append(*p, nodes.UpdateOperation{Op: nodes.ReplaceOp, Path: path, Value: json.RawMessage("null")})
	case "/conductor_group":
		*p = append(*p, nodes.UpdateOperation{Op: nodes.ReplaceOp, Path: path, Value: ""})
	case "/retired", "/protected", "/disable_power_off": // a remove leaves null, which list filters treat neither as true nor as false
		*p = append(*p, nodes.UpdateOperation{Op: nodes.ReplaceOp, Path: path, Value: false})
	default:
		*p = append(*p, nodes.UpdateOperation{Op: nodes.RemoveOp, Path: path})
	}
}

// body returns the patch as JSON objects. gophercloud's own encoding drops empty strings and false.
func (p Patch) body() []map[string]any {
	ops := make([]map[string]any, 0, len(p))
	for _, op := range p {
		m := map[string]any{"op": op.Op, "path": op.Path}
		if op.Op != nodes.RemoveOp {
			m["value"] = op.Value
		}
		ops = append(ops, m)
	}
	return ops
}

// Changes reports whether the patch has an edit of a path.
func (p Patch) Changes(path string) bool {
	return slices.ContainsFunc(p, func(op nodes.UpdateOperation) bool { return op.Path == path })
}

// OfExtra returns the edits of keys of extra.
func (p Patch) OfExtra() Patch {
	return slices.DeleteFunc(slices.Clone(p), func(op nodes.UpdateOperation) bool { return !strings.HasPrefix(op.Path, "/extra/") })
}

// OfInterfaces returns the edits of hardware interfaces.
func (p Patch) OfInterfaces() Patch {
	return slices.DeleteFunc(slices.Clone(p), func(op nodes.UpdateOperation) bool { return !strings.HasSuffix(op.Path, "_interface") })
}

// Holds reports whether a node's extra contains all edits of extra.
func (p Patch) Holds(extra map[string]any) bool {
	for _, op := range p {
		key, ok := strings.CutPrefix(op.Path, "/extra/")
		if !ok {
			continue
		}
		have, exists := extra[key]
		if op.Op == nodes.RemoveOp {
			if exists {
				return false
			}
		} else if !exists || !SameJSON(have, op.Value) {
			return false
		}
	}
	return true
}

// SameJSON reports whether two values mean the same in JSON: 4 and 4.0 do, "4" and 4 do not.
func SameJSON(a, b any) bool {
	var x, y any
	return normalise(a, &x) && normalise(b, &y) && reflect.DeepEqual(x, y)
}

// Spelling returns a value as JSON in one spelling; "" if it cannot be encoded.
func Spelling(v any) string {
	var document any
	if !normalise(v, &document) {
		return ""
	}
	text, _ := json.Marshal(document) //nolint:errchkjson // it was decoded from JSON
	return string(text)
}

// normalise converts a value to its decoded JSON form, with one form for each number, and reports whether it could be encoded.
func normalise(v any, into *any) bool {
	text, err := json.Marshal(v)
	if err != nil || document.Decode(text, into) != nil {
		return false
	}
	*into = sameNumbers(*into)
	return true
}

// sameNumbers gives the numbers in a value the form that all numbers of their value have.
func sameNumbers(value any) any {
	switch value := value.(type) {
	case json.Number:
		return json.Number(document.Digits(value))
	case map[string]any:
		for key, item := range value {
			value[key] = sameNumbers(item)
		}
	case []any:
		for i, item := range value {
			value[i] = sameNumbers(item)
		}
	}
	return value
}
