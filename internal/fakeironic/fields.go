package fakeironic

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// nodeField is an attribute of a node in the API.
type nodeField struct {
	name  string
	since int // first API version that has it
}

// nodeFields are the attributes of a node in the order of Ironic's answers.
var nodeFields = []nodeField{
	{"uuid", 1},
	{"created_at", 1},
	{"updated_at", 1},
	{"automated_clean", 47},
	{"bios_interface", 40},
	{"boot_interface", 31},
	{"boot_mode", 75},
	{"clean_step", 7},
	{"conductor_group", 46},
	{"console_enabled", 1},
	{"console_interface", 31},
	{"deploy_interface", 31},
	{"deploy_step", 44},
	{"description", 51},
	{"disable_power_off", 95},
	{"driver", 1},
	{"driver_info", 1},
	{"driver_internal_info", 3},
	{"extra", 1},
	{"fault", 42},
	{"firmware_interface", 86},
	{"health", 109},
	{"inspection_finished_at", 6},
	{"inspection_started_at", 6},
	{"inspect_interface", 31},
	{"instance_info", 1},
	{"instance_name", 104},
	{"instance_uuid", 1},
	{"last_error", 1},
	{"lessee", 65},
	{"maintenance", 1},
	{"maintenance_reason", 1},
	{"management_interface", 31},
	{"name", 5},
	{"network_data", 66},
	{"network_interface", 20},
	{"owner", 50},
	{"parent_node", 83},
	{"power_interface", 31},
	{"power_state", 1},
	{"properties", 1},
	{"protected", 48},
	{"protected_reason", 48},
	{"provision_state", 1},
	{"provision_updated_at", 1},
	{"raid_config", 12},
	{"raid_interface", 31},
	{"rescue_interface", 38},
	{"reservation", 1},
	{"resource_class", 21},
	{"retired", 61},
	{"retired_reason", 61},
	{"secure_boot", 75},
	{"service_step", 87},
	{"shard", 82},
	{"storage_interface", 33},
	{"target_power_state", 1},
	{"target_provision_state", 1},
	{"target_raid_config", 12},
	{"traits", 37},
	{"vendor_interface", 31},
	{"conductor", 49},
	{"allocation_uuid", 52},
	{"chassis_uuid", 1},
}

// nodeFieldSince returns the first API version that has the attribute.
func nodeFieldSince(name string) (since int, known bool) {
	for _, f := range nodeFields {
		if f.name == name {
			return f.since, true
		}
	}
	return 0, false
}

// summaryFields are the fields of a list without details.
var summaryFields = []string{"instance_uuid", "maintenance", "power_state", "provision_state", "uuid", "name"}

// view selects the form in which the API shows nodes.
type view struct {
	minor  int
	base   string
	fields string // joined by commas; "" means all
	hidden string // the fields that the policy hides, likewise
}

// viewFor returns the form in which a user sees a node; without fields, with all of them.
func (s *Server) viewFor(c *call, n *node, fields []string) view {
	return view{minor: c.minor, base: c.base, fields: strings.Join(fields, ","), hidden: s.Policy.hidden(c, targetOf(n), fields)}
}

// render encodes a node as JSON with the fields that the API version has.
func (s *Server) render(c *call, n *node, v view) json.RawMessage {
	if out, found := n.rendered[v]; found {
		return out
	}
	var wanted map[string]bool
	if v.fields != "" {
		wanted = map[string]bool{}
		for _, name := range strings.Split(v.fields, ",") {
			wanted[name] = true
		}
	}
	uuid := n.str("uuid")
	var out ordered
	for _, f := range nodeFields {
		if f.since > c.minor || wanted != nil && !wanted[f.name] {
			continue
		}
		value := shownField(c, n, f.name)
		if slices.Contains(strings.Split(v.hidden, ","), f.name) {
			value = redaction(f.name)
		}
		out = append(out, member{f.name, value})
	}
	path := "nodes/" + uuid
	out = append(out, member{"links", c.links(path)})
	if wanted == nil {
		out = append(out, member{"ports", c.links(path + "/ports")})
		for _, sub := range []struct {
			name  string
			since int
		}{{"states", 14}, {"portgroups", 24}, {"volume", 32}} {
			if c.minor >= sub.since {
				out = append(out, member{sub.name, c.links(path + "/" + sub.name)})
			}
		}
	}
	if n.rendered == nil {
		n.rendered = map[view][]byte{}
	}
	rendered := encode(out)
	n.rendered[v] = rendered
	return rendered
}

// shownField returns the value of a field as the API shows it, with masked secrets.
func shownField(c *call, n *node, name string) any {
	value := n.fields[name]
	switch name {
	case "driver_info":
		return mask(object(value), c.legacy())
	case "instance_info":
		return maskInstanceInfo(object(value), c.legacy())
	case "driver_internal_info":
		info := object(value)
		if text(info["agent_secret_token"]) != "" {
			info = object(clone(info))
			info["agent_secret_token"] = stars
		}
		return info
	case "provision_state":
		if c.minor < 2 && value == string(available) {
			return nil
		}
	}
	return value
}

// stars replace a secret.
const stars = "******"

