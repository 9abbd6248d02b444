package seed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
)

// Settle checks all records, and makes of them what an Ironic has that was started anew. It returns an error for what no Ironic has, such
// as two nodes of one name. It must be called once, after the last Read.
func (s *Seed) Settle() error {
	nodes, err := s.settleNodes()
	if err != nil {
		return err
	}
	if err := s.settlePorts(nodes); err != nil {
		return err
	}
	return s.settleAllocations(nodes)
}

// settleNodes returns the nodes by UUID.
func (s *Seed) settleNodes() (map[string]map[string]any, error) {
	byUUID, names := map[string]map[string]any{}, map[string]bool{}
	unknown := map[string]bool{}
	for _, node := range s.Nodes {
		if err := s.settleNode(node, unknown); err != nil {
			return nil, fmt.Errorf("node %s: %w", label(node), err)
		}
		uuid, name := api.Text(node["uuid"]), api.Text(node["name"])
		if byUUID[uuid] != nil {
			return nil, fmt.Errorf("node %s: its UUID is there twice", label(node))
		}
		if names[name] {
			return nil, fmt.Errorf("node %s: its name is there twice", label(node))
		}
		byUUID[uuid], names[name] = node, name != ""
	}
	if len(unknown) > 0 {
		s.note("the fake does not know these attributes of nodes, and leaves them out: %s", strings.Join(api.SortedKeys(unknown), ", "))
	}
	return byUUID, nil
}

// notOfNodes are attributes of clients' answers that belong to the answer, not to the node.
var notOfNodes = []string{"links", "states", "ports", "portgroups", "volume"}

// settleNode checks and completes a node. It adds attributes that the fake does not have to unknown.
func (s *Seed) settleNode(node map[string]any, unknown map[string]bool) error {
	for key, value := range node {
		if _, known := api.NodeFieldSince(key); !known {
			if !slices.Contains(notOfNodes, key) {
				unknown[key] = true
			}
			delete(node, key)
			continue
		}
		settled, err := valueOf(key, value)
		if err != nil {
			return err
		}
		node[key] = settled
	}
	if uuid := api.Text(node["uuid"]); !api.IsUUID(uuid) {
		return fmt.Errorf("its uuid %q is not a UUID", uuid)
	}
	if name := api.Text(node["name"]); name != "" && !api.ValidName(name) {
		return fmt.Errorf("no node of Ironic has such a name: it has up to 255 letters, digits and the signs . _ ~ -")
	}
	s.settleCapabilities(node)
	if by := api.Text(node["reservation"]); by != "" {
		s.note("node %s was locked by %s: the fake has it without the lock, as Ironic has after a start of its conductor", label(node), by)
	}
	// of the Ironic from which the record is
	for _, key := range []string{"chassis_uuid", "conductor", "reservation", "target_power_state"} {
		delete(node, key)
	}
	s.settleState(node)
	return nil
}

// settleCapabilities writes capabilities that are an object as the text that Ironic has.
func (s *Seed) settleCapabilities(node map[string]any) {
	object, is := api.Object(node["properties"])["capabilities"].(map[string]any)
	if !is {
		return
	}
	var items []string
	for _, key := range api.SortedKeys(object) {
		items = append(items, key+":"+api.PyText(object[key]))
	}
	text := strings.Join(items, ",")
	s.note("node %s has an object in properties.capabilities, where Ironic reads only a text: the fake has %q", label(node), text)
	api.Object(node["properties"])["capabilities"] = text
}

// The attributes of nodes that are objects or booleans.
var (
	objects = []string{
		"clean_step", "deploy_step", "driver_info", "driver_internal_info", "extra", "instance_info", "network_data",
		"properties", "raid_config", "service_step", "target_raid_config",
	}
	booleans = []string{"automated_clean", "console_enabled", "disable_power_off", "maintenance", "protected", "retired", "secure_boot"}
)

// valueOf returns an attribute of a node in the type that it has in the API.
func valueOf(key string, value any) (any, error) {
	text, isText := value.(string)
	switch {
	case value == nil:
		return nil, nil //nolint:nilnil // null is a value
	case slices.Contains(objects, key):
		if isText { // some formatters of clients write objects as texts
			var read any
			_ = api.Decode([]byte(text), &read) // what is not JSON is no object
			object, is := read.(map[string]any)
			if !is {
				return nil, fmt.Errorf("its %s is a text, and not an object: take the output of -f json", key)
			}
			return object, nil
		}
		if _, isObject := value.(map[string]any); !isObject {
			return nil, fmt.Errorf("its %s is not an object", key)
		}
	case slices.Contains(booleans, key):
		b, valid := api.ParseBool(value)
		if !valid {
			return nil, fmt.Errorf("its %s is %v, and neither true nor false", key, value)
		}
		return b, nil
	case key == "traits":
		if _, isList := value.([]any); !isList {
			return nil, fmt.Errorf("its traits are not a list")
		}
		return api.Texts(value), nil
	case !isText && key != "health":
		return nil, fmt.Errorf("its %s is %v, and not a text", key, value)
	}
	return value, nil
}
