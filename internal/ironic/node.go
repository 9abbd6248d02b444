package ironic

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
)

// Node is Ironic's node. Attributes that are null in Ironic are zero here.
type Node = nodes.Node

// NodeLabel is how messages call a node: by its name, with the UUID.
func NodeLabel(n *Node) string {
	if n.Name == "" {
		return n.UUID
	}
	return n.Name + " (" + n.UUID + ")"
}

// Capabilities are the entries of capabilities in a node's properties, such as "boot_mode:uefi,cpu_vt:true".
func Capabilities(properties map[string]any) map[string]string {
	out := map[string]string{}
	text, _ := properties["capabilities"].(string)
	for entry := range strings.SplitSeq(text, ",") {
		if name, value, ok := strings.Cut(entry, ":"); ok {
			out[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return out
}

// Enrollment is what a node is created with. Zero values are left to Ironic.
type Enrollment struct {
	UUID           string // chosen by the caller, so that a lost answer does no harm; required
	Name           string
	Driver         string
	DriverInfo     map[string]any
	Properties     map[string]any
	Extra          map[string]any
	ResourceClass  string
	ConductorGroup string
	Description    string
	Lessee         string
	Shard          string
	AutomatedClean *bool
	Interfaces     map[string]string // "deploy" -> "direct"
}

// ToNodeCreateMap makes the request's body; gophercloud's own lacks half of the attributes.
func (e Enrollment) ToNodeCreateMap() (map[string]any, error) {
	body := map[string]any{"uuid": e.UUID, "driver": e.Driver}
	for key, value := range map[string]string{
		"name": e.Name, "resource_class": e.ResourceClass, "conductor_group": e.ConductorGroup,
		"description": e.Description, "lessee": e.Lessee, "shard": e.Shard,
	} {
		if value != "" {
			body[key] = value
		}
	}
	for key, value := range map[string]map[string]any{"driver_info": e.DriverInfo, "properties": e.Properties, "extra": e.Extra} {
		if len(value) > 0 {
			body[key] = value
		}
	}
	if e.AutomatedClean != nil {
		body["automated_clean"] = *e.AutomatedClean
	}
	for name, value := range e.Interfaces {
		body[name+"_interface"] = value
	}
	return body, nil
}

// Enroll creates a node; it begins in state enroll. If the answer is lost, Enroll finds out whether the node exists
// before it asks again. The owner is not part of it: Ironic refuses one at creation (reference ironic-facts.md 2.1).
func (c *Client) Enroll(ctx context.Context, e Enrollment) (*Node, error) {
	err := c.defect.check(ctx, c, func() (string, string, error) { return e.Driver, e.ConductorGroup, nil })
	if err != nil {
		return nil, err
	}
	if e.Name == "" {
		extra := map[string]any{keyEnrolled: true}
		maps.Copy(extra, e.Extra)
		e.Extra = extra
	}
	var node *Node
	err = c.create(ctx, func(ctx context.Context) error {
		api, err := c.api(ctx)
		if err != nil {
			return err
		}
		node, err = nodes.Create(ctx, api, e).Extract()
		return c.wrap(err)
	}, func(ctx context.Context) error {
		var err error
		node, err = c.getNode(ctx, e.UUID)
		return err
	})
	if err != nil {
		return nil, err
	}
	return node, nil
}

// create sends a POST that must not happen twice. After a failure that leaves open whether it happened, look tells: it
// reads the object by the UUID that the caller chose, and answers 404 if the POST may be sent again. It looks after an
// interruption, too, lest there be something that nobody has recorded.
func (c *Client) create(ctx context.Context, post, look func(context.Context) error) error {
	for try := 1; ; try++ {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err := post(ctx)
		if err == nil {
			return nil
		}
		interrupted := ctx.Err() != nil
		uncertain := IsInterrupted(err) || isTransient(err) || (try > 1 && isStatus(err, http.StatusConflict, ""))
		if !uncertain {
			return err
		}
		answered, stop := outlast(ctx)
		found := look(answered)
		stop()
		if found == nil {
			return nil
		}
		if interrupted {
			return ctx.Err()
		}
		if !IsNotFound(found) || try >= retries {
			return err
		}
		if err := sleep(ctx, firstBackoff<<min(try-1, 3)); err != nil {
			return err
		}
	}
}

// Node returns a node by UUID or name as Ironic knows it now.
func (c *Client) Node(ctx context.Context, ref string) (*Node, error) { return c.getNode(ctx, ref) }

// NodeForRefresh returns a node by UUID for a refresh: reads that arrive together are answered from one list, which may
// be some seconds old, but never older than the last write of this process to the node.
func (c *Client) NodeForRefresh(ctx context.Context, id string) (*Node, error) {
	return c.nodes.get(ctx, id)
}

func (c *Client) getNode(ctx context.Context, ref string) (*Node, error) {
	api, err := c.api(ctx)
	if err != nil {
		return nil, err
	}
	node, err := nodes.Get(ctx, api, url.PathEscape(ref)).Extract()
	if err != nil {
		return nil, c.wrap(err)
	}
	return c.hushed(node), nil
}

// hushed is a node as Ironic shows it, without the secrets that Ironic repeats in its messages.
func (c *Client) hushed(n *Node) *Node {
	n.LastError, n.MaintenanceReason = c.secrets.redact(n.LastError), c.secrets.redact(n.MaintenanceReason)
	return n
}

func (c *Client) listNodesByID(ctx context.Context) (map[string]*Node, error) {
	all, err := c.ListNodes(ctx, NodeFilter{})
	if err != nil {
		return nil, err
	}
	return byUUID(all, func(n *Node) string { return n.UUID }), nil
}

// NodeFilter selects nodes on the server; nil and empty fields do not select (reference ironic-facts.md 9.3).
type NodeFilter struct {
	ProvisionState, ResourceClass, ConductorGroup, Owner, Lessee, Project string
	Driver, Fault, Shard, InstanceUUID, DescriptionContains, ChassisUUID  string
	Maintenance, Associated, Retired                                      *bool
}

func (f NodeFilter) query() url.Values {
	q := url.Values{}
	for key, value := range map[string]string{
		"provision_state": f.ProvisionState, "resource_class": f.ResourceClass, "conductor_group": f.ConductorGroup,
		"owner": f.Owner, "lessee": f.Lessee, "project": f.Project, "driver": f.Driver, "fault": f.Fault, "shard": f.Shard,
		"instance_uuid": f.InstanceUUID, "description_contains": f.DescriptionContains, "chassis_uuid": f.ChassisUUID,
	} {
		if value != "" {
			q.Set(key, value)
		}
	}
	for key, value := range map[string]*bool{"maintenance": f.Maintenance, "associated": f.Associated, "retired": f.Retired} {
		if value != nil {
			q.Set(key, fmt.Sprint(*value))
		}
	}
	return q
}

// ListNodes returns the nodes in full detail, child nodes too.
func (c *Client) ListNodes(ctx context.Context, filter NodeFilter) ([]Node, error) {
	query, err := c.nodeQuery(ctx, filter)
	if err != nil {
		return nil, err
	}
	query.Set("detail", "true")
	return c.listNodes(ctx, query)
}

func (c *Client) listNodes(ctx context.Context, query url.Values) ([]Node, error) {
	all, err := list[Node](ctx, c, "nodes", "nodes", query)
	for i := range all {
		c.hushed(&all[i])
	}
	return all, err
}

// nodeQuery is the filter's query with child nodes included, where the server knows of them: a node that a defect has
// made its own parent would be missing otherwise (reference ironic-facts.md 2.5).
func (c *Client) nodeQuery(ctx context.Context, filter NodeFilter) (url.Values, error) {
	version, err := c.Microversion(ctx)
	if err != nil {
		return nil, err
	}
	query := filter.query()
	if version >= versionParentNode {
		query.Set("include_children", "true")
	}
	return query, nil
}

var macPattern = regexp.MustCompile(`^[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}$`)

// FindNode returns a node by any of the names people have for it: UUID, name, the MAC address of a port, or
// "bmc:ADDRESS". Not finding one, or finding several, is an error that says so.
func (c *Client) FindNode(ctx context.Context, ref string) (*Node, error) {
	if address, ok := strings.CutPrefix(ref, "bmc:"); ok {
		return c.findNodeByBMC(ctx, address)
	}
	if !macPattern.MatchString(ref) {
		return c.getNode(ctx, ref)
	}
	address := strings.ToLower(strings.ReplaceAll(ref, "-", ":"))
	ports, err := list[Port](ctx, c, "ports/detail", "ports", url.Values{"address": {address}})
	if err != nil {
		return nil, err
	}
	if len(ports) == 0 {
		return nil, &StatusError{Status: http.StatusNotFound, Message: "no port has the MAC address " + address}
	}
	return c.getNode(ctx, ports[0].NodeUUID)
}

func (c *Client) findNodeByBMC(ctx context.Context, address string) (*Node, error) {
	all, err := c.ListNodes(ctx, NodeFilter{})
	if err != nil {
		return nil, err
	}
	var found []*Node
	for i := range all {
		if BMCAddress(&all[i]) == address {
			found = append(found, &all[i])
		}
	}
	switch len(found) {
	case 0:
		return nil, &StatusError{Status: http.StatusNotFound, Message: "no node has the BMC address " + address}
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%d nodes have the BMC address %s, such as %s and %s: name one by its UUID",
		len(found), address, NodeLabel(found[0]), NodeLabel(found[1]))
}

// DeleteNode removes a node and its ports. That it is gone already is no error.
func (c *Client) DeleteNode(ctx context.Context, id string) error {
	api, err := c.api(ctx)
	if err != nil {
		return err
	}
	defer c.nodes.invalidate(id)
	err = c.wrap(nodes.Delete(ctx, api, id).ExtractErr())
	if IsNotFound(err) {
		return nil
	}
	return err
}

// SetMaintenance puts a node into maintenance with a reason, or takes it out.
func (c *Client) SetMaintenance(ctx context.Context, id string, on bool, reason string) error {
	api, err := c.api(ctx)
	if err != nil {
		return err
	}
	defer c.nodes.invalidate(id)
	if on {
		return c.wrap(nodes.SetMaintenance(ctx, api, id, nodes.MaintenanceOpts{Reason: reason}).ExtractErr())
	}
	return c.wrap(nodes.UnsetMaintenance(ctx, api, id).ExtractErr())
}

// SetTraits adds and removes single traits of a node; those that are not named stay.
func (c *Client) SetTraits(ctx context.Context, id string, add, remove []string) error {
	unlock, err := c.locks.lock(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	defer c.nodes.invalidate(id)
	for _, trait := range add {
		if err := c.do(ctx, http.MethodPut, "nodes/"+id+"/traits/"+url.PathEscape(trait), nil, nil); err != nil {
			return fmt.Errorf("add trait %s: %w", trait, err)
		}
	}
	for _, trait := range remove {
		err := c.do(ctx, http.MethodDelete, "nodes/"+id+"/traits/"+url.PathEscape(trait), nil, nil)
		if err != nil && !IsNotFound(err) {
			return fmt.Errorf("remove trait %s: %w", trait, err)
		}
	}
	return nil
}

// InspectedAt is when a node was last inspected, to the second; zero if it never was.
func InspectedAt(n *Node) time.Time {
	if n.InspectionFinishedAt == nil {
		return time.Time{}
	}
	return n.InspectionFinishedAt.UTC().Truncate(time.Second)
}

// Deployed reports whether something is, or may be, running on a node, or it is reserved for that.
func Deployed(n *Node) bool {
	return n.InstanceUUID != "" || occupied(State(n.ProvisionState))
}

// Withdraw removes a node from Ironic. Operations that are under way end first, failed ones are put right as far as
// needed. A node on which something is deployed, or that is reserved, is a RefusedError even where Ironic would delete
// it, as it does in maintenance (reference ironic-facts.md 7). That it is gone already is no error.
func (c *Client) Withdraw(ctx context.Context, id string, limit time.Duration) error {
	node, err := c.getNode(ctx, id)
	if IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !deletable(node) {
		if node, err = c.Reach(ctx, id, GoalManageable, limit); err != nil {
			return err
		}
	}
	if Deployed(node) {
		reason := reasonDeployed
		if node.InstanceUUID != "" {
			reason = fmt.Sprintf("it is reserved by %s. Destroy its metal_deployment and metal_allocation first", node.InstanceUUID)
		}
		return &RefusedError{Node: node, Goal: GoalManageable, Reason: reason}
	}
	return c.DeleteNode(ctx, id)
}

// deletable reports whether Ironic deletes a node in its present state.
func deletable(n *Node) bool {
	switch State(n.ProvisionState) { //nolint:exhaustive // the states of reference ironic-facts.md 7
	case nodes.Enroll, nodes.Manageable, nodes.Available, nodes.AdoptFail:
		return true
	}
	return false
}

// secretWords are by what Ironic recognises keys whose values it masks (reference ironic-facts.md 2.3).
var secretWords = []string{"password", "secret", "token", "passphrase", "credential"}

// IsSecretKey reports whether the value of a key of driver_info is a secret.
func IsSecretKey(key string) bool {
	key = strings.ToLower(key)
	for _, word := range secretWords {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}

// NodeOfInstance returns the node that an allocation or instance has reserved.
func (c *Client) NodeOfInstance(ctx context.Context, instance string) (*Node, error) {
	found, err := c.ListNodes(ctx, NodeFilter{InstanceUUID: instance})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, &StatusError{Status: http.StatusNotFound, Message: "no node is reserved by " + instance}
	}
	return &found[0], nil
}
