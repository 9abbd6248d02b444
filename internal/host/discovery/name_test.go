package discovery_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/discovery"
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
	template := discovery.Template{Prefix: "string-literal1-", Suffix: "-string-literal2", Detail: discovery.DetailHostname}
	name, err := template.Name(discovery.Host{HasInventory: true, Hostname: "the-host-name"})
	if err != nil || name != "string-literal1-the-host-name-string-literal2" {
		t.Errorf("Name = %q, %v", name, err)
	}
}

func TestTemplate_details(t *testing.T) {
	t.Parallel()
	const (
		hostname = discovery.DetailHostname
		serial   = discovery.DetailSerialNumber
		ip       = discovery.DetailIP
		mac      = discovery.DetailBootMAC
		uuid     = discovery.DetailProvisioningID
	)
	addresses := func(ipv4, ipv6 string) discovery.Host {
		return discovery.Host{HasInventory: true, Interfaces: []discovery.Interface{{Name: "eno1", IPv4: ipv4, IPv6: ipv6}}}
	}
	named := func(hostname string) discovery.Host { return discovery.Host{HasInventory: true, Hostname: hostname} }
	numbered := func(serial string) discovery.Host { return discovery.Host{HasInventory: true, Serial: serial} }
	for _, tt := range []struct {
		detail discovery.Detail
		style  discovery.Style
		host   discovery.Host
		name   string // after r-
		reason string
	}{
		{hostname, "", named("Node_1.example.com"), "Node_1.example.com", ""},
		{hostname, "", named(" node1.\n"), "node1", ""},
		{hostname, "", named(""), "", "no hostname in the inventory"},
		{hostname, "", discovery.Host{}, "", "no inventory"},
		{hostname, "", discovery.Host{LastError: "no ports\x1b[31m"}, "", `no inventory; last_error of the node is "no ports\x1b[31m"`},
		{hostname, "", named("localhost"), "", `hostname is "localhost"`},
		{hostname, "", named("localhost.localdomain"), "", `hostname is "localhost.localdomain"`},
		{hostname, "", named("(none)"), "", `hostname is "(none)"`},
		{hostname, "", named("größe"), "", "characters that a name cannot have"},
		{hostname, "", named("a\u202eb"), "", `"a\u202eb"`},
		{hostname, "", named("a\xffb"), "", "characters that a name cannot have"},
		{hostname, "", named(strings.Repeat("ab", 126)), strings.Repeat("ab", 126), ""},
		{hostname, "", named(strings.Repeat("ab", 127)), "", "256 characters, the most is 255"},
		{hostname, "", named("data.JSON"), "", "ends in .json"},
		{hostname, discovery.StyleDNS, named("Node1"), "node1", ""},
		{hostname, discovery.StyleDNS, named("node1.example.com"), "", "characters that a name cannot have"},
		{hostname, discovery.StyleDNS, named("node_1"), "", "characters that a name cannot have"},
		{hostname, discovery.StyleDNS, named(strings.Repeat("ab", 31)), "", "64 characters, the most is 63"},
		{serial, "", numbered("7XK9Q13"), "7XK9Q13", ""},
		{serial, discovery.StyleDNS, numbered("7XK9Q13"), "7xk9q13", ""},
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
		{ip, "", addresses("10.1.1.57", "2001:db8::1"), "10-1-1-57", ""},
		{ip, "", addresses("", "2001:0DB8:0::1%eno1"), "2001-db8--1", ""},
		{ip, "", addresses("169.254.7.7", "2001:db8::1"), "2001-db8--1", ""},
		{ip, discovery.StyleDNS, addresses("", "2001:db8::"), "2001-db8", ""},
		{ip, "", addresses("", "::ffff:10.0.0.1"), "10-0-0-1", ""},
		{ip, "", addresses("", "fe80::1%eno1"), "", "the only IPv6 address is link-local"},
		{ip, "", addresses("169.254.7.7", ""), "", "the only IPv4 address is link-local"},
		{ip, "", addresses("169.254.7.7", "fe80::1"), "", "all IP addresses are link-local"},
		{ip, "", addresses("127.0.0.1", "::1"), "", "no IP address in the inventory"},
		{ip, "", addresses("0.0.0.0", "10.0.0.0/8; rm -rf"), "", "no IP address in the inventory"},
		{ip, "", discovery.Host{}, "", "no inventory"},
		{mac, "", discovery.Host{PortMACs: []string{"52:54:00:AA:BB:01"}}, "52-54-00-aa-bb-01", ""},
		{mac, "", discovery.Host{}, "", "no MAC address"},
		{uuid, "", discovery.Host{ID: id1}, id1, ""},
	} {
		template := discovery.Template{Prefix: "r-", Detail: tt.detail, Style: tt.style}
		if tt.style == "" {
			template.Prefix = "r_"
		}
		name, err := template.Name(tt.host)
		var none *discovery.NoValueError
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
		name, err := discovery.Template{Detail: discovery.DetailHostname}.Name(discovery.Host{HasInventory: true, Hostname: hostname})
		if err == nil {
			t.Errorf("hostname %q makes name %q", hostname, name)
		}
	}
}

