package host

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/enroll"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// managed lists what the last applied configuration managed on a host, as paths: those of settings, and "/traits/NAME",
// "/capabilities/NAME", "/ports/MAC", "/port_extra/MAC/KEY", "/members/MAC" (ports in groups), "/port_groups/KEY", "/maintenance", "/maintenance_reason", "/power_state/VALUE". Private state keeps it, so that the provider removes from Ironic what is
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
	for path := range c.settings(ctx).ByPath() {
		m = append(m, path)
	}
	for key := range c.secrets(ctx) {
		m = append(m, "/driver_info/"+key)
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
	if framework.IsSet(c.MaintenanceReason) {
		m = append(m, "/maintenance_reason")
	}
	if framework.IsSet(c.PowerState) {
		m = append(m, "/power_state/"+c.PowerState.ValueString())
	}
	slices.Sort(m)
	return slices.Compact(m)
}

// hostSettings returns what a configuration makes of the settings of a node. before is what was managed until now.
func (c *model) hostSettings(ctx context.Context, before managed) *enroll.HostSettings {
	now := c.managedBy(ctx)
	lost := slices.DeleteFunc(slices.Clone(before), func(path string) bool { return slices.Contains(now, path) })
	want := &enroll.HostSettings{
		Settings: c.settings(ctx), Secrets: c.secrets(ctx), Capabilities: framework.StringMap(c.Capabilities), Traits: framework.StringSet(c.Traits),
		WithoutCapabilities: lost.below("/capabilities"), WithoutTraits: lost.below("/traits"), Without: slices.DeleteFunc(lost, isPseudo),
		WrittenInfo: before.below("/driver_info"),
	}
	if framework.IsSet(c.Maintenance) || before.has("/maintenance") {
		want.Maintenance = &machine.Maintenance{On: c.Maintenance.ValueBool(), Reason: c.MaintenanceReason.ValueString()}
	}
	return want
}

// isPseudo reports whether a managed path is not one of a setting.
func isPseudo(path string) bool {
	attribute, _, _ := strings.Cut(path[1:], "/")
	switch attribute {
	case "traits", "capabilities", "ports", "port_extra", "members", "port_groups", "maintenance", "maintenance_reason", "power_state":
		return true
	}
	return false
}
