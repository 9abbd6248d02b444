package ironic

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// KindParentDefect is the kind of an error which says that this Ironic has a defect that makes every patched node its own parent.
const KindParentDefect fault.Kind = "parent_node"

// ParentDefect returns the error of KindParentDefect, with the node in About that was damaged before the defect was known; nil if there
// is none.
func ParentDefect(node *Node) error {
	e := &fault.Error{
		Kind: KindParentDefect, About: node,
		Advice: "Upgrade Ironic, or ask your distribution for the corrected package. " +
			"Until then the provider changes nothing else through this Ironic.",
	}
	e.Fact = "this Ironic has a defect: a change of any node makes the node its own parent. The node can then be neither allocated, " +
		"deployed nor powered. Versions 29.0.5 and 35.0.1, as patched in Debian, have this defect. "
	if node != nil {
		e.Fact += "It has damaged node " + NodeLabel(node)
	} else {
		e.Fact += "The provider found it on a node that it created for this test and has deleted. Nothing else was changed"
	}
	return e
}

// KeyProbe is the key of extra that the test for the defect changes.
const KeyProbe = "terraform_metal_probe"

// parentDefect checks before the first change of a node whether the server has the defect.
type parentDefect struct {
	mu    sync.Mutex
	known bool
	err   error // the defect; nil: it has none
}

// The versions of servers that may have the defect: from the first with parent_node to the release that fixes it.
const (
	defectFrom  = api.VersionParentNode
	defectUntil = api.Microversion(114)
)

// MayHaveParentDefect reports whether servers with a highest API version may have the defect.
func MayHaveParentDefect(server api.Microversion) bool {
	return server >= defectFrom && server <= defectUntil
}

// check tests for the defect on a node that it creates, once per Client and only on servers of the affected versions. like returns
// the driver and conductor group for that node.
func (d *parentDefect) check(ctx context.Context, c *Client, like func() (driver, group string, err error)) error {
	unlock, err := c.Lock(ctx, "parent_node") // not mu: a caller must be able to stop waiting
	if err != nil {
		return err
	}
	defer unlock()
	if known, err := d.verdict(); known {
		return err
	}
	server, err := c.Highest(ctx)
	if err != nil {
		return err
	}
	if !MayHaveParentDefect(server) {
		return d.decide(nil)
	}
	driver, group, err := like()
	if err != nil {
		return err
	}
	return d.probe(ctx, c, driver, group)
}

// ProbeName begins the name of the test node. It has a name, so that no discovery takes it for a new machine if the run is killed before it
// has deleted the node. The next run that tests deletes such nodes.
const (
	ProbeName        = "terraform-metal-probe-"
	probeDescription = "created by terraform-provider-metal to test this Ironic; may be deleted"
	probeAge         = 10 * time.Minute // no test takes longer
)

func (d *parentDefect) probe(ctx context.Context, c *Client, driver, group string) error {
	c.sweepProbes(ctx)
	id := NewUUID()
	defer func() {
		_ = c.Request(context.WithoutCancel(ctx), http.MethodDelete, "nodes/"+id, nil, nil)
	}()
	err := c.Request(ctx, http.MethodPost, "nodes", map[string]any{
		"uuid": id, "name": ProbeName + id, "driver": driver, "conductor_group": group, "description": probeDescription,
	}, nil)
	if err != nil {
		if api.IsTransient(err) {
			return err
		}
		if api.IsForbidden(err) {
			return d.decide(nil)
		}
		return nil // the driver is wrong, for example: the first patch will show the defect
	}
	var patch Patch
	patch.Set("/extra/"+KeyProbe, true)
	if err := c.Request(ctx, http.MethodPatch, "nodes/"+id, patch.body(), nil); err != nil {
		return err
	}
	var probe Node
	if err := nodes.Get(ctx, c.NewestService(), id).ExtractInto(&probe); err != nil {
		return c.Wrap(ctx, err)
	}
	if probe.ParentNode == id {
		return d.decide(ParentDefect(nil))
	}
	return d.decide(nil)
}

// sweepProbes deletes the test nodes that killed runs have left. It only logs a failure. A node that the defect has harmed is its own
// child, and children are in lists only on request.
func (c *Client) sweepProbes(ctx context.Context) {
	query := url.Values{"description_contains": {probeDescription}, "include_children": {"true"}, "detail": {"true"}}
	var answer struct {
		Nodes []Node `json:"nodes"`
	}
	service := c.NewestService()
	_, err := service.Get(ctx, service.ServiceURL("nodes")+"?"+query.Encode(), &answer, nil)
	for _, n := range answer.Nodes {
		if !strings.HasPrefix(n.Name, ProbeName) || !clock.IsOld(n.CreatedAt, c.ServerNow(), probeAge) {
			continue
		}
		if derr := c.Request(ctx, http.MethodDelete, "nodes/"+n.UUID, nil, nil); derr != nil {
			err = derr
		}
	}
	if err != nil {
		c.Logger().DebugContext(ctx, "could not delete the test nodes of killed runs", "error", c.Wrap(ctx, err))
	}
}

// examine looks for the defect in the answer to a patch.
func (d *parentDefect) examine(node *Node) error {
	if node.ParentNode != node.UUID || node.UUID == "" {
		return nil
	}
	return d.decide(ParentDefect(node))
}

// decide records whether the server has the defect, and returns it as an error.
func (d *parentDefect) decide(defect error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known, d.err = true, defect
	return defect
}

// verdict returns the defect as an error, if it is known whether the server has it.
func (d *parentDefect) verdict() (known bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known, d.err
}
