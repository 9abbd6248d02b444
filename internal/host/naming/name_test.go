package naming_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/naming"
)

const (
	id1  = "11111111-1111-4111-8111-111111111111"
	id2  = "22222222-2222-4222-8222-222222222222"
	mac1 = "52:54:00:aa:bb:01"
	mac2 = "52:54:00:aa:bb:02"
	mac3 = "52:54:00:aa:bb:03"
)

func TestTemplate_nameIsPrefixDetailSuffix(t *testing.T) {
	t.Parallel()
	template := naming.Template{Prefix: "string-literal1-", Suffix: "-string-literal2", Detail: naming.DetailHostname}
	name, err := template.Name(naming.Host{HasInventory: true, Hostname: "the-host-name"})
	if err != nil || name != "string-literal1-the-host-name-string-literal2" {
		t.Errorf("Name = %q, %v", name, err)
	}
}

func TestTemplate_details(t *testing.T) {
	t.Parallel()
	const (
		hostname = naming.DetailHostname
		serial   = naming.DetailSerialNumber
		ip       = naming.DetailIP
		mac      = naming.DetailBootMAC
		uuid     = naming.DetailProvisioningID
	)
	addresses := func(ipv4, ipv6 string) naming.Host {
		return naming.Host{HasInventory: true, Interfaces: []naming.Interface{{Name: "eno1", IPv4: ipv4, IPv6: ipv6}}}
	}
	named := func(hostname string) naming.Host { return naming.Host{HasInventory: true, Hostname: hostname} }
	numbered := func(serial string) naming.Host { return naming.Host{HasInventory: true, Serial: serial} }
	for _, tt := range []struct {
		detail naming.Detail
		style  naming.Style
		host   naming.Host
		name   string // after r-
		reason string
	}{
		{hostname, "", named("Node_1.example.com"), "Node_1.example.com", ""},
		{hostname, "", named(" node1.\n"), "node1", ""},
		{hostname, "", named(""), "", "no hostname in the inventory"},
		{hostname, "", naming.Host{}, "", "no inventory"},
		{hostname, "", naming.Host{LastError: "no ports\x1b[31m"}, "", `no inventory; last_error of the node is "no ports\x1b[31m"`},
		{hostname, "", named("localhost"), "", `hostname is "localhost"`},
		{hostname, "", named("localhost.localdomain"), "", `hostname is "localhost.localdomain"`},
		{hostname, "", named("(none)"), "", `hostname is "(none)"`},
		{hostname, "", named("größe"), "", "characters that a name cannot have"},
		{hostname, "", named("a\u202eb"), "", `"a\u202eb"`},
		{hostname, "", named("a\xffb"), "", "characters that a name cannot have"},
		{hostname, "", named(strings.Repeat("ab", 126)), strings.Repeat("ab", 126), ""},
		{hostname, "", named(strings.Repeat("ab", 127)), "", "256 characters, the most is 255"},
		{hostname, "", named("data.JSON"), "", "ends in .json"},
		{hostname, naming.StyleDNS, named("Node1"), "node1", ""},
		{hostname, naming.StyleDNS, named("node1.example.com"), "", "characters that a name cannot have"},
		{hostname, naming.StyleDNS, named("node_1"), "", "characters that a name cannot have"},
		{hostname, naming.StyleDNS, named(strings.Repeat("ab", 31)), "", "64 characters, the most is 63"},
		{serial, "", numbered("7XK9Q13"), "7XK9Q13", ""},
		{serial, naming.StyleDNS, numbered("7XK9Q13"), "7xk9q13", ""},
		{serial, "", numbered("AB/12"), "", `serial number "AB/12" has characters that a name cannot have`},
		{serial, "", numbered("AB 12"), "", "characters that a name cannot have"},
		{serial, "", numbered("To Be Filled By O.E.M."), "", `serial number is "To Be Filled By O.E.M."`},
		{serial, "", numbered("  "), "", `serial number is "  "`},
		{serial, "", numbered(""), "", "no serial number in the inventory"},
		{serial, "", numbered("00000000"), "", `serial number is "00000000"`},
		{serial, "", numbered("XxXx"), "", `serial number is "XxXx"`},
		{serial, "", numbered("1234567890"), "", `serial number is "1234567890"`},
		{serial, "", numbered("Not Specified"), "", `serial number is "Not Specified"`},
		{serial, "", numbered("-none-"), "", `serial number is "-none-"`},
		{hostname, "", named("sn"), "sn", ""},
		{serial, "", numbered("SN123"), "SN123", ""},
		{serial, "", numbered("0x00A0"), "0x00A0", ""},
		{ip, "", addresses("10.1.1.57", "2001:db8::1"), "10-1-1-57", ""},
		{ip, "", addresses("", "2001:0DB8:0::1%eno1"), "2001-db8--1", ""},
		{ip, "", addresses("169.254.7.7", "2001:db8::1"), "2001-db8--1", ""},
		{ip, naming.StyleDNS, addresses("", "2001:db8::"), "2001-db8", ""},
		{ip, "", addresses("", "::ffff:10.0.0.1"), "10-0-0-1", ""},
		{ip, "", addresses("", "fe80::1%eno1"), "", "the only IPv6 address is link-local"},
		{ip, "", addresses("169.254.7.7", ""), "", "the only IPv4 address is link-local"},
		{ip, "", addresses("169.254.7.7", "fe80::1"), "", "all IP addresses are link-local"},
		{ip, "", addresses("127.0.0.1", "::1"), "", "no IP address in the inventory"},
		{ip, "", addresses("0.0.0.0", "10.0.0.0/8; rm -rf"), "", "no IP address in the inventory"},
		{ip, "", naming.Host{}, "", "no inventory"},
		{mac, "", naming.Host{PortMACs: []string{"52:54:00:AA:BB:01"}}, "52-54-00-aa-bb-01", ""},
		{mac, "", naming.Host{}, "", "no MAC address"},
		{uuid, "", naming.Host{ID: id1}, id1, ""},
	} {
		template := naming.Template{Prefix: "r-", Detail: tt.detail, Style: tt.style}
		if tt.style == "" {
			template.Prefix = "r_"
		}
		name, err := template.Name(tt.host)
		var none *naming.NoValueError
		if errors.As(err, &none) != (tt.reason != "") || tt.reason != "" && !strings.Contains(none.Reason, tt.reason) {
			t.Errorf("%s of %+.200v: %v, want %q", tt.detail, tt.host, err, tt.reason)
		}
		if want := template.Prefix + tt.name; err == nil && name != want {
			t.Errorf("%s = %q, want %q", tt.detail, name, want)
		}
	}
}

