package lost

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

func TestUseOf(t *testing.T) {
	t.Parallel()
	for node, want := range map[*ironic.Node]string{
		{ProvisionState: "active"}:                       "active",
		{ProvisionState: "deploying"}:                    "deploying",
		{ProvisionState: "wait call-back"}:               "wait call-back",
		{ProvisionState: "deploy failed"}:                "deploy failed",
		{ProvisionState: "rescue"}:                       "rescue",
		{ProvisionState: "service failed"}:               "service failed",
		{ProvisionState: "adopt failed"}:                 "adopt failed",
		{ProvisionState: "available", InstanceUUID: "i"}: "reserved",
		{ProvisionState: "manageable", Protected: true}:  "protected",
		{ProvisionState: "available"}:                    "",
		{ProvisionState: "cleaning"}:                     "",
		{ProvisionState: "enroll", Maintenance: true}:    "",
		{ProvisionState: "active", InstanceUUID: "i"}:    "active",
	} {
		if got := UseOf(node); got != want {
			t.Errorf("%+v is used as %q, want %q", node, got, want)
		}
	}
}

// Only an idle host of the site that the state knows is made anew.
func TestRecord_isRefused(t *testing.T) {
	t.Parallel()
	idle, used, older := Record{State: "available"}, Record{Use: "active"}, Record{State: "available", Older: time.Unix(1, 0)}
	for _, site := range []Verdict{UnknownSite, SameSite, OtherSite, NoSite} {
		for name, tt := range map[string]struct {
			record  Record
			refused bool
		}{"idle": {idle, site != SameSite}, "in use": {used, true}, "older": {older, true}} {
			if got := tt.record.isRefused(site); got != tt.refused {
				t.Errorf("%s, site %d: refused = %v", name, site, got)
			}
		}
	}
}

// Times of Ironic are compared with times of Ironic only. What was never seen is not older.
func TestIsOlder(t *testing.T) {
	t.Parallel()
	at := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		seen, now time.Time
		older     bool
	}{
		"never seen": {time.Time{}, at, false}, "the same": {at, at, false}, "newer": {at, at.Add(time.Second), false},
		"older": {at, at.Add(-time.Second), true}, "made anew by another client": {at, time.Time{}, true},
	} {
		if got := IsOlder(tt.seen, &ironic.Node{ProvisionUpdatedAt: tt.now}); got != tt.older {
			t.Errorf("%s: older = %v", name, got)
		}
	}
}

// The first error says what is known and what to do, in few lines before the machines; those after it are one line.
func TestLedger_firstErrorSaysEverything(t *testing.T) {
	t.Parallel()
	l := &ledger{lost: map[[2]string]Record{}}
	for i := range 25 {
		r := Record{Kind: "metal_host", ID: fmt.Sprint(i), Machine: fmt.Sprintf("m-%02d", i), Use: "active"}
		l.lost[[2]string{r.Kind, r.ID}] = r
	}
	r, is := l.find("metal_host", "", "m-03")
	if !is {
		t.Fatal("a host is not found by its name")
	}
	first, next := l.refusal(r, "http://ironic.test", OtherSite), l.refusal(r, "http://ironic.test", OtherSite)
	for _, text := range []string{
		"http://ironic.test", "another site", "removed blocks", "terraform state rm", `lost_records = "recreate"`, "-refresh=false",
		"m-00 (active)",
		"and 5 more",
	} {
		if !strings.Contains(first.Detail, text) {
			t.Errorf("the first error lacks %q:\n%s", text, first.Detail)
		}
	}
	if before, _, _ := strings.Cut(first.Detail, "Found so far"); strings.Count(strings.TrimSpace(before), "\n\n") > 2 {
		t.Errorf("too many paragraphs before the machines:\n%s", first.Detail)
	}
	if strings.Contains(next.Detail, "\n") || !strings.Contains(next.Detail, "m-03 (active)") || next.Summary != first.Summary {
		t.Errorf("the next error is %+v", next)
	}
	if _, is := l.find("metal_deployment", "3", ""); is {
		t.Error("a resource of another kind is found")
	}
}
