package ironic

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"sync"

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

// ParentNodeError says that this Ironic has a defect which makes every patched node its own parent.
type ParentNodeError struct {
	Node *Node // the node that was damaged before the defect was known; nil if there is none
}

// Error describes the defect.
func (e *ParentNodeError) Error() string {
	text := "this Ironic has a defect: a change of any node makes the node its own parent. The node can then be neither allocated, " +
		"deployed nor powered. Versions 29.0.5 and 35.0.1, as patched in Debian, have this defect. "
	if e.Node != nil {
		return text + "It has damaged node " + NodeLabel(e.Node)
	}
	return text + "The provider found it on a node that it created for this test and has deleted. Nothing else was changed"
}

// KeyProbe is the key of extra that the test for the defect changes.
const KeyProbe = "terraform_metal_probe"

// parentDefect checks before the first change of a node whether the server has the defect.
type parentDefect struct {
	mu    sync.Mutex
	known bool
	err   *ParentNodeError
}

// The versions of servers that may have the defect: from the first with parent_node to the release that fixes it.
const (
	defectFrom  = versionParentNode
	defectUntil = Microversion(114)
)

// check tests for the defect on a node that it creates, once per Client and only on servers of the affected versions. like returns
// the driver and conductor group for that node.
func (d *parentDefect) check(ctx context.Context, c *Client, like func() (driver, group string, err error)) error {
	unlock, err := c.locks.lock(ctx, "parent_node") // not mu: a caller must be able to stop waiting
	if err != nil {
		return err
	}
	defer unlock()
	if known, err := d.verdict(); known {
		return err
	}
	if _, err := c.api(ctx); err != nil {
		return err
	}
	if c.server < defectFrom || c.server > defectUntil {
		return d.decide(nil)
	}
	driver, group, err := like()
	if err != nil {
		return err
	}
	return d.probe(ctx, c, driver, group)
}

func (d *parentDefect) probe(ctx context.Context, c *Client, driver, group string) error {
	id := NewUUID()
	defer func() {
		_ = c.Request(context.WithoutCancel(ctx), http.MethodDelete, "nodes/"+id, nil, nil)
	}()
	err := c.Request(ctx, http.MethodPost, "nodes", map[string]any{
		"uuid": id, "driver": driver, "conductor_group": group,
		"description": "created by terraform-provider-metal to test this Ironic; may be deleted",
	}, nil)
	if err != nil {
		if IsTransient(err) {
			return err
		}
		if IsStatus(err, http.StatusForbidden, "") {
			return d.decide(nil)
		}
		return nil // the driver is wrong, for example: the first patch will show the defect
	}
	var patch Patch
	patch.Set("/extra/"+KeyProbe, true)
	if err := c.Request(ctx, http.MethodPatch, "nodes/"+id, patch.body(), nil); err != nil {
		return err
	}
	api := *c.service // whose version may be too old to show parent_node
	api.Microversion = min(c.server, newest).String()
	var probe Node
	if err := nodes.Get(ctx, &api, id).ExtractInto(&probe); err != nil {
		return c.wrap(err)
	}
	if probe.ParentNode == id {
		return d.decide(&ParentNodeError{})
	}
	return d.decide(nil)
}

// examine looks for the defect in the answer to a patch.
func (d *parentDefect) examine(node *Node) error {
	if node.ParentNode != node.UUID || node.UUID == "" {
		return nil
	}
	return d.decide(&ParentNodeError{Node: node})
}

// decide records whether the server has the defect, and returns it as an error.
func (d *parentDefect) decide(defect *ParentNodeError) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known, d.err = true, defect
	if defect == nil {
		return nil
	}
	return defect
}

// verdict returns the defect as an error, if it is known whether the server has it.
func (d *parentDefect) verdict() (known bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return true, d.err
	}
	return d.known, nil
}
