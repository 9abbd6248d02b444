package ironic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"sync"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
)

// Patch is a set of edits of a node. Only what is named changes; everything else in a map such as extra stays.
type Patch []nodes.UpdateOperation

// keyPattern is what Ironic accepts as one step of a patch's path, on every version (reference ironic-facts.md 2.4).
var keyPattern = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// ValidKey reports whether a key of extra, properties, driver_info or instance_info can be changed later on: Ironic
// takes others at creation, but can address no key with a dot, colon, slash or space in a patch.
func ValidKey(key string) bool { return keyPattern.MatchString(key) }

// Set gives the attribute at path, such as "/extra/team", a value.
func (p *Patch) Set(path string, value any) {
	*p = append(*p, nodes.UpdateOperation{Op: nodes.AddOp, Path: path, Value: value})
}

// Remove returns the attribute at path to Ironic's default, or removes a key.
func (p *Patch) Remove(path string) {
	switch path {
	case "/automated_clean": // a remove of these three is a 500 (reference ironic-facts.md 2.4)
		*p = append(*p, nodes.UpdateOperation{Op: nodes.ReplaceOp, Path: path, Value: json.RawMessage("null")})
	case "/conductor_group":
		*p = append(*p, nodes.UpdateOperation{Op: nodes.ReplaceOp, Path: path, Value: ""})
	case "/retired", "/protected": // a remove leaves null, which the filters of lists take for neither true nor false
		*p = append(*p, nodes.UpdateOperation{Op: nodes.ReplaceOp, Path: path, Value: false})
	default:
		*p = append(*p, nodes.UpdateOperation{Op: nodes.RemoveOp, Path: path})
	}
}

// body is the patch as Ironic takes it. gophercloud's own marshalling drops empty strings and false.
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

func (p Patch) changes(path string) bool {
	for _, op := range p {
		if op.Path == path {
			return true
		}
	}
	return false
}

// PatchNode applies edits to a node and returns it as it then is; an empty patch sends nothing. Edits of one node by
// this process never run at the same time, and keys of extra are read back, because Ironic loses concurrent edits of
// one map (reference ironic-facts.md 2.4). A node beside an error means that the patch has arrived, and only extra may not be
// as it was to be.
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
	if patch.changes("/driver") {
		path += "?reset_interfaces=true"
	}
	for try := 1; ; try++ {
		var node Node
		err := c.do(ctx, http.MethodPatch, path, patch.body(), &node)
		if isStatus(err, http.StatusBadRequest, "remove a non-existent object") && try < retries {
			// An earlier try, or somebody else, has removed it.
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
		if !patch.touchesExtra() {
			return c.hushed(&node), nil
		}
		now, err := c.getNode(ctx, id)
		if err != nil {
			return c.hushed(&node), err
		}
		if patch.holds(now.Extra) {
			return now, nil
		}
		if try == retries {
			return now, fmt.Errorf("node %s: others keep overwriting extra at the same time", NodeLabel(now))
		}
	}
}

// withoutGone is a patch of a node without the removals of keys that it does not have.
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

func (p Patch) touchesExtra() bool {
	for _, op := range p {
		if strings.HasPrefix(op.Path, "/extra/") {
			return true
		}
	}
	return false
}

// holds reports whether the edits of extra are all there.
func (p Patch) holds(extra map[string]any) bool {
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

// SameJSON reports whether two values are the same once written as JSON: 4 and 4.0 are, "4" and 4 are not.
func SameJSON(a, b any) bool {
	var x, y any
	return normalise(a, &x) && normalise(b, &y) && reflect.DeepEqual(x, y)
}

func normalise(v any, into *any) bool {
	text, err := json.Marshal(v)
	return err == nil && json.Unmarshal(text, into) == nil
}

// ParentNodeError says that this Ironic has the defect that makes every patched node its own parent.
type ParentNodeError struct {
	Node *Node // the node that was damaged before the defect was known; nil if none was
}

// Error tells what the defect does.
func (e *ParentNodeError) Error() string {
	text := "this Ironic has a defect: a change of any node makes the node its own parent, after which it can be neither allocated, " +
		"deployed nor powered (known of 29.0.5 and 35.0.1 as patched in Debian)"
	if e.Node != nil {
		return text + "; it has happened to node " + NodeLabel(e.Node)
	}
	return text + "; it was found out on a node made for this test, which is deleted again; nothing else was changed"
}

// keyProbe is the key of extra by which the defect is tried out.
const keyProbe = "terraform_metal_probe"

// parentDefect finds out, before the first change of a node, whether the server has the defect.
type parentDefect struct {
	mu    sync.Mutex
	known bool
	err   *ParentNodeError
}

// Versions between which a server may have the defect: those that know parent_node, up to the release that has it right.
const (
	defectFrom  = versionParentNode
	defectUntil = Microversion(114)
)

// check tries the defect out on a node of its own, once for a Client, on servers of the versions in question. like says
// what driver and conductor group the node can have.
func (d *parentDefect) check(ctx context.Context, c *Client, like func() (driver, group string, err error)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known {
		return d.verdict()
	}
	if _, err := c.api(ctx); err != nil {
		return err
	}
	if c.server < defectFrom || c.server > defectUntil {
		d.known = true
		return nil
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
		_ = c.do(context.WithoutCancel(ctx), http.MethodDelete, "nodes/"+id, nil, nil)
	}()
	err := c.do(ctx, http.MethodPost, "nodes", map[string]any{
		"uuid": id, "driver": driver, "conductor_group": group,
		"description": "made by terraform-provider-metal to test this Ironic; may be deleted",
	}, nil)
	if err != nil {
		if isTransient(err) {
			return err
		}
		d.known = isStatus(err, http.StatusForbidden, "")
		return nil // may not create nodes, or the driver is wrong: the first patch will tell
	}
	var patch Patch
	patch.Set("/extra/"+keyProbe, true)
	if err := c.do(ctx, http.MethodPatch, "nodes/"+id, patch.body(), nil); err != nil {
		return err
	}
	api := *c.service // which may speak a version too old to show parent_node
	api.Microversion = min(c.server, newest).String()
	probe, err := nodes.Get(ctx, &api, id).Extract()
	if err != nil {
		return c.wrap(err)
	}
	d.known = true
	if probe.ParentNode == id {
		d.err = &ParentNodeError{}
	}
	return d.verdict()
}

// examine looks for the defect in the answer to a patch.
func (d *parentDefect) examine(node *Node) error {
	if node.ParentNode != node.UUID || node.UUID == "" {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known, d.err = true, &ParentNodeError{Node: node}
	return d.err
}

func (d *parentDefect) verdict() error {
	if d.err != nil {
		return d.err
	}
	return nil
}
