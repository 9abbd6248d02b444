package lost

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Only an idle host of the site that the state knows is made anew.
func TestRecord_isRefused(t *testing.T) {
	t.Parallel()
	idle, used, other := Record{State: "available"}, Record{Use: "deployed"}, Record{State: "available", Other: true}
	for _, site := range []Verdict{UnknownSite, HiddenSite, SameSite, OtherSite, NoSite} {
		for name, tt := range map[string]struct {
			record  Record
			refused bool
		}{"idle": {idle, site != SameSite}, "in use": {used, true}, "another": {other, true}} {
			if got := tt.record.isRefused(site); got != tt.refused {
				t.Errorf("%s, site %d: refused = %v", name, site, got)
			}
		}
	}
}

// Times of Ironic are compared with times of Ironic only, which may differ a little. What was never seen is no other.
func TestIsOther(t *testing.T) {
	t.Parallel()
	at := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return at.Add(-d) }
	for name, tt := range map[string]struct {
		seen, created, changed time.Time
		other                  bool
	}{
		"never seen":                     {time.Time{}, ago(time.Hour), at, false},
		"the same":                       {at, ago(time.Hour), at, false},
		"newer":                          {at, ago(time.Hour), at.Add(time.Hour), false},
		"by another conductor's clock":   {at, ago(time.Hour), ago(2 * time.Second), false},
		"of a backup":                    {at, ago(time.Hour), ago(time.Minute), true},
		"of a backup, never changed":     {at, ago(time.Hour), time.Time{}, true},
		"made anew":                      {at, at.Add(time.Minute), time.Time{}, true},
		"made anew, and adopted":         {at, at.Add(time.Minute), at.Add(time.Hour), true},
		"enrolled, and seen as that":     {at, at, time.Time{}, false},
		"without times, to this project": {at, time.Time{}, at, false},
	} {
		if got := IsOther(tt.seen, &ironic.Node{CreatedAt: tt.created, ProvisionUpdatedAt: tt.changed}, ""); got != tt.other {
			t.Errorf("%s: other = %v", name, got)
		}
	}
}

// What is noted of a node makes the same node no other one, also where it was made anew or a poll has no times.
func TestSeen_isOfTheSameRecord(t *testing.T) {
	t.Parallel()
	at := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, n := range map[string]*ironic.Node{
		"enrolled anew": {CreatedAt: at.Add(time.Hour)}, "changed": {CreatedAt: at, ProvisionUpdatedAt: at.Add(time.Hour)},
		"restored by the user": {CreatedAt: at.Add(-time.Hour), ProvisionUpdatedAt: at.Add(-time.Minute)},
	} {
		if IsOther(Seen(at, n), n, "") {
			t.Errorf("%s: another one", name)
		}
	}
	if got := Seen(at, &ironic.Node{}); !got.Equal(at) {
		t.Errorf("a poll without times: %s", got)
	}
}

// The first error says what is known and what to do, in few lines before the machines; those after it are one line.
func TestLedger_firstErrorSaysEverything(t *testing.T) {
	t.Parallel()
	l := &ledger{lost: map[[2]string]Record{}}
	for i := range 25 {
		r := Record{Kind: "metal_host", ID: fmt.Sprint(i), Machine: fmt.Sprintf("m-%02d", i), Use: "deployed"}
		l.lost[[2]string{r.Kind, r.ID}] = r
	}
	r, is := l.find("metal_host", "", "m-03")
	if !is {
		t.Fatal("a host is not found by its name")
	}
	first, next := l.refusal(r, "http://ironic.test", OtherSite), l.refusal(r, "http://ironic.test", OtherSite)
	for _, text := range []string{
		"http://ironic.test", "another site", "removed blocks", "terraform state rm", `lost_records = "recreate"`, "-refresh=false",
		"m-00 (deployed)",
		"and 5 more",
	} {
		if !strings.Contains(first.Detail, text) {
			t.Errorf("the first error lacks %q:\n%s", text, first.Detail)
		}
	}
	if before, _, _ := strings.Cut(first.Detail, "Found so far"); strings.Count(strings.TrimSpace(before), "\n\n") > 2 {
		t.Errorf("too many paragraphs before the machines:\n%s", first.Detail)
	}
	if strings.Contains(next.Detail, "\n") || !strings.Contains(next.Detail, "m-03 (deployed)") || next.Summary != first.Summary {
		t.Errorf("the next error is %+v", next)
	}
	if _, is := l.find("metal_deployment", "3", ""); is {
		t.Error("a resource of another kind is found")
	}
}
