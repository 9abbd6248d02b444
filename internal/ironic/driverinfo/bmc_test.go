package driverinfo_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/driverinfo"
)

func TestBMC_parse(t *testing.T) {
	t.Parallel()
	virtualMedia := map[string]string{"boot": "redfish-virtual-media"}
	idrac := func(boot string) map[string]string {
		all := map[string]string{}
		for _, kind := range []string{"bios", "management", "power", "raid", "vendor"} {
			all[kind] = "idrac-redfish"
		}
		if boot != "" {
			all["boot"] = boot
		}
		return all
	}
	for address, want := range map[string]struct {
		driver     string
		info       map[string]any
		interfaces map[string]string
	}{
		"192.0.2.1":               {"ipmi", map[string]any{"ipmi_address": "192.0.2.1"}, nil},
		"10.0.0.1.nip.io":         {"ipmi", map[string]any{"ipmi_address": "10.0.0.1.nip.io"}, nil},
		"bmc_1-a.3com.example.":   {"ipmi", map[string]any{"ipmi_address": "bmc_1-a.3com.example."}, nil},
		"ipmi://[fe80::1%25eth0]": {"ipmi", map[string]any{"ipmi_address": "fe80::1%eth0"}, nil},
		"192.0.2.1:6230":          {"ipmi", map[string]any{"ipmi_address": "192.0.2.1", "ipmi_port": "6230"}, nil},
		"bmc.example.com":         {"ipmi", map[string]any{"ipmi_address": "bmc.example.com"}, nil},
		"[fd00::1]:6230":          {"ipmi", map[string]any{"ipmi_address": "fd00::1", "ipmi_port": "6230"}, nil},
		"fe80::1%eth0":            {"ipmi", map[string]any{"ipmi_address": "fe80::1%eth0"}, nil},
		"redfish://b/redfish/":    {"redfish", map[string]any{"redfish_address": "https://b"}, nil},
		"redfish://b/1/s":         {"redfish", map[string]any{"redfish_address": "https://b", "redfish_system_id": "/1/s"}, nil},
		"redfish://b/1234":        {"redfish", map[string]any{"redfish_address": "https://b", "redfish_system_id": "/1234"}, nil},
		"fd00::1":                 {"ipmi", map[string]any{"ipmi_address": "fd00::1"}, nil},
		"ipmi://192.0.2.1":        {"ipmi", map[string]any{"ipmi_address": "192.0.2.1"}, nil},
		"ipmi://192.0.2.1/":       {"ipmi", map[string]any{"ipmi_address": "192.0.2.1"}, nil},
		"ipmi://b:623?privilegelevel=OPERATOR": {"ipmi", map[string]any{
			"ipmi_address": "b", "ipmi_port": "623",
			"ipmi_priv_level": "OPERATOR",
		}, nil},
		"redfish://b/redfish/v1/Systems/1": {"redfish", map[string]any{
			"redfish_address":   "https://b",
			"redfish_system_id": "/redfish/v1/Systems/1",
		}, nil},
		"redfish+https://b:8443/s": {
			"redfish",
			map[string]any{"redfish_address": "https://b:8443", "redfish_system_id": "/s"},
			nil,
		},
		"redfish+http://b/s/":     {"redfish", map[string]any{"redfish_address": "http://b", "redfish_system_id": "/s"}, nil},
		"redfish://b":             {"redfish", map[string]any{"redfish_address": "https://b"}, nil},
		"redfish://b/redfish/v1/": {"redfish", map[string]any{"redfish_address": "https://b"}, nil},
		"redfish://[fd00::1]/s": {"redfish", map[string]any{
			"redfish_address":   "https://[fd00::1]",
			"redfish_system_id": "/s",
		}, nil},
		"redfish-virtualmedia://b/s": {
			"redfish",
			map[string]any{"redfish_address": "https://b", "redfish_system_id": "/s"},
			virtualMedia,
		},
		"redfish-virtualmedia+http://b:8000/s": {
			"redfish",
			map[string]any{"redfish_address": "http://b:8000", "redfish_system_id": "/s"},
			virtualMedia,
		},
		"redfish-uefihttp://b/s": {
			"redfish",
			map[string]any{"redfish_address": "https://b", "redfish_system_id": "/s"},
			map[string]string{"boot": "redfish-https"},
		},
		"ilo5-redfish+https://b/s": {"redfish", map[string]any{"redfish_address": "https://b", "redfish_system_id": "/s"}, nil},
		"ilo5-virtualmedia+http://[fd00::1]/s": {"redfish", map[string]any{
			"redfish_address":   "http://[fd00::1]",
			"redfish_system_id": "/s",
		}, virtualMedia},
		"idrac-redfish://b/s": {
			"idrac",
			map[string]any{"redfish_address": "https://b", "redfish_system_id": "/s"},
			idrac(""),
		},
		"idrac-redfish+http://[fd00::1]:8000": {"idrac", map[string]any{"redfish_address": "http://[fd00::1]:8000"}, idrac("")},
		"idrac-virtualmedia+https://b:8443/s": {
			"idrac",
			map[string]any{"redfish_address": "https://b:8443", "redfish_system_id": "/s"},
			idrac("idrac-redfish-virtual-media"),
		},
	} {
		bmc, err := driverinfo.ParseBMC(address)
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
		"telnet://b":                            `unknown scheme "telnet"; known are idrac-redfish, idrac-virtualmedia, ilo5-redfish, ilo5-virtualmedia, ipmi, redfish, redfish-uefihttp, redfish-virtualmedia`,
		"redfish+ftp://b":                       `unknown transport "ftp"`,
		"ipmi+https://b":                        "must be ipmi://HOST",
		"redfish://fd00::1/s":                   "must have the IPv6 address in brackets",
		"::1:6230:x":                            "is not the address of a BMC: invalid",
		"ipmi://b/s":                            "must be ipmi://HOST",
		"https://10.0.0.1/redfish/v1/Systems/1": `the BMC address "https://10.0.0.1/redfish/v1/Systems/1" lacks the scheme of a driver; write "redfish://10.0.0.1/redfish/v1/Systems/1"`,
		"http://10.0.0.1:8000/redfish/v1/Systems/1/":    `write "redfish+http://10.0.0.1:8000/redfish/v1/Systems/1"`,
		"idrac.example.com/redfish/v1/Systems/System.1": `the BMC address "idrac.example.com/redfish/v1/Systems/System.1" lacks the scheme of a driver; write "redfish://idrac.example.com/redfish/v1/Systems/System.1"`,
		"redfish-virtualmedia//192.0.2.61/redfish/v1":   `has no :// after its scheme; write "redfish-virtualmedia://192.0.2.61/redfish/v1"`,
		"redfish+http:/b:8000/s":                        `write "redfish+http://b:8000/s"`,
		"ipmi:/192.0.2.61":                              `write "ipmi://192.0.2.61"`,
		"redfish://192.0.2.61,192.0.2.62/s":             `has the host "192.0.2.61,192.0.2.62", which is neither an IP address nor a host name`,
		"192.0.2.61,192.0.2.62":                         "neither an IP address nor a host name",
		"ipmi://-bmc":                                   "neither an IP address nor a host name",
		"ipmi://bmc..example.com":                       "neither an IP address nor a host name",
		"redfish://192.0.2.61redfish/v1/Systems/1":      `has the host "192.0.2.61redfish"; is a slash missing after 192.0.2.61?`,
		"192.0.2.61redfish/v1":                          "is a slash missing after 192.0.2.61?",
		"192.0.2.256":                                   `the host "192.0.2.256", which is not an IPv4 address`,
		"redfish://192.0.2.999redfish/v1":               "which is not an IPv4 address",
		"ipmi://192.0.2":                                "which is not an IPv4 address",
		"192.0.2.1.5:623":                               "which is not an IPv4 address",
		"fd00::1/redfish/v1":                            "must have",
		"https://root:calvin@b/s":                       "must not contain credentials",
		"ipmi://b:port":                                 "is not the address of a BMC: invalid",
		"redfish://root:calvin@b/s":                     "must not contain credentials; use username and password_wo",
		"redfish://root:calvin%zz@b":                    "must not contain credentials",
		"root:calvin@b":                                 "must not contain credentials",

		"192.0.2.11/24": "the BMC address 192.0.2.11/24 has a prefix length: write redfish://192.0.2.11",
		"fd00::11/64":   "the BMC address fd00::11/64 has a prefix length: write redfish://[fd00::11]",
		"[fd00::11]/64": "write redfish://[fd00::11]",
		"redfish-virtualmedia://192.0.2.11/24": "the BMC address redfish-virtualmedia://192.0.2.11/24 has a prefix length: " +
			"write redfish-virtualmedia://192.0.2.11",
		"idrac-virtualmedia://192.0.2.11/24/redfish/v1/Systems/System.Embedded.1": "has a prefix length: write " +
			"idrac-virtualmedia://192.0.2.11/redfish/v1/Systems/System.Embedded.1",
		"ipmi://192.0.2.11/24/":           "has a prefix length: write ipmi://192.0.2.11",
		"https://192.0.2.11:8443/24":      "has a prefix length: write redfish://192.0.2.11:8443",
		"http://b/32/redfish/v1":          "has a prefix length: write redfish+http://b/redfish/v1",
		"redfish://b/1":                   "has a prefix length: write redfish://b",
		"ipmi://b/24?privilegelevel=USER": "has a prefix length: write ipmi://b?privilegelevel=USER",

		"n/a":  `the BMC address "n/a" stands for none`,
		"None": "stands for none",
		"-":    "stands for none",

		"[fe80::1%eth0]":        `has a zone after %; write "[fe80::1%25eth0]"`,
		"ipmi://[fe80::1%eth0]": `has a zone after %; write "ipmi://[fe80::1%25eth0]"`,
		"redfish://fe80::1/redfish/v1/Systems/1": `must have the IPv6 address in brackets; write ` +
			`"redfish://[fe80::1]/redfish/v1/Systems/1"`,
		" 192.0.2.1":                        `has white space around it; write "192.0.2.1"`,
		"redfish://b/s\n":                   `has white space around it; write "redfish://b/s"`,
		" https://root:calvin@b":            "",
		"redfish://b/redfish/v1/Managers/1": `names no system; write "redfish://b", where Ironic takes the only system, or the path of one`,
		"redfish://b/redfish/v1/Systems/":   "names no system",
		"redfish://b/redfish/v1/chassis/a":  "names no system",

		"ipmi://b?privilegelevel=operator":    `has the privilege level "operator"; known are ADMINISTRATOR, CALLBACK, OPERATOR, USER`,
		"ipmi://b?privilegelevel=":            `has the privilege level ""`,
		"ipmi://b?privilege=USER":             `has "?privilege=USER"; only ?privilegelevel=LEVEL of ipmi:// may follow the host`,
		"ipmi://b?privilegelevel=USER&port=1": "only ?privilegelevel=LEVEL",
		"redfish://b/s?privilegelevel=USER":   `has "?privilegelevel=USER"`,
		"ipmi://b#1":                          `has "#1"`,
		"ipmi://b:70000":                      `has the port 70000; a port is a number from 1 to 65535`,
		"redfish://b:0/s":                     "has the port 0",

		"ilo4://b":                            `the BMC address "ilo4://b" has the scheme ilo4, which is gone from Ironic; use redfish, such as "redfish://b"`,
		"ilo4-virtualmedia://b/s":             `use redfish-virtualmedia, such as "redfish-virtualmedia://b/s"`,
		"irmc://192.0.2.1:8443":               `has the scheme irmc, which is gone from Ironic; use redfish, such as "redfish://192.0.2.1:8443"`,
		"ibmc+https://b/redfish/v1/Systems/1": `use redfish, such as "redfish://b/redfish/v1/Systems/1"`,
		"snmp://b":                            "has the scheme snmp, which is gone from Ironic; use redfish",
		"idrac://b":                           `use idrac-redfish, such as "idrac-redfish://b"`,
		"idrac-redfish+ftp://b":               `unknown transport "ftp"`,

		"idrac-virtualmedia//192.0.2.61/redfish/v1": `has no :// after its scheme; write "idrac-virtualmedia://192.0.2.61/redfish/v1"`,
		"b/redfish/v1/Systems/System.Embedded.1":    `the BMC address "b/redfish/v1/Systems/System.Embedded.1" lacks the scheme of a driver; write "idrac-redfish://b/redfish/v1/Systems/System.Embedded.1", or idrac-virtualmedia in place of idrac-redfish`,
	} {
		if bmc, err := driverinfo.ParseBMC(address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want %q", address, bmc, err, want)
		} else if strings.Contains(err.Error(), "calvin") {
			t.Errorf("%q: %v shows the password", address, err)
		}
	}
}

