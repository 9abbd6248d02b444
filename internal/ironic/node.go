package ironic

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/big"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rest"
)

// NodeLabel returns the text by which messages identify a node: its name and UUID.
func NodeLabel(n *Node) string {
	if n.Name == "" {
		return n.UUID
	}
	return n.Name + " (" + n.UUID + ")"
}

// Capabilities returns the entries of capabilities in a node's properties, such as "boot_mode:uefi,cpu_vt:true".
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

// Settings are attributes of a node, by name. Of driver_info, properties and extra they have single keys. Attributes and keys that they do not
// name stay as they are.
type Settings map[string]any

// keyed are the attributes whose keys are settings of their own.
var keyed = []string{"driver_info", "properties", "extra"}

// notAtCreation are the attributes that Ironic refuses when a node is created (reference/ironic.md#creating-a-node).
var notAtCreation = []string{"owner", "retired", "retired_reason"}

// Clone returns a copy that can be changed.
func (s Settings) Clone() Settings {
	s = maps.Clone(s)
	for _, attribute := range keyed {
		if keys := s.Keys(attribute); keys != nil {
			s[attribute] = maps.Clone(keys)
		}
	}
	return s
}

// SetKey sets a key of driver_info, properties or extra.
func (s Settings) SetKey(attribute, key string, value any) {
	keys := s.Keys(attribute)
	if keys == nil {
		keys = map[string]any{}
		s[attribute] = keys
	}
	keys[key] = value
}

// Keys returns the keys of driver_info, properties or extra; nil if there are none.
func (s Settings) Keys(attribute string) map[string]any {
	keys, _ := s[attribute].(map[string]any)
	return keys
}

// Text returns an attribute that is a text; "" if there is none.
func (s Settings) Text(attribute string) string {
	text, _ := s[attribute].(string)
	return text
}

// ByPath returns the settings by the paths that a Patch needs, such as "/owner" and "/extra/team".
func (s Settings) ByPath() map[string]any {
	values := map[string]any{}
	for attribute, value := range s {
		if !slices.Contains(keyed, attribute) {
			values["/"+attribute] = value
			continue
		}
		for key, value := range s.Keys(attribute) {
			values["/"+attribute+"/"+key] = value
		}
	}
	return values
}

// Scalar returns a JSON value as text, unless it is an object, a list or null.
func Scalar(value any) (text string, ok bool) {
	switch v := value.(type) {
	case map[string]any, []any, nil:
		return "", false
	case float64:
		return big.NewFloat(v).Text('f', -1), true
	}
	return fmt.Sprint(value), true
}

// ToNodeCreateMap returns the body of the request that creates a node. Empty values are left to Ironic. gophercloud's type lacks half of the
// attributes.
func (s Settings) ToNodeCreateMap() (map[string]any, error) {
	body := maps.Clone(s)
	maps.DeleteFunc(body, func(attribute string, value any) bool {
		return value == "" || slices.Contains(notAtCreation, attribute) || slices.Contains(keyed, attribute) && len(s.Keys(attribute)) == 0
	})
	return body, nil
}

