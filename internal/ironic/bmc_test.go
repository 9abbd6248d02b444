package ironic_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

func TestBMC_parse(t *testing.T) {
	t.Parallel()
	virtualMedia := map[string]string{"boot": "redfish-virtual-media"}
	for address, want := range map[string]struct {
		driver     string
		info       map[string]any
		interfaces map[string]string
	}{
		"192.0.2.1":                            {"ipmi", map[string]any{"ipmi_address": "192.0.2.1"}, nil},
		"192.0.2.1:6230":                       {"ipmi", map[string]any{"ipmi_address": "192.0.2.1", "ipmi_port": "6230"}, nil},
		"bmc.example.com":                      {"ipmi", map[string]any{"ipmi_address": "bmc.example.com"}, nil},
		"[fd00::1]:6230":                       {"ipmi", map[string]any{"ipmi_address": "fd00::1", "ipmi_port": "6230"}, nil},
		"fd00::1":                              {"ipmi", map[string]any{"ipmi_address": "fd00::1"}, nil},
		"ipmi://192.0.2.1":                     {"ipmi", map[string]any{"ipmi_address": "192.0.2.1"}, nil},
		"ipmi://192.0.2.1/":                    {"ipmi", map[string]any{"ipmi_address": "192.0.2.1"}, nil},
		"ipmi://b:623?privilegelevel=OPERATOR": {"ipmi", map[string]any{"ipmi_address": "b", "ipmi_port": "623", "ipmi_priv_level": "OPERATOR"}, nil},
		"redfish://b/redfish/v1/Systems/1":     {"redfish", map[string]any{"redfish_address": "https://b", "redfish_system_id": "/redfish/v1/Systems/1"}, nil},
		"redfish+https://b:8443/s":             {"redfish", map[string]any{"redfish_address": "https://b:8443", "redfish_system_id": "/s"}, nil},
		"redfish+http://b/s/":                  {"redfish", map[string]any{"redfish_address": "http://b", "redfish_system_id": "/s"}, nil},
		"redfish://b":                          {"redfish", map[string]any{"redfish_address": "https://b"}, nil},
		"redfish://b/redfish/v1/":              {"redfish", map[string]any{"redfish_address": "https://b"}, nil},
		"redfish://[fd00::1]/s":                {"redfish", map[string]any{"redfish_address": "https://[fd00::1]", "redfish_system_id": "/s"}, nil},
		"redfish-virtualmedia://b/s":           {"redfish", map[string]any{"redfish_address": "https://b", "redfish_system_id": "/s"}, virtualMedia},
		"redfish-virtualmedia+http://b:8000/s": {"redfish", map[string]any{"redfish_address": "http://b:8000", "redfish_system_id": "/s"}, virtualMedia},
	} {
		bmc, err := ironic.ParseBMC(address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if bmc.Driver != want.driver || !reflect.DeepEqual(bmc.Info, want.info) || !reflect.DeepEqual(bmc.Interfaces, want.interfaces) {
			t.Errorf("%s: %+v, want %+v", address, bmc, want)
		}
	}
}

func TestBMC_parseErrors(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"":                                      "has no host",
		"redfish://":                            "has no host",
		"redfish:///redfish/v1/Systems":         "has no host",
		"telnet://b":                            `unknown scheme "telnet"; known are ipmi, redfish, redfish-virtualmedia`,
		"redfish+ftp://b":                       `unknown transport "ftp"`,
		"ipmi+https://b":                        "must be ipmi://HOST",
		"redfish://fd00::1/s":                   "must have the IPv6 address in brackets",
		"::1:6230:x":                            "is not the address of a BMC: invalid",
		"ipmi://b/s":                            "must be ipmi://HOST",
		"https://10.0.0.1/redfish/v1/Systems/1": `the BMC address "https://10.0.0.1/redfish/v1/Systems/1" lacks the scheme of a driver; write "redfish://10.0.0.1/redfish/v1/Systems/1"`,
		"http://10.0.0.1:8000/redfish/v1/Systems/1/":    `write "redfish+http://10.0.0.1:8000/redfish/v1/Systems/1"`,
		"idrac.example.com/redfish/v1/Systems/System.1": `the BMC address "idrac.example.com/redfish/v1/Systems/System.1" lacks the scheme of a driver; write "redfish://idrac.example.com/redfish/v1/Systems/System.1"`,
		"fd00::1/redfish/v1":                            "must have",
		"https://root:calvin@b/s":                       "must not contain credentials",
		"ipmi://b:port":                                 "is not the address of a BMC: invalid",
		"redfish://root:calvin@b/s":                     "must not contain credentials; use username and password_wo",
		"redfish://root:calvin%zz@b":                    "must not contain credentials",
		"root:calvin@b":                                 "must not contain credentials",
	} {
		if bmc, err := ironic.ParseBMC(address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want %q", address, bmc, err, want)
		} else if strings.Contains(err.Error(), "calvin") {
			t.Errorf("%q: %v shows the password", address, err)
		}
	}
}

func FuzzParseBMC(f *testing.F) {
	for _, seed := range []string{"192.0.2.1", "ipmi://b:623", "redfish+http://b/s", "redfish-virtualmedia://[::1]:1/s", "://", "a:b@c", "ipmi://%41"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		bmc, err := ironic.ParseBMC(address)
		if err != nil {
			return
		}
		node := &ironic.Node{Driver: bmc.Driver, DriverInfo: bmc.Info}
		if ironic.BMCAddress(node) == "" {
			t.Errorf("%q has no host: %v", address, bmc.Info)
		}
	})
}

func TestBMC_describeReversesParse(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"ipmi://192.0.2.1", "ipmi://192.0.2.1:6230", "ipmi://[fd00::1]:6230", "redfish://b/redfish/v1/Systems/1", "redfish+http://b:8000/s",
		"redfish-virtualmedia://b/s", "redfish-virtualmedia+http://b/s", "redfish://b",
	} {
		bmc, err := ironic.ParseBMC(address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		node := &ironic.Node{Driver: bmc.Driver, DriverInfo: bmc.Info, BootInterface: bmc.Interfaces["boot"]}
		if got := ironic.DescribeBMC(node); got != address {
			t.Errorf("%s is described as %s", address, got)
		}
	}
}

func TestBMC_addressIsHost(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		info map[string]any
		want string
	}{
		{map[string]any{"ipmi_address": "192.0.2.1", "ipmi_port": "623"}, "192.0.2.1"},
		{map[string]any{"redfish_address": "https://192.0.2.1:8443"}, "192.0.2.1"},
		{map[string]any{"redfish_address": "https://[fd00::1]"}, "fd00::1"},
		{map[string]any{"redfish_address": "192.0.2.1:8000"}, "192.0.2.1"},
		{map[string]any{"drac_address": "idrac.example.com"}, "idrac.example.com"},
		{map[string]any{"ipmi_address": 7}, ""},
		{map[string]any{"deploy_kernel": "http://images/kernel"}, ""},
		{nil, ""},
	} {
		if got := ironic.BMCAddress(&ironic.Node{DriverInfo: tc.info}); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.info, got, tc.want)
		}
	}
}

func TestBMC_secretKeys(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"ipmi_password": true, "redfish_password": true, "My_PassWord_x": true, "secret": true, "auth_token": true, "snmp_auth_passphrase": true,
		"passwd": false, "ipmi_username": false, "redfish_address": false, "deploy_kernel": false,
	} {
		if got := ironic.IsSecretKey(key); got != want {
			t.Errorf("IsSecretKey(%q) = %t", key, got)
		}
	}
}