func TestTemplate_invalidIsRefused(t *testing.T) {
	t.Parallel()
	hostname, uuid := discovery.DetailHostname, discovery.DetailProvisioningID
	for _, tt := range []struct {
		template discovery.Template
		want     string
	}{
		{discovery.Template{Detail: hostname}, ""},
		{discovery.Template{Detail: hostname, Prefix: "Rack.12_~"}, ""},
		{discovery.Template{Detail: uuid, Prefix: "n-"}, ""},
		{discovery.Template{Detail: uuid, Suffix: "x"}, ""},
		{discovery.Template{Detail: uuid}, "needs a prefix or a suffix"},
		{discovery.Template{Detail: uuid, Prefix: "-"}, "looks like a UUID"},
		{discovery.Template{Detail: discovery.DetailBootMAC, Prefix: "0123456789-0123456789-"}, "looks like a UUID"},
		{discovery.Template{}, "is not one of hostname, ip, serial-number, boot-mac, provisioning-id"},
		{discovery.Template{Detail: "asset-tag"}, `"asset-tag" is not one of`},
		{discovery.Template{Detail: hostname, Style: "windows"}, "is not one of ironic, dns"},
		{discovery.Template{Detail: hostname, Prefix: "a/"}, "prefix \"a/\" has characters other than"},
		{discovery.Template{Detail: hostname, Suffix: "ö"}, "suffix \"ö\" has characters other than"},
		{discovery.Template{Detail: hostname, Suffix: ".json"}, "ends in .json"},
		{discovery.Template{Detail: hostname, Prefix: strings.Repeat("a", 100), Suffix: strings.Repeat("b", 100)}, ""},
		{discovery.Template{Detail: hostname, Prefix: strings.Repeat("a", 100), Suffix: strings.Repeat("b", 101)}, "the most is 200"},
		{discovery.Template{Detail: hostname, Style: discovery.StyleDNS, Prefix: "Rack"}, "a-z, 0-9 and -"},
		{discovery.Template{Detail: hostname, Style: discovery.StyleDNS, Prefix: "r.12"}, "a-z, 0-9 and -"},
		{discovery.Template{Detail: hostname, Style: discovery.StyleDNS, Prefix: "-r"}, "begins or ends with a dash"},
		{discovery.Template{Detail: hostname, Style: discovery.StyleDNS, Prefix: strings.Repeat("a", 62)}, ""},
		{discovery.Template{Detail: hostname, Style: discovery.StyleDNS, Prefix: strings.Repeat("a", 63)}, "the most is 63"},
		{discovery.Template{Detail: discovery.DetailBootMAC, Style: discovery.StyleDNS, Prefix: strings.Repeat("a", 47)}, "the most is 63"},
	} {
		err := tt.template.Validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.template, err, tt.want)
		}
	}
}

// legal checks a name by Ironic's rules, independently of the code under test.
func legal(name string, style discovery.Style) bool {
	shape := regexp.MustCompile(`^[A-Za-z0-9._~-]{1,255}$`)
	if style == discovery.StyleDNS {
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
		host := discovery.Host{
			ID: id1, HasInventory: true, Hostname: hostname, Serial: serial, PXEInterface: pxe, PortMACs: []string{mac},
			Interfaces: []discovery.Interface{{Name: hostname, MAC: mac, IPv4: ipv4, IPv6: ipv6}},
		}
		details := discovery.Details()
		for _, style := range []discovery.Style{discovery.StyleIronic, discovery.StyleDNS} {
			template := discovery.Template{
				Prefix: prefix, Suffix: suffix, Style: style, Detail: discovery.Detail(details[uint(detail)%uint(len(details))]),
			}
			if template.Validate() != nil {
				template.Prefix, template.Suffix = "r12-", ""
			}
			name, err := template.Name(host)
			var none *discovery.NoValueError
			if err != nil {
				if !errors.As(err, &none) || none.Reason == "" || strings.ContainsAny(none.Reason, "\x00\x1b\n\r") || len(none.Reason) > 500 {
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
			plain := discovery.Template{Detail: discovery.DetailHostname, Style: style}
			once, err := plain.Name(discovery.Host{HasInventory: true, Hostname: name})
			if err != nil {
				continue // for example a name that begins with localhost
			}
			if twice, err := plain.Name(discovery.Host{HasInventory: true, Hostname: once}); err != nil || twice != once {
				t.Fatalf("%q becomes %q, and then %q, %v", name, once, twice, err)
			}
		}
	})
}
