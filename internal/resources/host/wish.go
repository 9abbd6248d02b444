package host

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/enroll"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/hardware"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/sharing"
)

// wish returns what a plan asks for. state is nil for a new host.
func (m *model) wish(ctx context.Context, config, state *model) enroll.Wish {
	hardware, known := config.hardware(ctx)
	live, _ := config.hardwareChanges()
	block := config.bmc(ctx)
	_, scheme := schemeOf(block)
	w := enroll.Wish{
		Label: m.describe(), OnDestroy: m.OnDestroy.ValueString(),
		Driver: stringOf(m.Driver), Scheme: scheme, AddressAt: config.addressAt(), BMC: !m.BMC.IsNull(),
		AnyDriver: !config.BMC.IsNull() || !config.Driver.IsNull() || !config.PowerControl.IsNull(), NoPassword: block.lacksPassword(),
		ByAgent: m.byAgent(), PowerManaged: flagOf(m.PowerManaged), Class: m.ResourceClass.ValueString(),
		Target: stringOf(m.TargetState), TargetSet: !config.TargetState.IsNull(), Inspect: flagOf(m.Inspect), Triggers: m.fingerprint(ctx),
		Power: stringOf(config.PowerState), NeverOff: m.DisablePowerOff.ValueBool(), NoClean: framework.IsFalse(m.AutomatedClean),
		BootMode: stringOf(config.BootMode), SecureBoot: flagOf(config.SecureBoot), Maintenance: flagOf(config.Maintenance),
		Retired: flagOf(m.Retired), RetiredSet: flagOf(config.Retired), ReasonSet: !config.RetiredReason.IsNull(),
		Hardware: hardware, HardwareKnown: known, ServicesActive: live,
	}
	if state == nil && config.TargetState.IsNull() && m.TargetState.IsUnknown() {
		w.Target = decide.Value[string]{} // Decide has the default
	}
	if state != nil {
		w.Held = m.Maintenance.ValueBool() && state.Fault.IsNull() && m.MaintenanceReason.ValueString() != machine.ReasonChanging
	}
	return w
}

// seen returns what a state has of the host.
func (m *model) seen(ctx context.Context, notes enroll.Notes) enroll.Seen {
	hardware, _ := m.hardware(ctx)
	address, scheme := m.scheme(ctx)
	return enroll.Seen{
		State: ironic.State(m.ProvisionState.ValueString()), Instance: m.InstanceID.ValueString(), Allocated: !m.AllocationID.IsNull(),
		OutOfService: sharing.OutOfService(m.node()), Fault: !m.Fault.IsNull(), LastError: !m.LastError.IsNull(),
		Power: stringOf(m.PowerState), PowerManaged: flagOf(m.PowerManaged), Target: m.TargetState.ValueString(), Retired: m.Retired.ValueBool(),
		BMC: !m.BMC.IsNull(), Driver: m.Driver.ValueString(), Address: address, Scheme: scheme, Class: m.ResourceClass.ValueString(),
		BootMode: stringOf(m.BootMode), SecureBoot: flagOf(m.SecureBoot), Triggers: m.fingerprint(ctx), Hardware: hardware, Notes: notes,
	}
}

// foresee changes a plan as the decision forecasts. state is nil for a new host.
func (m *model) foresee(f enroll.Forecast, state *model) {
	if f.Target != "" {
		m.TargetState = types.StringValue(f.Target)
	}
	forecast(&m.ProvisionState, f.State)
	forecast(&m.PowerState, f.Power)
	if f.LastError {
		m.LastError = types.StringUnknown()
	}
	if f.Fault {
		m.Fault = types.StringUnknown()
	}
	if f.KeepsBoot && !m.BootMode.IsNull() && !state.BootMode.IsNull() {
		m.BootMode = state.BootMode
	}
	if f.KeepsBoot && !m.SecureBoot.IsNull() && !state.SecureBoot.IsNull() {
		m.SecureBoot = state.SecureBoot
	}
	if f.KeepsRetired {
		m.Retired, m.RetiredReason = state.Retired, state.RetiredReason
	}
	if f.NoRetireReason {
		m.RetiredReason = types.StringNull()
	}
	switch {
	case f.Pending.Unknown:
		m.PendingChanges = types.SetUnknown(types.StringType)
	case f.Pending.Set:
		m.PendingChanges = partsValue(f.Pending.V)
	}
}

// forecast sets a value to a forecast one; null changes nothing.
func forecast[T ~string](value *types.String, to decide.Value[T]) {
	switch {
	case to.Unknown:
		*value = types.StringUnknown()
	case to.Set:
		*value = types.StringValue(string(to.V))
	}
}

// addressAt returns the attribute from which the driver follows.
func (m *model) addressAt() decide.Path {
	switch {
	case !m.BMC.IsNull():
		return decide.At("bmc", "address")
	case !m.PowerControl.IsNull():
		return decide.At("power_control")
	}
	return decide.At("driver")
}

// lacksPassword reports whether the bmc block has a user name and no password.
func (b *bmcModel) lacksPassword() bool {
	return b != nil && !b.Username.IsNull() && b.Password.IsNull() && b.PasswordWO.IsNull()
}

// fingerprint identifies inspect_triggers.
func (m *model) fingerprint(ctx context.Context) decide.Value[string] {
	switch {
	case m.InspectTriggers.IsNull():
		return decide.Value[string]{}
	case !framework.FullyKnown(ctx, m.InspectTriggers):
		return decide.Unknown[string]()
	}
	return decide.Known(hardware.Fingerprint(framework.StringMap(m.InspectTriggers)))
}

// scheme returns the BMC address of a model, and what it means; "" and nil if it has none.
func (m *model) scheme(ctx context.Context) (string, *ironic.BMC) { return schemeOf(m.bmc(ctx)) }

func schemeOf(block *bmcModel) (string, *ironic.BMC) {
	if block == nil || !framework.IsSet(block.Address) {
		return "", nil
	}
	bmc, err := ironic.ParseBMC(block.Address.ValueString())
	if err != nil {
		return "", nil
	}
	return block.Address.ValueString(), bmc
}

// stringOf returns a string as the words of a plan have it.
func stringOf(v types.String) decide.Value[string] {
	return decide.Value[string]{V: v.ValueString(), Set: framework.IsSet(v), Unknown: v.IsUnknown()}
}

func flagOf(v types.Bool) decide.Value[bool] {
	return decide.Value[bool]{V: v.ValueBool(), Set: framework.IsSet(v), Unknown: v.IsUnknown()}
}
