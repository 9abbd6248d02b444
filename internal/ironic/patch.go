package ironic

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
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
	for _, op := range p {
		if op.Path == path {
			return true
		}
	}
	return false
}

// PatchNode applies edits to a node and returns Ironic's answer, which is the whole node; an empty patch reads it. This process
// never sends two edits of one node at the same time. Ironic may lose an edit of a map if another client edits the map at the same
// time (reference/ironic.md#patching-a-node): check the next read of the node with Patch.Holds.
func (c *Client) PatchNode(ctx context.Context, id string, patch Patch) (*Node, error) {
	if len(patch) == 0 {
		return c.getNode(ctx, id)
	}
	unlock, err := c.locks.lock(ctx, id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	defer c.nodes.invalidate(id)
	err = c.defect.check(ctx, c, func() (string, string, error) {
		node, err := c.getNode(ctx, id)
		if err != nil {
			return "", "", err
		}
		return node.Driver, node.ConductorGroup, nil
	})
	if err != nil {
		return nil, err
	}
	path := "nodes/" + id
	if patch.Changes("/driver") {
		path += "?reset_interfaces=true"
	}
	for try := 1; ; try++ {
		var node Node
		err := c.Request(ctx, http.MethodPatch, path, patch.body(), &node)
		if IsStatus(err, http.StatusBadRequest, "remove a non-existent object") && try < retries {
			// An earlier try or another client has removed it.
			if patch, err = c.withoutGone(ctx, id, patch); err == nil {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		if err := c.defect.examine(&node); err != nil {
			return nil, err
		}
		return c.redacted(&node), nil
	}
}

// withoutGone returns a patch without the removals of keys that the node does not have.
func (c *Client) withoutGone(ctx context.Context, id string, patch Patch) (Patch, error) {
	node, err := c.getNode(ctx, id)
	if err != nil {
		return nil, err
	}
	maps := map[string]map[string]any{
		"extra": node.Extra, "properties": node.Properties, "driver_info": node.DriverInfo, "instance_info": node.InstanceInfo,
	}
	var kept Patch
	for _, op := range patch {
		attribute, key, isKey := strings.Cut(strings.TrimPrefix(op.Path, "/"), "/")
		if _, exists := maps[attribute][key]; op.Op != nodes.RemoveOp || !isKey || exists {
			kept = append(kept, op)
		}
	}
	return kept, nil
}

// OfExtra returns the edits of keys of extra.
func (p Patch) OfExtra() (edits Patch) {
	for _, op := range p {
		if strings.HasPrefix(op.Path, "/extra/") {
			edits = append(edits, op)
		}
	}
	return edits
}

// OfInterfaces returns the edits of hardware interfaces.
func (p Patch) OfInterfaces() (edits Patch) {
	for _, op := range p {
		if strings.HasSuffix(op.Path, "_interface") {
			edits = append(edits, op)
		}
	}
	return edits
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

// SameJSON reports whether two values have the same JSON encoding: 4 and 4.0 have, "4" and 4 have not.
func SameJSON(a, b any) bool {
	var x, y any
	return Normalise(a, &x) && Normalise(b, &y) && reflect.DeepEqual(x, y)
}

// Normalise converts a value to its decoded JSON form, and reports whether it could be encoded.
func Normalise(v any, into *any) bool {
	text, err := json.Marshal(v)
	return err == nil && json.Unmarshal(text, into) == nil
}
