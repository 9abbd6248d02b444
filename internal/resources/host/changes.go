package host

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// managed lists what the last applied configuration managed on a host, as paths: those of settings, and "/traits/NAME",
// "/capabilities/NAME", "/ports/MAC", "/port_extra/MAC/KEY", "/members/MAC" (ports in groups), "/port_groups/KEY", "/maintenance", "/power_state/VALUE". Private state keeps it, so that the provider removes from Ironic what is
// removed from the configuration, and leaves alone what was never in it.
type managed []string

const managedKey = "managed"

// noted is private state that a response returns.
type noted interface {
	framework.GettablePrivate
	framework.SettablePrivate
}

func readManaged(ctx context.Context, p framework.GettablePrivate) managed {
	var m managed
	text, _ := p.GetKey(ctx, managedKey)
	_ = json.Unmarshal(text, &m) // absent before the first apply
	return m
}

func (m managed) write(ctx context.Context, p framework.SettablePrivate) diag.Diagnostics {
	text, err := json.Marshal(m)
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("The provider has a bug", err.Error())}
	}
	return p.SetKey(ctx, managedKey, text)
}

// has reports whether a path, or anything below it, is managed.
func (m managed) has(path string) bool {
	return slices.ContainsFunc(m, func(p string) bool { return p == path || strings.HasPrefix(p, path+"/") })
}

// below returns the names directly below a path.
func (m managed) below(path string) []string {
	var names []string
	for _, p := range m {
		if name, ok := strings.CutPrefix(p, path+"/"); ok {
			names = append(names, name)
		}
	}
	return names
}

// and returns what either of two configurations manages.
func (m managed) and(other managed) managed {
	all := slices.Concat(m, other)
	slices.Sort(all)
	return slices.Compact(all)
}

// managedBy returns what a configuration manages.
func (c *model) managedBy(ctx context.Context) managed {
	var m managed
	for path := range c.settings(ctx) {
		m = append(m, path)
	}
	for path := range c.secrets(ctx) {
		m = append(m, path)
	}
	for _, trait := range framework.StringSet(c.Traits) {
		m = append(m, "/traits/"+trait)
	}
	for name := range framework.StringMap(c.Capabilities) {
		m = append(m, "/capabilities/"+name)
	}
	for mac, port := range c.ports(ctx) {
		m = append(m, "/ports/"+mac)
		if framework.IsSet(port.PortGroup) {
			m = append(m, "/members/"+mac)
		}
		for key := range framework.StringMap(port.Extra) {
			m = append(m, "/port_extra/"+mac+"/"+key)
		}
	}
	for key := range c.portGroups(ctx) {
		m = append(m, "/port_groups/"+key)
	}
	if framework.IsSet(c.Maintenance) {
		m = append(m, "/maintenance")
	}
	if framework.IsSet(c.PowerState) {
		m = append(m, "/power_state/"+c.PowerState.ValueString())
	}
	slices.Sort(m)
	return slices.Compact(m)
}

// enrollment returns the node that a configuration creates.
func (c *model) enrollment(ctx context.Context) ironic.Enrollment {
	s := c.encode(ctx, true)
	maps.Copy(s, c.secrets(ctx))
	if text := joinCapabilities(framework.StringMap(c.Capabilities)); text != "" {
		s["/properties/"+capabilitiesKey] = text
	}
	body := s.body()
	e := ironic.Enrollment{
		UUID: ironic.NewUUID(), Name: c.Name.ValueString(), ConductorGroup: c.ConductorGroup.ValueString(), Attributes: body,
	}
	e.Driver, _ = body["driver"].(string)
	e.DriverInfo, _ = body["driver_info"].(map[string]any)
	e.Extra, _ = body["extra"].(map[string]any)
	return e
}

// body returns the settings as the JSON object of a node.
func (s settings) body() map[string]any {
	body := map[string]any{}
	for path, value := range s {
		attribute, key, isKey := strings.Cut(path[1:], "/")
		if !isKey {
			body[attribute] = value
			continue
		}
		if body[attribute] == nil {
			body[attribute] = map[string]any{}
		}
		if object, ok := body[attribute].(map[string]any); ok {
			object[key] = value
		}
	}
	return body
}