func TestTemplate_illegalNamesAreRefused(t *testing.T) {
	t.Parallel()
	for _, hostname := range []string{
		"maintenance", "management", "states", "vendor_passthru", "detail", "validate", "Ports", "volume", "n2.json",
		id1, strings.ReplaceAll(id1, "-", ""), "-1111-1111111141118111111111111112", "a/b", "..",
	} {
		name, err := naming.Template{Detail: naming.DetailHostname}.Name(naming.Host{HasInventory: true, Hostname: hostname})
		if err == nil {
			t.Errorf("hostname %q makes name %q", hostname, name)
		}
	}
}

func TestTemplate_invalidIsRefused(t *testing.T) {
	t.Parallel()
	hostname, uuid := naming.DetailHostname, naming.DetailProvisioningID
	for _, tt := range []struct {
		template naming.Template
		want     string
	}{
		{naming.Template{Detail: hostname}, ""},
		{naming.Template{Detail: hostname, Prefix: "Rack.12_~"}, ""},
		{naming.Template{Detail: uuid, Prefix: "n-"}, ""},
		{naming.Template{Detail: uuid, Suffix: "x"}, ""},
		{naming.Template{Detail: uuid}, "needs a prefix or a suffix"},
		{naming.Template{Detail: uuid, Prefix: "-"}, "looks like a UUID"},
		{naming.Template{Detail: naming.DetailBootMAC, Prefix: "0123456789-0123456789-"}, "looks like a UUID"},
		{naming.Template{}, "is not one of hostname, ip, serial-number, boot-mac, provisioning-id"},
		{naming.Template{Detail: "asset-tag"}, `"asset-tag" is not one of`},
		{naming.Template{Detail: hostname, Style: "windows"}, "is not one of ironic, dns"},
		{naming.Template{Detail: hostname, Prefix: "a/"}, "prefix \"a/\" has characters other than"},
		{naming.Template{Detail: hostname, Suffix: "ö"}, "suffix \"ö\" has characters other than"},
		{naming.Template{Detail: hostname, Suffix: ".json"}, "ends in .json"},
		{naming.Template{Detail: hostname, Prefix: strings.Repeat("a", 100), Suffix: strings.Repeat("b", 100)}, ""},
		{naming.Template{Detail: hostname, Prefix: strings.Repeat("a", 100), Suffix: strings.Repeat("b", 101)}, "the most is 200"},
		{naming.Template{Detail: hostname, Style: naming.StyleDNS, Prefix: "Rack"}, "a-z, 0-9 and -"},
		{naming.Template{Detail: hostname, Style: naming.StyleDNS, Prefix: "r.12"}, "a-z, 0-9 and -"},
		{naming.Template{Detail: hostname, Style: naming.StyleDNS, Prefix: "-r"}, "begins or ends with a dash"},
		{naming.Template{Detail: hostname, Style: naming.StyleDNS, Prefix: strings.Repeat("a", 62)}, ""},
		{naming.Template{Detail: hostname, Style: naming.StyleDNS, Prefix: strings.Repeat("a", 63)}, "the most is 63"},
		{naming.Template{Detail: naming.DetailBootMAC, Style: naming.StyleDNS, Prefix: strings.Repeat("a", 47)}, "the most is 63"},
	} {
		err := tt.template.Validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.template, err, tt.want)
		}
	}
}

