package host_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/driverinfo"
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
			[]string{`state "active"`, "its boot interface changes from ipxe to redfish-virtual-media. Ironic accepts that only in " +
				"maintenance", `set hardware_interfaces = { boot = "ipxe" }.`, "The machine goes on running"},
			[]string{"its driver"},
		},
		{
			manageable + "changes=boot:ipxe>redfish-virtual-media", "interfaces",
			[]string{"its boot interface changes from ipxe to redfish-virtual-media.", `set hardware_interfaces = { boot = "ipxe" }.`},
			[]string{"maintenance", "goes on running"},
		},
		{
			manageable + "changes=bios:no-bios>idrac-redfish changes=boot:redfish-https>", "interfaces",
			[]string{"its bios interface changes from no-bios to idrac-redfish, its boot interface changes from redfish-https to the " +
				"driver's default.", `{ bios = "no-bios", boot = "redfish-https" }`},
			nil,
		},
		{
			active + "address=redfish://h/1", "driver=idrac",
			[]string{"its driver changes from redfish to idrac.", `write the address as it is now: "redfish://h/1"`},
			[]string{"maintenance", "hardware_interfaces"},
		},
		{
			active + "changes=boot:ipxe>idrac-redfish-virtual-media", "driver=idrac",
			[]string{"its driver changes from redfish to idrac, its boot interface changes from ipxe to idrac-redfish-virtual-media. " +
				"Ironic accepts that only in maintenance"},
			[]string{"To keep it"},
		},
	} {
		plan := host.Decide(tell(t, tt.wish, tt.seen))
		if len(plan.Notices) != 1 || !slices.Contains(plan.Asks, host.AskInterfaces) {
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

// What a plan shows of the boot interface of a host: a name, "?" if only the apply tells, "" for none, or "=" if it stays as it is.
func TestDecide_foreseesBootInterface(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ seen, wish, want string }{
		{"boots=ipxe", "description", "="},
		{"new", "sets=boot:ipxe", "="}, // not known at all
		{"boots=ipxe changes=boot:ipxe>redfish-virtual-media", "sets=boot:redfish-virtual-media", "redfish-virtual-media"},
		{"boots=ipxe changes=power:a>b", "sets=boot: sets=power:b", "ipxe"},
		{"boots=ipxe", "sets=boot:redfish-virtual-media", "redfish-virtual-media"}, // Ironic has not answered
		{"boots=ipxe", "sets=boot:?", "?"},
		{"boots=ipxe", "driver=idrac sets=boot:", "?"},
		{"boots=ipxe", "driver=idrac sets=boot:idrac-redfish-virtual-media", "idrac-redfish-virtual-media"},
		{"boots=ipxe changes=boot:ipxe>pxe", "driver=idrac had=boot:", "?"}, // another driver resets it
		{"boots=ipxe", "driver=? sets=boot:", "?"},
		{"boots=redfish-https changes=boot:redfish-https>ipxe", "had=boot:", "ipxe"},
		{"boots=redfish-https changes=boot:redfish-https>", "had=boot:", "?"},
		{"boots=redfish-https", "had=boot:", "?"},
		{"state=manageable", "sets=boot:ipxe", ""}, // the user may not see it
	} {
		got := "="
		if boot := host.Decide(tell(t, tt.wish, tt.seen)).Forecast.BootInterface; boot != nil && boot.Unknown {
			got = "?"
		} else if boot != nil {
			got = boot.V
		}
		if got != tt.want {
			t.Errorf("%s | %s: %q, want %q", tt.seen, tt.wish, got, tt.want)
		}
	}
}

// A plan says which credentials of a BMC are missing, if Ironic needs them and cannot have them already.
func TestDecide_missingCredentials(t *testing.T) {
	t.Parallel()
	const user, secret = "BMC without a user name", "BMC without a password"
	known, another := &driverinfo.BMC{PasswordKey: "redfish_password"}, &driverinfo.BMC{PasswordKey: "ipmi_password"}
	for name, tt := range map[string]struct {
		change func(*host.Wish, *host.Seen)
		want   string
	}{
		"all there":                     {func(*host.Wish, *host.Seen) {}, ""},
		"no user":                       {func(w *host.Wish, _ *host.Seen) { w.NoUser = true }, user},
		"no user and the default state": {func(w *host.Wish, _ *host.Seen) { w.NoUser, w.Target = true, decide.Value[string]{} }, user},
		"no user in enroll":             {func(w *host.Wish, _ *host.Seen) { w.NoUser, w.Target = true, decide.Known("enroll") }, ""},
		"no user, the state open":       {func(w *host.Wish, _ *host.Seen) { w.NoUser, w.Target = true, decide.Unknown[string]() }, ""},
		"no password":                   {func(w *host.Wish, _ *host.Seen) { w.NoPassword = true }, secret},
		"Ironic has them":               {func(w *host.Wish, s *host.Seen) { w.NoUser, s.New = true, false }, ""},
		"Ironic has those of another driver": {func(w *host.Wish, s *host.Seen) {
			w.NoUser, s.New, w.Scheme, s.Scheme = true, false, known, another
		}, user},
	} {
		wish, seen := tell(t, "", "")
		seen.New = true
		tt.change(&wish, &seen)
		plan := host.Decide(wish, seen)
		for _, title := range []string{user, secret} {
			is := slices.ContainsFunc(plan.Notices, func(n decide.Notice) bool { return n.Summary == title })
			if is != (title == tt.want) {
				t.Errorf("%s: says %s, want %q", name, said(plan), tt.want)
			}
		}
	}
}