// patch compares a node with its configuration.
type patch struct {
	node     map[string]any // the node as JSON
	settings settings
	before   managed
	// written are the settings of the prior configuration. Only they tell whether a value that Ironic masks has changed.
	written settings
	secrets settings // always sent
}

// edits returns the patch for Ironic.
func (p patch) edits(capabilities map[string]string) ironic.Patch {
	var edits ironic.Patch
	if driver, ok := p.settings["/driver"]; ok && !p.same("/driver", driver) {
		edits.Set("/driver", driver) // first: Ironic checks interfaces against it
	}
	for _, path := range slices.Sorted(maps.Keys(p.settings)) {
		if path != "/driver" && !p.same(path, p.settings[path]) {
			edits.Set(path, p.settings[path])
		}
	}
	for _, path := range slices.Sorted(maps.Keys(p.secrets)) {
		edits.Set(path, p.secrets[path])
	}
	for _, path := range p.before { // a driver that is not configured any more stays: a node needs one
		_, kept := p.settings[path]
		_, secret := p.secrets[path]
		if !kept && !secret && path != "/driver" && !isPseudo(path) && p.at(path) != nil {
			edits.Remove(path)
		}
	}
	p.editCapabilities(&edits, capabilities)
	return edits
}

func isPseudo(path string) bool {
	for _, prefix := range []string{"/traits/", "/capabilities/", "/ports/", "/port_extra/", "/members/", "/port_groups/", "/maintenance", "/power_state/"} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

// editCapabilities merges capabilities into the one string that holds them.
func (p patch) editCapabilities(edits *ironic.Patch, wanted map[string]string) {
	const path = "/properties/" + capabilitiesKey
	properties, _ := p.node["properties"].(map[string]any)
	now := ironic.Capabilities(properties)
	next := maps.Clone(now)
	for _, name := range p.before.below("/capabilities") {
		delete(next, name)
	}
	for name, value := range wanted {
		next[name] = value
	}
	switch text := joinCapabilities(next); {
	case text == joinCapabilities(now):
	case text == "":
		edits.Remove(path)
	default:
		edits.Set(path, text)
	}
}

func joinCapabilities(m map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, name+":"+m[name])
	}
	return strings.Join(parts, ",")
}

// unsent returns the secrets that Ironic does not have: the configuration that was applied last had none there, or another client has
// removed them.
func (s settings) unsent(before managed, info map[string]any) settings {
	missing := settings{}
	for path, value := range s {
		if _, has := info[strings.TrimPrefix(path, "/driver_info/")]; !has || !slices.Contains(before, path) {
			missing[path] = value
		}
	}
	return missing
}

// at returns the node's value at a path; nil if there is none, or one that means the same.
func (p patch) at(path string) any {
	var value any = p.node
	for step := range strings.SplitSeq(path[1:], "/") {
		m, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = m[step]
	}
	if meansNone(path, value) {
		return nil
	}
	return value
}

// meansNone reports whether a value means the same as null: an attribute's empty string or false. Exceptions are
// automated_clean, where false differs from null, and values inside maps.
func meansNone(path string, value any) bool {
	return value == nil || strings.Count(path, "/") == 1 && (value == "" || value == false && path != "/automated_clean")
}

// same reports whether the node has a value already. A number equals the string that spells it, except in extra, which keeps
// the types of its values.
func (p patch) same(path string, want any) bool {
	have := p.at(path)
	if have == ironic.Masked {
		return ironic.SameJSON(p.written[path], want)
	}
	if have == nil {
		return meansNone(path, want)
	}
	if scalar, ok := framework.Scalars(map[string]any{"": have})[""]; ok && fmt.Sprint(want) == scalar && !strings.HasPrefix(path, "/extra/") {
		return true
	}
	return ironic.SameJSON(have, want)
}

// infoOf returns driver_info of a node. If Ironic hides it, it has what the last apply has written, masked.
func infoOf(node *ironic.Node, before managed) map[string]any {
	if !node.Hidden.DriverInfo {
		return node.DriverInfo
	}
	info := map[string]any{}
	for _, key := range before.below("/driver_info") {
		info[key] = ironic.Masked
	}
	return info
}

// asJSON returns a node as a JSON object.
func asJSON(node *ironic.Node) map[string]any {
	m := map[string]any{}
	text, err := json.Marshal(node)
	if err == nil {
		_ = json.Unmarshal(text, &m) // it was just marshalled
	}
	return m
}
