package identity_test

import (
	"reflect"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/identity"
)

// redfish is the identity of a system behind a BMC, with a MAC address.
func redfish(name, address, system, mac string) identity.Identity {
	return identity.Of(name, map[string]any{"redfish_address": address, "redfish_system_id": system}, []string{mac}, nil)
}

// What two machines share is found in each spelling, and what they shared before is not new.
func TestIdentity_shared(t *testing.T) {
	t.Parallel()
	const one, two = "/redfish/v1/Systems/1", "/redfish/v1/Systems/2"
	ipmi := identity.Of("a", map[string]any{"ipmi_address": "192.0.2.1"}, []string{"52-54-00-AA-BB-01"}, []string{"52:54:00:AA:BB:09", ""})
	for what, tt := range map[string]struct {
		gets, before, other identity.Identity
		want                []identity.Trait
	}{
		"nothing": {gets: redfish("a", "https://192.0.2.1", one, "52:54:00:aa:bb:01"), other: redfish("b", "https://192.0.2.2", one, "x")},
		"all": {gets: ipmi, other: ipmi, want: []identity.Trait{
			{Kind: identity.Name, Value: "a"},
			{Kind: identity.BMC, Value: "192.0.2.1"},
			{Kind: identity.Address, Value: "52:54:00:aa:bb:01"},
			{Kind: identity.Bond, Value: "52:54:00:aa:bb:09"},
		}},
		"another scheme": {
			gets: ipmi, other: redfish("b", "https://192.0.2.1:443", one, "52:54:00:aa:bb:01"),
			want: []identity.Trait{{Kind: identity.BMC, Value: "192.0.2.1"}, {Kind: identity.Address, Value: "52:54:00:aa:bb:01"}},
		},
		"another system": {gets: redfish("a", "https://192.0.2.1", one, "x"), other: redfish("b", "https://192.0.2.1", two, "y")},
		"shared before": {
			gets: redfish("a", "https://192.0.2.1", one, "x"), before: redfish("a", "https://192.0.2.1", one, "x"),
			other: redfish("b", "https://192.0.2.1", one, "x"),
		},
		"another name that both had": {
			gets: redfish("b", "https://192.0.2.1", one, "x"), before: redfish("a", "https://192.0.2.1", one, "x"),
			other: redfish("b", "https://192.0.2.1", one, "x"), want: []identity.Trait{{Kind: identity.Name, Value: "b"}},
		},
	} {
		if got := tt.gets.NewlyShared(tt.before, tt.other); len(got)+len(tt.want) > 0 && !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %v, want %v", what, got, tt.want)
		}
	}
}