// legal checks a name by Ironic's rules, independently of the code under test.
func legal(name string, style naming.Style) bool {
	shape := regexp.MustCompile(`^[A-Za-z0-9._~-]{1,255}$`)
	if style == naming.StyleDNS {
		shape = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	}
	words := regexp.MustCompile(`(?i)^(maintenance|management|states|vendor_passthru|detail|validate|ports|\.+|.*\.json)$`)
	uuid := regexp.MustCompile(`(?i)^-*([0-9a-f]-*){32}$`)
	return shape.MatchString(name) && !words.MatchString(name) && !uuid.MatchString(name)
}

func FuzzName(f *testing.F) {
	f.Add("r12-", "", 0, "node1", "SN1", "01-52-54-00-aa-bb-01", "10.0.0.1", "fe80::1%eno1", mac1)
	f.Add("", ".json", 1, "..", "To Be Filled By O.E.M.", "", "", "2001:db8::", "")
	f.Add("", "", 2, "0123456789abcdef0123456789abcdef", "AB/12\x00", "ff:ff:ff:ff:ff:ff", "0.0.0.0", "::", "00:00:00:00:00:00")
	f.Add("r", "x", 3, "ports", "\xff\u202e", "K1:aa", "::ffff:1.2.3.4", "1::", "52-54-00-AA-BB-01")
	f.Fuzz(func(t *testing.T, prefix, suffix string, detail int, hostname, serial, pxe, ipv4, ipv6, mac string) {
		host := naming.Host{
			ID: id1, HasInventory: true, Hostname: hostname, Serial: serial, PXEInterface: pxe, PortMACs: []string{mac},
			Interfaces: []naming.Interface{{Name: hostname, MAC: mac, IPv4: ipv4, IPv6: ipv6}},
		}
		details := naming.Details()
		for _, style := range []naming.Style{naming.StyleIronic, naming.StyleDNS} {
			template := naming.Template{
				Prefix: prefix, Suffix: suffix, Style: style, Detail: naming.Detail(details[uint(detail)%uint(len(details))]),
			}
			if template.Validate() != nil {
				template.Prefix, template.Suffix = "r12-", ""
			}
			name, err := template.Name(host)
			var none *naming.NoValueError
			if err != nil {
				if !errors.As(err, &none) || none.Reason == "" || strings.ContainsAny(none.Reason, "\x00\x1b\n\r") ||
					len(none.Reason) > 500 {
					t.Fatalf("error %q is not fit to be shown", err)
				}
				continue
			}
			if !legal(name, style) {
				t.Fatalf("%+v makes %q, which is no legal %s name", template, name, style)
			}
			if again, err := template.Name(host); err != nil || again != name {
				t.Fatalf("first %q, then %q, %v", name, again, err)
			}
			plain := naming.Template{Detail: naming.DetailHostname, Style: style}
			once, err := plain.Name(naming.Host{HasInventory: true, Hostname: name})
			if err != nil {
				continue // for example a name that begins with localhost
			}
			if twice, err := plain.Name(naming.Host{HasInventory: true, Hostname: once}); err != nil || twice != once {
				t.Fatalf("%q becomes %q, and then %q, %v", name, once, twice, err)
			}
		}
	})
}

func TestTemplate_placeholdersAreNoSerialNumbers(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"INVALID", "OEM", "O.E.M.", "Undefined", "NA", "N/A", "SN", "SKU", "TBD", "Blank", "Standard", "SerNum", "SerNum0", "1234567",
		"12345678", "0x00000000", "0123456789ABCDEF", "(null string)", "Serial Number xxxxxx", "empty", " Default string ",
	} {
		h := naming.Host{HasInventory: true, Serial: text}
		if name, err := (naming.Template{Detail: naming.DetailSerialNumber}).Name(h); err == nil {
			t.Errorf("%q names a machine %s", text, name)
		}
	}
}
