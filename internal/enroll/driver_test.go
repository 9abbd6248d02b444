package enroll_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/enroll"
)

// A plan says how the driver and the interfaces of a node change, what that means, and what keeps them.
func TestDecide_namesInterfaces(t *testing.T) {
	t.Parallel()
	const active, manageable = "state=active reserved=allocation ", "state=manageable "
	for _, tt := range []struct {
		seen, wish string
		want, not  []string
	}{
		{
			active + "changes=boot:ipxe>redfish-virtual-media", "interfaces",
			[]string{`state "active"`, "its boot interface changes from ipxe to redfish-virtual-media. Ironic accepts that only in maintenance", `set hardware_interfaces = { boot = "ipxe" }.`, "The machine goes on running"},
			[]string{"its driver"},
		},
		{
			manageable + "changes=boot:ipxe>redfish-virtual-media", "interfaces",
			[]string{"its boot interface changes from ipxe to redfish-virtual-media.", `set hardware_interfaces = { boot = "ipxe" }.`},
			[]string{"maintenance", "goes on running"},
		},
		{
			manageable + "changes=bios:no-bios>idrac-redfish changes=boot:redfish-https>", "interfaces",
			[]string{"its bios interface changes from no-bios to idrac-redfish, its boot interface changes from redfish-https to the driver's default.", `{ bios = "no-bios", boot = "redfish-https" }`},
			nil,
		},
		{
			active + "address=redfish://h/1", "driver=idrac",
			[]string{"its driver changes from redfish to idrac.", `write the address as it is now: "redfish://h/1"`},
			[]string{"maintenance", "hardware_interfaces"},
		},
		{
			active + "changes=boot:ipxe>idrac-redfish-virtual-media", "driver=idrac",
			[]string{"its driver changes from redfish to idrac, its boot interface changes from ipxe to idrac-redfish-virtual-media. Ironic accepts that only in maintenance"},
			[]string{"To keep it"},
		},
	} {
		plan := enroll.Decide(tell(t, tt.wish, tt.seen))
		if len(plan.Notices) != 1 || !slices.Contains(plan.Asks, enroll.AskInterfaces) {
			t.Errorf("%s | %s: says %s, and asks for %v", tt.seen, tt.wish, said(plan), plan.Asks)
			continue
		}
		text := plan.Notices[0].Detail
		lacks := func(part string) bool { return !strings.Contains(text, part) }
		if has := func(part string) bool { return !lacks(part) }; slices.ContainsFunc(tt.want, lacks) || slices.ContainsFunc(tt.not, has) {
			t.Errorf("%s | %s: the plan says\n%s", tt.seen, tt.wish, text)
		}
	}
}
