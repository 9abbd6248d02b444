package naming_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/naming"
)

func TestHost_bootMAC(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		pxe        string
		pxeEnabled []string
		ports      []string
		want       string
	}{
		{"the inventory's, as boot loaders write it", "01-52-54-00-AA-BB-01", []string{mac2}, []string{mac2, mac3}, mac1},
		{"the inventory's", "52:54:00:AA:BB:01", nil, nil, mac1},
		{"the only port that boots by PXE", "", []string{"52:54:00:AA:BB:02"}, []string{mac1, mac2}, mac2},
		{"the only port", "", nil, []string{mac3}, mac3},
		{"the lowest port", "", []string{mac3, mac2}, []string{mac3, mac2, mac1}, mac1},
		{"what is no address does not count", "eth0", nil, []string{
			"", "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff",
			"zz:54:00:aa:bb:01", mac2,
		}, mac2},
		{"a group is no interface", "01:00:5e:00:00:01", nil, nil, ""},
		{"none", "", nil, nil, ""},
	} {
		host := naming.Host{PXEInterface: tt.pxe, PXEMACs: tt.pxeEnabled, PortMACs: tt.ports}
		if got := host.BootMAC(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestHost_ipIgnoresTheOrderOfInterfaces(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		pxe  string
		nics []naming.Interface
		want string
	}{
		{"the one it booted from", "01-52-54-00-aa-bb-03", []naming.Interface{
			{Name: "eno1", MAC: mac1, IPv4: "10.0.0.1", HasCarrier: true}, {Name: "eno3", MAC: "52:54:00:AA:BB:03", IPv4: "10.0.0.3"},
		}, "10.0.0.3"},
		{"the next one if that has no address", mac3, []naming.Interface{
			{Name: "eno3", MAC: mac3, IPv6: "fe80::3%eno3", HasCarrier: true}, {
				Name: "eno1", MAC: mac1, IPv4: "10.0.0.1",
				HasCarrier: true,
			},
		}, "10.0.0.1"},
		{"with a carrier first", "", []naming.Interface{
			{Name: "eno1", MAC: mac1, IPv4: "10.0.0.1"}, {Name: "eno2", MAC: mac2, IPv4: "10.0.0.2", HasCarrier: true},
		}, "10.0.0.2"},
		{"by PCI address", "", []naming.Interface{
			{Name: "a", MAC: mac1, IPv4: "10.0.0.1", HasCarrier: true},
			{Name: "b", MAC: mac2, IPv4: "10.0.0.2", HasCarrier: true, PCIAddress: "0000:5e:00.0"},
			{Name: "c", MAC: mac3, IPv4: "10.0.0.3", HasCarrier: true, PCIAddress: "0000:3b:00.1"},
		}, "10.0.0.3"},
		{"by name, as people count", "", []naming.Interface{
			{Name: "eno10", MAC: mac1, IPv4: "10.0.0.10", HasCarrier: true}, {Name: "eno9", MAC: mac2, IPv4: "10.0.0.9", HasCarrier: true},
		}, "10.0.0.9"},
		{"without carrier by MAC", "", []naming.Interface{
			{Name: "eno1", MAC: mac2, IPv4: "10.0.0.2"}, {Name: "eno2", MAC: mac1, IPv4: "10.0.0.1"},
		}, "10.0.0.1"},
		{"never lo", "", []naming.Interface{{Name: "lo", IPv4: "10.0.0.1", HasCarrier: true}}, ""},
		{
			"IPv6 without scope", "",
			[]naming.Interface{{Name: "eno1", MAC: mac1, IPv4: "127.0.0.1", IPv6: "2001:DB8:0:0::1%eno1"}},
			"2001:db8::1",
		},
		{"link-local is none", "", []naming.Interface{{Name: "eno1", MAC: mac1, IPv6: "fe80::1"}}, ""},
	} {
		host := naming.Host{PXEInterface: tt.pxe, Interfaces: tt.nics}
		for range 10 {
			rand.Shuffle(len(tt.nics), func(i, j int) { tt.nics[i], tt.nics[j] = tt.nics[j], tt.nics[i] })
			if got := host.IP(); got != tt.want {
				t.Fatalf("%s: %q, want %q", tt.name, got, tt.want)
			}
		}
	}
}

func TestHost_describedBySerialNumberFirst(t *testing.T) {
	t.Parallel()
	h := found(1)
	want := h.ID + " (serial number SN1, MAC address 52:54:00:00:00:01, BMC 10.12.0.2, hostname node1)"
	if got := h.Describe(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := found(1, serial("To be filled by O.E.M."), hostname("")).Describe(); strings.Contains(got, "serial") {
		t.Errorf("a placeholder is no help: %s", got)
	}
}