func FuzzParseBMC(f *testing.F) {
	for _, seed := range []string{
		"192.0.2.1", "ipmi://b:623", "redfish+http://b/s", "redfish-virtualmedia://[::1]:1/s", "://", "a:b@c",
		"ipmi://%41",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		bmc, err := driverinfo.ParseBMC(address)
		if err != nil {
			return
		}
		if driverinfo.BMCAddress(bmc.Info) == "" {
			t.Errorf("%q has no host: %v", address, bmc.Info)
		}
	})
}

func TestBMC_describeReversesParse(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"ipmi://192.0.2.1", "ipmi://192.0.2.1:6230", "ipmi://[fd00::1]:6230", "redfish://b/redfish/v1/Systems/1", "redfish+http://b:8000/s",
		"redfish-virtualmedia://b/s", "redfish-virtualmedia+http://b/s", "redfish://b", "redfish-uefihttp://[fd00::1]:8443/s",
		"idrac-redfish://b/s", "idrac-virtualmedia+http://b:8000/redfish/v1/Systems/System.Embedded.1",
	} {
		bmc, err := driverinfo.ParseBMC(address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if got := driverinfo.DescribeBMC(bmc.Driver, bmc.Interfaces["boot"], bmc.Info); got != address {
			t.Errorf("%s is described as %s", address, got)
		}
	}
	written := map[string]any{"redfish_address": "b:8000/", "redfish_system_id": "/s"}
	if got := driverinfo.DescribeBMC("redfish", "", written); got != "redfish://b:8000/s" {
		t.Errorf("an address without a transport is described as %s", got)
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
		if got := driverinfo.BMCAddress(tc.info); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.info, got, tc.want)
		}
	}
}