// secretWords mark secrets: Ironic masks the value of a key that contains one of them.
var secretWords = []string{
	"adminpass", "admin_pass", "password", "admin_password", "auth_token", "new_pass", "auth_password", "secret_uuid", "secret",
	"sys_pswd", "token", "configdrive", "encrypted_key", "private_key", "fernetkey", "sslkey", "passphrase", "chapsecret",
}

// mask returns a copy with masked secrets at any depth of objects. 21.4 does not mask inside lists.
func mask(info map[string]any, legacy bool) map[string]any {
	out := make(map[string]any, len(info))
	for key, value := range info {
		nested, isDict := value.(map[string]any)
		switch {
		case isDict:
			out[key] = mask(nested, legacy)
		case secretKey(key):
			out[key] = stars
		default:
			out[key] = maskList(value, legacy)
		}
	}
	return out
}

func maskList(value any, legacy bool) any {
	list, isList := value.([]any)
	if !isList || legacy {
		return value
	}
	out := make([]any, len(list))
	for i, item := range list {
		out[i] = maskList(item, legacy)
		if dict, isDict := item.(map[string]any); isDict {
			out[i] = mask(dict, legacy)
		}
	}
	return out
}

func secretKey(key string) bool {
	key = strings.ToLower(key)
	for _, word := range secretWords {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}

// maskInstanceInfo masks the secrets, the config drive and the URL of the image.
func maskInstanceInfo(info map[string]any, legacy bool) map[string]any {
	out := mask(info, legacy)
	for _, key := range []string{"configdrive", "image_url"} {
		switch value := out[key].(type) {
		case nil:
		case string:
			if value != "" {
				out[key] = stars
			}
		case map[string]any:
			if len(value) > 0 {
				out[key] = stars
			}
		}
	}
	return out
}

// portField is an attribute of a port.
type portField struct {
	name    string
	since   int
	kind    kind
	initial any
}

// portFields are the attributes of a port in the order of Ironic's answers.
var portFields = []portField{
	{"created_at", 1, kind{}, nil},
	{"updated_at", 1, kind{}, nil},
	{"available_for_dynamic_portgroup", 111, boolKind, true},
	{"category", 101, kind{types: textKind.types, maxLength: 80}, nil},
	{"description", 97, kind{types: textKind.types, maxLength: 255}, nil},
	{"extra", 1, objectKind, nil},
	{"internal_info", 18, kind{}, nil},
	{"is_smartnic", 53, boolKind, false},
	{"local_link_connection", 19, objectKind, nil},
	{"name", 88, textKind, nil},
	{"physical_network", 34, kind{types: textKind.types, maxLength: 64}, nil},
	{"portgroup_uuid", 24, textKind, nil},
	{"pxe_enabled", 19, boolKind, true},
	{"vendor", 100, kind{types: textKind.types, maxLength: 32}, nil},
}

// portSchema is the schema of new and patched ports.
func (s *Server) portSchema() schema {
	rules := schema{name: "port", required: []string{"address", "node_uuid"}}
	rules.members = map[string]kind{"uuid": textKind, "address": stringKind, "node_uuid": textKind}
	for _, f := range portFields {
		if len(f.kind.types) > 0 && f.since <= s.maxMinor() {
			rules.members[f.name] = f.kind
		}
	}
	return rules
}

// showPort returns the port as the API shows it, with the given fields; nil means all.
func showPort(c *call, p *port, fields []string) ordered {
	wants := func(name string) bool { return fields == nil || slices.Contains(fields, name) }
	var out ordered
	for _, m := range (ordered{{"uuid", p.uuid}, {"address", p.address}, {"node_uuid", p.node.str("uuid")}}) {
		if wants(m.key) {
			out = append(out, m)
		}
	}
	for _, f := range portFields {
		if c.minor >= f.since && wants(f.name) {
			out = append(out, member{f.name, p.fields[f.name]})
		}
	}
	return append(out, member{"links", c.links("ports/" + p.uuid)})
}

// portQueryFields returns the fields that the query selects; nil means all.
func portQueryFields(c *call) ([]string, error) {
	if !c.query.Has("fields") {
		return nil, nil
	}
	fields := splitList(c.query["fields"])
	for _, name := range fields {
		known := slices.Contains([]string{"uuid", "address", "node_uuid"}, name)
		for _, f := range portFields {
			if f.name == name {
				known = true
				if f.since > c.minor {
					return nil, notAcceptable()
				}
			}
		}
		if !known {
			return nil, fault(http.StatusBadRequest, "Field(s) \"%s\" are not valid", name)
		}
	}
	return fields, nil
}

func portFieldSince(name string) int {
	for _, f := range portFields {
		if f.name == name {
			return f.since
		}
	}
	return 0
}

// patchablePortFields are the fields of a port that PATCH may change.
func (s *Server) patchablePortFields() []string {
	if s.legacy() {
		return []string{
			"address", "extra", "is_smartnic", "local_link_connection", "node_uuid", "physical_network", "portgroup_uuid", "pxe_enabled",
		}
	}
	return []string{
		"address", "extra", "is_smartnic", "local_link_connection", "node_ident", "node_uuid", "physical_network", "portgroup_uuid",
		"pxe_enabled", "name", "description", "vendor", "category", "available_for_dynamic_portgroup",
	}
}
