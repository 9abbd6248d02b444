package driverinfo_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/driverinfo"
)

func TestBMC_identity(t *testing.T) {
	t.Parallel()
	redfish := func(address, system string) map[string]any {
		return map[string]any{"redfish_address": address, "redfish_system_id": system}
	}
	ipmi := func(address string, more ...any) map[string]any {
		info := map[string]any{"ipmi_address": address}
		for i := 0; i < len(more); i += 2 {
			key, _ := more[i].(string)
			info[key] = more[i+1]
		}
		return info
	}
	const one, two = "/redfish/v1/Systems/1", "/redfish/v1/Systems/2"
	for _, tt := range []struct {
		what string
		a, b map[string]any
		same bool
	}{
		{"itself", redfish("https://bmc1", one), redfish("https://bmc1", one), true},
		{"scheme", redfish("https://bmc1", one), redfish("bmc1", one), true},
		{"transport", redfish("https://bmc1", one), redfish("http://bmc1", one), true},
		{"case", redfish("https://BMC1.Example.com", one), redfish("https://bmc1.example.com.", one), true},
		{"default port", redfish("https://bmc1:443", one), redfish("https://bmc1", one), true},
		{"slash", redfish("https://bmc1/", one), redfish("https://bmc1", one+"/"), true},
		{"IPv6", redfish("https://[2001:DB8:0::1]", one), redfish("https://[2001:db8::1]", one), true},
		{"IPv4 in IPv6", ipmi("::ffff:192.0.2.1"), ipmi("192.0.2.1"), true},
		{"no system", redfish("https://bmc1", one), map[string]any{"redfish_address": "https://bmc1"}, true},
		{"port of IPMI", ipmi("192.0.2.1", "ipmi_port", "623"), ipmi("192.0.2.1"), true},
		{"IPMI and Redfish", ipmi("192.0.2.1"), redfish("https://192.0.2.1", one), true},
		{"another host", redfish("https://bmc1", one), redfish("https://bmc2", one), false},
		{"another system", redfish("https://bmc1", one), redfish("https://bmc1", two), false},
		{"another port", redfish("https://bmc1:8000", one), redfish("https://bmc1", one), false},
		{"another port of IPMI", ipmi("192.0.2.1", "ipmi_port", 6230), ipmi("192.0.2.1", "ipmi_port", 6231), false},
		{"bridged", ipmi("192.0.2.1", "ipmi_target_address", "0x20"), ipmi("192.0.2.1", "ipmi_target_address", "0x22"), false},
		{"bridged and Redfish", ipmi("192.0.2.1", "ipmi_target_address", "0x20"), redfish("https://192.0.2.1", one), false},
		{"IPMI and Redfish of emulators", ipmi("192.0.2.1", "ipmi_port", "6230"), redfish("https://192.0.2.1:8000", one), false},
		{"no BMC", map[string]any{"deploy_kernel": "http://k"}, map[string]any{}, false},
	} {
		a, b := driverinfo.IdentifyBMC(tt.a), driverinfo.IdentifyBMC(tt.b)
		if a.Same(b) != tt.same || b.Same(a) != tt.same {
			t.Errorf("%s: %v is the same as %v: %v and %v, want %v", tt.what, a, b, a.Same(b), b.Same(a), tt.same)
		}
	}
}

func TestNamesBMC_takesAllFormsOfAnAddress(t *testing.T) {
	t.Parallel()
	redfish := map[string]any{"redfish_address": "https://192.0.2.11:8000", "redfish_system_id": "/redfish/v1/Systems/1"}
	ipmi := map[string]any{"ipmi_address": "fd00::11"}
	for _, tt := range []struct {
		address string
		info    map[string]any
		want    bool
	}{
		{"192.0.2.11", redfish, true},
		{"192.0.2.11:8000", redfish, true},
		{"192.0.2.11:8001", redfish, false},
		{"192.0.2.12", redfish, false},
		{"redfish://192.0.2.11:8000/redfish/v1/Systems/1", redfish, true},
		{"redfish-virtualmedia+https://192.0.2.11:8000", redfish, true},
		{"redfish://192.0.2.11:8000/redfish/v1/Systems/2", redfish, false},
		{"ipmi://192.0.2.11", redfish, false},
		{"fd00::0:11", ipmi, true},
		{"ipmi://[fd00::11]:623", ipmi, true},
		{"192.0.2.13", map[string]any{"snmp_address": "192.0.2.13"}, true},
	} {
		if got, err := driverinfo.NamesBMC(tt.address, tt.info); got != tt.want || err != nil {
			t.Errorf("%s of %v: %t, %v", tt.address, tt.info, got, err)
		}
	}
	if _, err := driverinfo.NamesBMC("192.0.2.11/24", redfish); err == nil || !strings.Contains(err.Error(), "has a prefix length") {
		t.Errorf("a prefix length: %v", err)
	}
}
