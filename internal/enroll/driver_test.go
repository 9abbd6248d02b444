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

// What a plan shows of the interfaces of a host: a name, "?" for what only the apply tells, or "" for none.
func TestDecide_foreseesInterfaces(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		seen, wish string
		want       map[string]string // nil: as they are
	}{
		{"has=boot:ipxe", "description", nil},
		{"new", "sets=boot:ipxe", nil}, // not known at all
		{"has=boot:ipxe changes=boot:ipxe>redfish-virtual-media has=power:redfish", "sets=boot:redfish-virtual-media sets=power:", map[string]string{"boot": "redfish-virtual-media", "power": "redfish"}},
		{"has=boot:ipxe", "sets=boot:redfish-virtual-media", map[string]string{"boot": "redfish-virtual-media"}}, // Ironic has not answered
		{"has=boot:ipxe has=deploy:direct", "sets=boot:? sets=deploy:", map[string]string{"boot": "?", "deploy": "direct"}},
		{"has=boot:ipxe", "driver=idrac sets=boot: sets=bios:idrac-redfish", map[string]string{"boot": "?", "bios": "idrac-redfish"}},
		{"has=boot:ipxe changes=boot:ipxe>pxe", "driver=idrac had=boot:", map[string]string{"boot": "?"}}, // another driver resets it
		{"has=boot:ipxe", "driver=? sets=boot:", map[string]string{"boot": "?"}},
		{"has=boot:redfish-https changes=boot:redfish-https>ipxe", "had=boot:", map[string]string{"boot": "ipxe"}},
		{"has=boot:redfish-https changes=boot:redfish-https>", "had=boot:", map[string]string{"boot": "?"}},
		{"has=boot:redfish-https", "had=boot:", map[string]string{"boot": "?"}},
		{"state=manageable", "sets=boot:ipxe sets=power:", map[string]string{"boot": "ipxe", "power": "?"}}, // an older state
		{"has=firmware:", "sets=firmware:redfish sets=boot:ipxe", map[string]string{"firmware": "", "boot": ""}},
		{"has=deploy:direct", "sets=deploy:autodetect", map[string]string{"deploy": "?"}},
		{"has=deploy:direct changes=deploy:direct>direct", "sets=deploy:autodetect", map[string]string{"deploy": "direct"}}, // which hides autodetect
	} {
		got := enroll.Decide(tell(t, tt.wish, tt.seen)).Forecast.Interfaces
		if (got == nil) != (tt.want == nil) || len(got) != len(tt.want) {
			t.Errorf("%s | %s: %v", tt.seen, tt.wish, got)
		}
		for kind, want := range tt.want {
			text := got[kind].V
			if got[kind].Unknown {
				text = "?"
			}
			if text != want {
				t.Errorf("%s | %s: %s is %q, want %q", tt.seen, tt.wish, kind, text, want)
			}
		}
	}
}
