package enroll

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/driverinfo"
)

func TestChangesOfDriver(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ before, after, was, becomes, want string }{
		"none":                {"redfish", "redfish", "redfish://h/1", "redfish://h/1", ""},
		"another driver":      {"ipmi", "redfish", "ipmi://h", "redfish-virtualmedia://h/1", "its driver changes from ipmi to redfish"},
		"no address before":   {"ipmi", "redfish", "", "redfish://h/1", "its driver changes from ipmi to redfish"},
		"no address after":    {"redfish", "ipmi", "redfish://h/1", "", "its driver changes from redfish to ipmi"},
		"another boot":        {"redfish", "redfish", "redfish://h/1", "redfish-virtualmedia://h/1", "its boot interface changes from the driver's default to redfish-virtual-media"},
		"the default again":   {"redfish", "redfish", "redfish-uefihttp://h/1", "ilo5-redfish://h/1", "its boot interface changes from redfish-https to the driver's default"},
		"another name for it": {"redfish", "redfish", "redfish-virtualmedia://h/1", "ilo5-virtualmedia://h/1", ""},
		"not read yet":        {"", "redfish", "", "redfish://h/1", ""},
	} {
		parse := func(address string) *driverinfo.BMC {
			if address == "" {
				return nil
			}
			bmc, err := driverinfo.ParseBMC(address)
			if err != nil {
				t.Fatal(err)
			}
			return bmc
		}
		if got := strings.Join(changesOfDriver(tt.before, tt.after, parse(tt.was), parse(tt.becomes)), "; "); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
