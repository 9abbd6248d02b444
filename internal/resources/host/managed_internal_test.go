package host

import (
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// bmcOf is a bmc block with a write-only password, of version 1.
func bmcOf(t *testing.T, address, password string) types.Object {
	t.Helper()
	schema, _ := bmcSchema().GetType().(types.ObjectType)
	value, diags := types.ObjectValueFrom(t.Context(), schema.AttrTypes, bmcModel{
		Address: types.StringValue(address), Username: types.StringValue("root"), PasswordWO: types.StringValue(password),
		PasswordWOVersion: types.StringValue("1"),
	})
	if diags.HasError() {
		t.Fatal(diags)
	}
	return value
}

func interfacesOf(kinds map[string]string) types.Object {
	values := map[string]attr.Value{}
	for _, kind := range ironic.HardwareInterfaces {
		values[kind] = types.StringNull()
		if value, set := kinds[kind]; set {
			values[kind] = types.StringValue(value)
		}
	}
	return types.ObjectValueMust(interfacesType, values)
}

func stringMap(m map[string]string) types.Map {
	values := map[string]attr.Value{}
	for key, value := range m {
		values[key] = types.StringValue(value)
	}
	return types.MapValueMust(types.StringType, values)
}

// A change of the driver sends the secrets of the new one, though their version is the same, and sets the interfaces that it resets.
func TestChange_ofDriverKeepsSecretsAndInterfaces(t *testing.T) {
	t.Parallel()
	interfaces := map[string]string{"deploy": "ramdisk", "boot": "ipxe"}
	for name, tt := range map[string]struct{ before, after model }{
		"scheme of the BMC": {
			model{BMC: bmcOf(t, "ipmi://192.0.2.5", "calvin"), Interfaces: interfacesOf(interfaces)},
			model{BMC: bmcOf(t, "redfish://192.0.2.5/redfish/v1/Systems/1", "calvin"), Interfaces: interfacesOf(interfaces)},
		},
		"driver": {
			model{
				Driver: types.StringValue("ipmi"), DriverInfoWO: stringMap(map[string]string{"ipmi_password": "calvin"}),
				Interfaces: interfacesOf(interfaces),
			},
			model{
				Driver: types.StringValue("redfish"), DriverInfoWO: stringMap(map[string]string{"redfish_password": "calvin"}),
				Interfaces: interfacesOf(interfaces),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, fake := t.Context(), &fakeironic.Server{}
			h := &host{}
			h.Site = machine.New(machine.Config{Config: api.Config{Endpoint: "http://ironic.test", Auth: api.AuthNone, Transport: fake}})
			node, err := hosts.Enroll(ctx, h.Site, ironic.NewUUID(), tt.before.hostSettings(ctx, nil).Enrollment())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range []*model{&tt.before, &tt.after} {
				m.ID = types.StringValue(node.UUID)
				m.DriverInfo, m.Ports, m.PortGroups = bare().DriverInfo, bare().Ports, bare().PortGroups
			}
			c := &change{config: &tt.after, plan: &tt.after, state: &tt.before, before: tt.before.managedBy(ctx)}
			c.begin(ctx, h, h.Site.Record(node), hosts.Order{Plan: hosts.Plan{Goal: hosts.GoalEnroll}, Limit: time.Hour})
			if doing, err := c.work.Do(ctx); err != nil {
				t.Fatalf("%s: %v", doing, err)
			}
			if info := c.work.Node().DriverInfo; info["redfish_password"] != ironic.Masked || info["ipmi_password"] != nil {
				t.Errorf("driver_info is %v", info)
			}
			for kind, want := range interfaces {
				if got := ironic.InterfacesOf(c.work.Node())[kind]; got != want {
					t.Errorf("the %s interface is %s, want %s", kind, got, want)
				}
			}
		})
	}
}

// A plan that is empty would never send another secret.
func TestSecrets_withoutNewVersionAreRefused(t *testing.T) {
	t.Parallel()
	applied := managed{"/driver", "/driver_info/redfish_password", "/driver_info/redfish_address"}
	for name, tt := range map[string]struct {
		config  model
		before  managed
		refused bool
	}{
		"the same": {model{DriverInfoWO: stringMap(map[string]string{"redfish_password": "a"})}, applied, false},
		"new key": {
			model{DriverInfoWO: stringMap(map[string]string{"redfish_password": "a", "snmp_auth_password": "b"})},
			applied, true,
		},
		"removed key": {model{}, applied, false},
		"imported":    {model{DriverInfoWO: stringMap(map[string]string{"redfish_password": "a"})}, nil, false},
		"of the bmc":  {model{BMC: bmcOf(t, "redfish://192.0.2.5", "a")}, applied, false},
	} {
		var diags diag.Diagnostics
		tt.config.refuseUnsent(t.Context(), tt.before, &diags)
		if diags.HasError() != tt.refused {
			t.Errorf("%s: %v", name, diags)
		}
	}
}

// A refresh sees that another client has removed a secret, so that the next plan sends it again.
func TestSecrets_refreshSeesThatOneIsGone(t *testing.T) {
	t.Parallel()
	before := managed{"/driver_info/snmp_auth_password"}
	for name, tt := range map[string]struct {
		info map[string]any
		lost bool
	}{
		"there": {map[string]any{
			"redfish_address": "https://192.0.2.5", "redfish_password": ironic.Masked,
			"snmp_auth_password": ironic.Masked,
		}, false},
		"gone":        {map[string]any{"redfish_address": "https://192.0.2.5"}, true},
		"not visible": {nil, false},
	} {
		m := &model{BMC: bmcOf(t, "redfish://192.0.2.5", ""), DriverInfoWOVersion: types.StringValue("1")}
		node := &ironic.Node{DriverInfo: tt.info, Hidden: ironic.Hidden{DriverInfo: tt.info == nil}}
		node.Driver = "redfish"
		if got := m.lostSecret(node, before); got != tt.lost {
			t.Errorf("%s: driver_info_wo is lost: %v", name, got)
		}
		m.fromBMC(t.Context(), node)
		if got := m.bmc(t.Context()).PasswordWOVersion.IsNull(); got != tt.lost {
			t.Errorf("%s: the password is lost: %v", name, got)
		}
	}
}
