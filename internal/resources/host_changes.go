package resources

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// managed is what the configuration has said about a host before, as paths: those of settings, and "/traits/NAME",
// "/capabilities/NAME", "/ports/MAC", "/maintenance". It is kept in private state, so that what is removed from the
// configuration is removed from Ironic, and what was never in it is left alone.
type managed []string

const managedKey = "managed"

// private is private state, of a request or a response.
type private interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

type settablePrivate interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

func readManaged(ctx context.Context, p private) managed {
	var m managed
	text, _ := p.GetKey(ctx, managedKey)
	_ = json.Unmarshal(text, &m) // absent before the first apply
	return m
}

func (m managed) write(ctx context.Context, p settablePrivate) diag.Diagnostics {
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

// below are the names right below a path.
func (m managed) below(path string) []string {
	var names []string
	for _, p := range m {
		if name, ok := strings.CutPrefix(p, path+"/"); ok {
			names = append(names, name)
		}
	}
	return names
}

// and is what is managed by either of two configurations.
func (m managed) and(other managed) managed {
	all := slices.Concat(m, other)
	slices.Sort(all)
	return slices.Compact(all)
}

// managedBy is what a configuration manages.
func (c *hostModel) managedBy(ctx context.Context) managed {
	var m managed
	for path := range c.settings(ctx) {
		m = append(m, path)
	}
	for path := range c.secrets(ctx) {
		m = append(m, path)
	}
	for _, trait := range stringSet(c.Traits) {
		m = append(m, "/traits/"+trait)
	}
	for name := range stringMap(c.Capabilities) {
		m = append(m, "/capabilities/"+name)
	}
	for mac := range c.ports(ctx) {
		m = append(m, "/ports/"+mac)
	}
	if isSet(c.Maintenance) {
		m = append(m, "/maintenance")
	}
	slices.Sort(m)
	return slices.Compact(m)
}

// enrollment is a configuration as what a node is created with.
func (c *hostModel) enrollment(ctx context.Context) ironic.Enrollment {
	e := ironic.Enrollment{
		UUID: ironic.NewUUID(), DriverInfo: map[string]any{}, Properties: map[string]any{}, Extra: map[string]any{}, Interfaces: map[string]string{},
	}
	settings := c.settings(ctx)
	for path, value := range c.secrets(ctx) {
		settings[path] = value
	}
	for path, value := range settings {
		if key, ok := strings.CutPrefix(path, "/driver_info/"); ok {
			e.DriverInfo[key] = value
		} else if key, ok := strings.CutPrefix(path, "/properties/"); ok {
			e.Properties[key] = value
		} else if key, ok := strings.CutPrefix(path, "/extra/"); ok {
			e.Extra[key] = value
		} else if name, ok := strings.CutSuffix(path, "_interface"); ok {
			e.Interfaces[name[1:]] = fmt.Sprint(value)
		}
	}
	if text := joinCapabilities(stringMap(c.Capabilities)); text != "" {
		e.Properties[capabilitiesKey] = text
	}
	e.Driver, _ = settings["/driver"].(string)
	e.Name, e.ResourceClass, e.ConductorGroup = c.Name.ValueString(), c.ResourceClass.ValueString(), c.ConductorGroup.ValueString()
	e.Description, e.Lessee, e.Shard = c.Description.ValueString(), c.Lessee.ValueString(), c.Shard.ValueString()
	e.AutomatedClean = c.AutomatedClean.ValueBoolPointer()
	return e
}

// patch is what must change on a node for it to be as configured.
type patch struct {
	node     map[string]any // the node as JSON
	settings map[string]any
	before   managed
	// written are the settings of the prior configuration: of what Ironic masks, only that tells whether it has changed.
	written map[string]any
	secrets map[string]any // to be sent in any case
}

// edits are the patch for Ironic.
func (p patch) edits(capabilities map[string]string) ironic.Patch {
	var edits ironic.Patch
	if driver, ok := p.settings["/driver"]; ok && !p.same("/driver", driver) {
		edits.Set("/driver", driver) // first: interfaces are checked against it
	}
	for _, path := range slices.Sorted(maps.Keys(p.settings)) {
		if path != "/driver" && !p.same(path, p.settings[path]) {
			edits.Set(path, p.settings[path])
		}
	}
	for _, path := range slices.Sorted(maps.Keys(p.secrets)) {
		edits.Set(path, p.secrets[path])
	}
	for _, path := range p.before { // a driver that is not written any more stays: a node needs one
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
	for _, prefix := range []string{"/traits/", "/capabilities/", "/ports/", "/maintenance"} {
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

// at is the node's value at a path; nil if there is none, or one that means the same.
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

// meansNone reports whether a value says no more than null does: an attribute's empty text, or false, but not that of
// automated_clean, which has three values. What is in a map means itself.
func meansNone(path string, value any) bool {
	return value == nil || strings.Count(path, "/") == 1 && (value == "" || value == false && path != "/automated_clean")
}

// same reports whether the node has a value already. Numbers and texts of the same look are the same, but in extra, where
// each is shown as what it is.
func (p patch) same(path string, want any) bool {
	have := p.at(path)
	if have == maskedByIronic {
		return ironic.SameJSON(p.written[path], want)
	}
	if have == nil {
		return meansNone(path, want)
	}
	if scalar, ok := scalars(map[string]any{"": have})[""]; ok && fmt.Sprint(want) == scalar && !strings.HasPrefix(path, "/extra/") {
		return true
	}
	return ironic.SameJSON(have, want)
}

// asJSON is a node as JSON.
func asJSON(node *ironic.Node) map[string]any {
	m := map[string]any{}
	text, err := json.Marshal(node)
	if err == nil {
		_ = json.Unmarshal(text, &m) // it was just marshalled
	}
	return m
}
