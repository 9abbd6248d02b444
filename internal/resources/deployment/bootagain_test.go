package deployment

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// live is a live ISO with an image, shared content and host content; empty content is null.
func live(t *testing.T, image, shared, host string, change func(*liveISOModel)) types.Object {
	t.Helper()
	content := func(text string) types.Map {
		if text == "" {
			return types.MapNull(types.StringType)
		}
		return types.MapValueMust(types.StringType, map[string]attr.Value{"c": types.StringValue(text)})
	}
	m := liveISOModel{framework.LiveISO{URL: types.StringValue("http://images/" + image + ".iso"), SharedContent: content(shared), HostContent: content(host), Contains: content("")}}
	if change != nil {
		change(&m)
	}
	object, diags := types.ObjectValueFrom(t.Context(), liveISOTypes(t), m)
	if diags.HasError() {
		t.Fatal(diags)
	}
	return object
}

// unset is a model without optional settings.
func unset() model {
	texts := types.MapNull(types.StringType)
	return model{
		ID: types.StringValue("n"), DeploySteps: types.ListNull(types.StringType), Capabilities: texts, Traits: types.SetNull(types.StringType), RootDevice: texts,
		RebuildTriggers: texts, RestartTriggers: texts, Rescue: types.ObjectNull(rescueTypes),
	}
}

// deployed is a deployment of a live ISO with a machine, as Terraform and Ironic have them.
type deployed struct {
	state   model
	machine bootiso.Machine
	last    wanted
}

// read refreshes the state.
func (d *deployed) read(t *testing.T) {
	t.Helper()
	mode := provision.RescueOf(ironic.State(d.state.ProvisionState.ValueString()))
	d.machine.Rescued = mode != provision.NotRescued
	want := d.state.liveISO(t.Context()).Want()
	want.Artifacts = d.last.Artifacts
	d.state.BootStatus = bootStatus(t.Context(), bootiso.Decide(bootiso.Input{Machine: d.machine, Want: want, Now: time.Now()}).Now)
}

// plan plans a configuration.
func (d *deployed) plan(t *testing.T, config model) (*model, diag.Diagnostics) {
	t.Helper()
	var diags diag.Diagnostics
	plan, state := config, d.state
	b := bootPlan{iso: config.liveISO(t.Context()), prior: state.liveISO(t.Context()), inPlace: inPlace{
		plan: &plan, config: &config, state: &state, onChange: onChangeRebuild, seen: sight{Name: "n", Boot: d.machine}, last: d.last, label: func() string { return "n" },
	}}
	b.decide(t.Context(), &diags)
	b.planRescue(t.Context(), &diags)
	return &plan, diags
}

// differences returns the attributes that a plan changes, with their values.
func (d *deployed) differences(plan *model) map[string][2]attr.Value {
	all := map[string][2]attr.Value{
		"live_iso": {d.state.LiveISO, plan.LiveISO}, "boot_status": {d.state.BootStatus, plan.BootStatus}, "restarts": {d.state.Restarts, plan.Restarts},
		"rebuild_triggers": {d.state.RebuildTriggers, plan.RebuildTriggers}, "provision_state": {d.state.ProvisionState, plan.ProvisionState}, "rescue": {d.state.Rescue, plan.Rescue},
	}
	maps.DeleteFunc(all, func(_ string, values [2]attr.Value) bool { return values[0].Equal(values[1]) })
	return all
}

// apply applies a plan of a configuration, and reads the result. As Terraform, it leaves out a deployment that the plan does not change.
func (d *deployed) apply(t *testing.T, config, plan *model) {
	t.Helper()
	if len(d.differences(plan)) == 0 {
		d.read(t)
		return
	}
	want := config.liveISO(t.Context()).Want()
	d.last = wanted{Image: "i", Artifacts: want.WithoutURL()}
	action, _ := plan.plannedBoot(t.Context())
	if action == bootiso.Restart {
		record := bootiso.NewRecord(want.Artifacts, time.Now(), nil)
		d.machine.Booted = &record
	}
	if action != bootiso.Restart && d.machine.Booted != nil {
		d.machine.Wanted = bootiso.NextWanted(want.Artifacts, *d.machine.Booted, d.machine.Wanted)
	}
	was := d.state.ProvisionState
	d.state = *plan
	switch {
	case !config.Rescue.IsNull():
		d.state.ProvisionState = types.StringValue(provision.StateRescued)
	case plan.ProvisionState.IsUnknown():
		d.state.ProvisionState = types.StringValue(provision.StateActive)
	case plan.ProvisionState.IsNull():
		d.state.ProvisionState = was
	}
	d.read(t)
}