// CreateNode creates a node, whose first state is enroll. If the answer is lost, CreateNode checks whether the node exists before
// it sends the request again. The caller chooses the UUID, and sends afterwards what Ironic refuses at creation, such as the owner.
func (c *Client) CreateNode(ctx context.Context, id string, s Settings) (*Node, error) {
	err := c.defect.check(ctx, c, func() (string, string, error) { return s.Text("driver"), s.Text("conductor_group"), nil })
	if err != nil {
		return nil, err
	}
	s = maps.Clone(s)
	s["uuid"] = id
	var node *Node
	err = c.create(ctx, func(ctx context.Context) error {
		api, err := c.api(ctx)
		if err != nil {
			return err
		}
		var made Node
		if err := nodes.Create(ctx, api, s).ExtractInto(&made); err != nil {
			return c.wrap(ctx, err)
		}
		node = &made
		return nil
	}, func(ctx context.Context) error {
		var err error
		node, err = c.getNode(ctx, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return node, nil
}

// create sends a POST that must not be executed twice. After an error that leaves the result open, it calls look, which reads the
// object by the UUID that the caller chose; a 404 means that the POST may be sent again. It also looks after an interruption, so
// that the caller can record an object that exists.
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
		uncertain := IsInterrupted(err) || IsTransient(err) || (try > 1 && IsStatus(err, http.StatusConflict, ""))
		if !uncertain {
			return err
		}
		answered, stop := rest.Outlast(ctx)
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
		if err := rest.Sleep(ctx, FirstBackoff<<min(try-1, 3)); err != nil {
			return err
		}
	}
}

// Node reads a node by UUID or name now.
func (c *Client) Node(ctx context.Context, ref string) (*Node, error) { return c.getNode(ctx, ref) }

// LastError returns last_error of a node as its states show it, also to users from whom the node itself hides it
// (reference/ironic.md#hidden-fields).
func (c *Client) LastError(ctx context.Context, id string) (text string, hidden bool, err error) {
	var states struct {
		LastError string `json:"last_error"`
	}
	err = c.Request(ctx, http.MethodGet, "nodes/"+id+"/states", nil, &states)
	hidden = hideText(&states.LastError)
	return c.Redact(states.LastError), hidden, err
}

// NodeForRefresh returns a node by UUID for a refresh. Reads that arrive together are answered from one list, which may be up to a
// minute old but is newer than the last write of this process to the node.
func (c *Client) NodeForRefresh(ctx context.Context, id string) (*Node, error) {
	return c.nodes.get(ctx, id)
}

func (c *Client) getNode(ctx context.Context, ref string) (*Node, error) {
	api, err := c.api(ctx)
	if err != nil {
		return nil, err
	}
	var node Node
	if err := nodes.Get(ctx, api, url.PathEscape(ref)).ExtractInto(&node); err != nil {
		return nil, c.wrap(ctx, err)
	}
	return c.redacted(&node), nil
}

// redacted returns a node without the secrets that Ironic repeats in its messages, and with the key that Ironic does not mask masked.
func (c *Client) redacted(n *Node) *Node {
	if n.DriverInfo[kgKey] != nil {
		n.DriverInfo[kgKey] = Masked
	}
	n.LastError, n.MaintenanceReason = c.words(n.LastError), c.cfg.Secrets.Redact(n.MaintenanceReason)
	return n
}

// words returns a message of Ironic without secrets, and printable, because it becomes an attribute that plans show.
func (c *Client) words(text string) string { return rest.Printable(c.cfg.Secrets.Redact(text)) }

// ListNodesByID returns all nodes with all fields by UUID.
func (c *Client) ListNodesByID(ctx context.Context) (map[string]*Node, error) {
	all, err := c.ListNodes(ctx, NodeFilter{})
	if err != nil {
		return nil, err
	}
	return ByUUID(all, func(n *Node) string { return n.UUID }), nil
}

// NodeFilter selects nodes on the server. nil and empty fields select all (reference/ironic.md#filters-of-node-lists).
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

// ListNodes returns the nodes with all fields, including child nodes.
func (c *Client) ListNodes(ctx context.Context, filter NodeFilter) ([]Node, error) {
	query, err := c.detailQuery(ctx, filter)
	if err != nil {
		return nil, err
	}
	return c.listNodes(ctx, query)
}

// StreamNodes yields the nodes, including child nodes, while it reads the pages of their list: with all fields, or with the given
// ones. limit is the most nodes that the reader wants; 0: all.
func (c *Client) StreamNodes(ctx context.Context, filter NodeFilter, limit int64, fields ...string) iter.Seq2[*Node, error] {
	return func(yield func(*Node, error) bool) {
		query, err := c.detailQuery(ctx, filter)
		if err != nil {
			yield(nil, err)
			return
		}
		if len(fields) > 0 {
			asked, err := c.visibly(ctx, fields)
			if err != nil {
				yield(nil, err)
				return
			}
			query.Del("detail")
			query.Set("fields", asked)
		}
		for node, err := range Stream(ctx, c, "nodes", "nodes", limited(query, limit), func(n *Node) string { return n.UUID }) {
			if node != nil {
				c.redacted(node)
			}
			if !yield(node, err) {
				return
			}
		}
	}
}

// limited asks for pages of at most the given size; 0: of the size that Ironic chooses.
func limited(query url.Values, limit int64) url.Values {
	if limit > 0 {
		query.Set("limit", fmt.Sprint(limit))
	}
	return query
}

func (c *Client) listNodes(ctx context.Context, query url.Values) ([]Node, error) {
	all, err := List[Node](ctx, c, "nodes", "nodes", query)
	for i := range all {
		c.redacted(&all[i])
	}
	return all, err
}

// nodeQuery returns the query of a filter. It includes child nodes where the server supports them, because otherwise a node that a
// defect has made its own parent would be missing (reference/ironic.md#a-node-that-is-its-own-parent).
func (c *Client) nodeQuery(ctx context.Context, filter NodeFilter) (url.Values, error) {
	version, err := c.Microversion(ctx)
	if err != nil {
		return nil, err
	}
	query := filter.query()
	if version >= VersionParentNode {
		query.Set("include_children", "true")
	}
	return query, nil
}

// detailQuery is nodeQuery for lists with all fields.
func (c *Client) detailQuery(ctx context.Context, filter NodeFilter) (url.Values, error) {
	if err := c.Requires(ctx, versionDetail, "listing nodes"); err != nil {
		return nil, err
	}
	query, err := c.nodeQuery(ctx, filter)
	if err == nil {
		query.Set("detail", "true")
	}
	return query, err
}

// Validate asks Ironic to validate the interfaces of a node, which changes nothing. It returns only whether Ironic does that.
func (c *Client) Validate(ctx context.Context, id string) error {
	return c.Request(ctx, http.MethodGet, "nodes/"+url.PathEscape(id)+"/validate", nil, nil)
}

var macPattern = regexp.MustCompile(`^[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}$`)

// FindNode returns a node by UUID, name, the MAC address of a port, or "bmc:ADDRESS". It returns an error if no node or several
// nodes match.
func (c *Client) FindNode(ctx context.Context, ref string) (*Node, error) {
	if address, ok := strings.CutPrefix(ref, "bmc:"); ok {
		return c.findNodeByBMC(ctx, address)
	}
	if !macPattern.MatchString(ref) {
		return c.getNode(ctx, ref)
	}
	address := strings.ToLower(strings.ReplaceAll(ref, "-", ":"))
	ports, err := List[Port](ctx, c, "ports/detail", "ports", url.Values{"address": {address}})
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

// DeleteNode deletes a node and its ports. It succeeds if the node does not exist.
func (c *Client) DeleteNode(ctx context.Context, id string) error {
	api, err := c.api(ctx)
	if err != nil {
		return err
	}
	defer c.nodes.invalidate(id)
	err = c.wrap(ctx, nodes.Delete(ctx, api, id).ExtractErr())
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
		return c.wrap(ctx, nodes.SetMaintenance(ctx, api, id, nodes.MaintenanceOpts{Reason: reason}).ExtractErr())
	}
	return c.wrap(ctx, nodes.UnsetMaintenance(ctx, api, id).ExtractErr())
}

// SetTraits adds and removes single traits of a node and keeps the others.
func (c *Client) SetTraits(ctx context.Context, id string, add, remove []string) error {
	unlock, err := c.locks.lock(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	defer c.nodes.invalidate(id)
	for _, trait := range add {
		if err := c.Request(ctx, http.MethodPut, "nodes/"+id+"/traits/"+url.PathEscape(trait), nil, nil); err != nil {
			return fmt.Errorf("add trait %s: %w", trait, err)
		}
	}
	for _, trait := range remove {
		err := c.Request(ctx, http.MethodDelete, "nodes/"+id+"/traits/"+url.PathEscape(trait), nil, nil)
		if err != nil && !IsNotFound(err) {
			return fmt.Errorf("remove trait %s: %w", trait, err)
		}
	}
	return nil
}

// Masked stands in Ironic's answers for a secret value (reference/ironic.md#masked-secrets).
const Masked = "******"

// secretWords are the words by which Ironic recognises keys whose values it masks (reference/ironic.md#masked-secrets).
var secretWords = []string{"password", "secret", "token", "passphrase", "credential"}

// kgKey is the key of driver_info for the key of a BMC, a secret that Ironic does not mask (reference/ironic.md#ipmi).
const kgKey = "ipmi_hex_kg_key"

// IsSecretKey reports whether the value of a key of driver_info is a secret.
func IsSecretKey(key string) bool {
	key = strings.ToLower(key)
	if key == kgKey {
		return true
	}
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

// ListNodeFields returns only the given fields of the nodes, including child nodes, so that a list of thousands stays small.
func (c *Client) ListNodeFields(ctx context.Context, filter NodeFilter, fields []string) ([]Node, error) {
	query, err := c.nodeQuery(ctx, filter)
	if err != nil {
		return nil, err
	}
	asked, err := c.visibly(ctx, fields)
	if err != nil {
		return nil, err
	}
	query.Set("fields", asked)
	return c.listNodes(ctx, query)
}