// TestBootPlan_unchangedConfigurationHasNothingToDo changes the configuration of a machine in every kind of state in every way, applies
// that, and plans again: the second plan has no error and no change, and boot_status in the state equals what metal_boot_status shows.
func TestBootPlan_unchangedConfigurationHasNothingToDo(t *testing.T) {
	t.Parallel()
	inRescue := types.ObjectValueMust(rescueTypes, map[string]attr.Value{"password_wo": types.StringNull(), "password_wo_version": types.Int64Value(1)})
	none := types.ObjectNull(rescueTypes)
	states := map[string]struct {
		state  string
		rescue types.Object
		change func(*bootiso.Machine)
	}{
		"runs":                        {state: "active", rescue: none},
		"in rescue":                   {state: "rescue", rescue: inRescue},
		"in rescue by another client": {state: "rescue", rescue: none},
		"leaves rescue":               {state: "unrescuing", rescue: none},
		"in maintenance":              {state: "active", rescue: none, change: func(m *bootiso.Machine) { m.Barred = "it is in maintenance" }},
		"service failed":              {state: "service failed", rescue: none, change: func(m *bootiso.Machine) { m.Barred = "it is in state \"service failed\"" }},
		"unpowered":                   {state: "active", rescue: none, change: func(m *bootiso.Machine) { m.Powered = false }},
		"without a record":            {state: "active", rescue: none, change: func(m *bootiso.Machine) { m.Booted = nil }},
		"in rescue without a record":  {state: "rescue", rescue: inRescue, change: func(m *bootiso.Machine) { m.Booted = nil }},
	}
	settings := map[string]func(*liveISOModel){
		"affected":   nil,
		"always":     func(m *liveISOModel) { m.RebootPolicy = types.StringValue("always") },
		"never":      func(m *liveISOModel) { m.RebootPolicy = types.StringValue("never") },
		"installing": func(m *liveISOModel) { m.Installing = types.BoolValue(true) },
		"new":        func(m *liveISOModel) { m.Registered = types.BoolValue(false) },
		"lacking": func(m *liveISOModel) {
			m.Contains = types.MapValueMust(types.StringType, map[string]attr.Value{"c": types.StringValue("old")})
		},
	}
	contents := map[string][3]string{
		"the same": {"a1", "s1", "h1"}, "another image": {"a2", "s1", "h1"}, "shared content": {"a1", "s2", "h1"}, "host content": {"a1", "s1", "h2"},
		"image and shared content": {"a2", "s2", "h1"}, "image and host content": {"a2", "s1", "h2"}, "all": {"a2", "s2", "h2"}, "content removed": {"a2", "", ""},
	}
	triggers := map[string]types.Map{"": types.MapValueMust(types.StringType, map[string]attr.Value{"t": types.StringValue("1")})}
	triggers["triggers"] = types.MapValueMust(types.StringType, map[string]attr.Value{"t": types.StringValue("2")})
	for kind, machine := range states {
		for setting, change := range settings {
			for content, c := range contents {
				for trigger, value := range triggers {
					for rescue, mode := range map[string]types.Object{"": none, "rescue": inRescue} {
						name := fmt.Sprintf("%s/%s, %s, %s %s", kind, setting, content, trigger, rescue)
						if !mode.IsNull() && machine.rescue.IsNull() && machine.state != "active" {
							continue // another client has put it there
						}
						record := bootiso.NewRecord(artifacts(t, "a1", "s1", "h1"), time.Now().Add(-time.Hour), nil)
						d := deployed{machine: bootiso.Machine{Label: "n", Powered: true, Booted: &record}}
						if machine.change != nil {
							machine.change(&d.machine)
						}
						d.last = wanted{Image: "i", Artifacts: artifacts(t, "a1", "s1", "h1").WithoutURL()}
						d.state = unset()
						d.state.LiveISO, d.state.Rescue, d.state.ProvisionState = live(t, "a1", "s1", "h1", change), machine.rescue, types.StringValue(machine.state)
						d.state.RebuildTriggers, d.state.Protected, d.state.PowerState = triggers[""], types.BoolValue(false), types.StringValue(framework.PowerOn)
						d.state.Restarts, d.state.Rebuilds = types.Int64Value(0), types.Int64Value(0)
						d.read(t)
						config := unset()
						config.LiveISO, config.Rescue, config.RebuildTriggers = live(t, c[0], c[1], c[2], change), mode, value
						plan, diags := d.plan(t, config)
						if diags.HasError() {
							t.Errorf("%s: cannot be planned, and would hold up other machines: %v", name, diags.Errors())
							continue
						}
						d.apply(t, &config, plan)
						again, diags := d.plan(t, config)
						if diags.HasError() {
							t.Errorf("%s: the unchanged configuration cannot be planned: %v", name, diags.Errors())
							continue
						}
						if left := d.differences(again); len(left) > 0 {
							t.Errorf("%s: after the apply, the plan changes %s", name, left)
						}
						wanted := config.liveISO(t.Context()).Want() // as metal_boot_status does
						if says := bootStatus(t.Context(), bootiso.Decide(bootiso.Input{Machine: d.machine, Want: wanted, Now: time.Now()}).Now); !says.Equal(d.state.BootStatus) {
							t.Errorf("%s: boot_status is %s, and metal_boot_status says %s", name, d.state.BootStatus, says)
						}
					}
				}
			}
		}
	}
}

// artifacts are the artifacts of live.
func artifacts(t *testing.T, image, shared, host string) bootiso.Artifacts {
	t.Helper()
	m := model{LiveISO: live(t, image, shared, host, nil)}
	return m.liveISO(t.Context()).Want().Artifacts
}
