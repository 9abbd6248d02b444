package deploy_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// A machine is restarted for its own content with an image that another machine had before. The plan warns that the image may lack
// that content.
func TestLook_imageThatMayLackTheContent(t *testing.T) {
	t.Parallel()
	const old, later = -time.Hour, time.Hour
	for name, tt := range map[string]struct {
		wish, booted string
		ago          time.Duration
		noted, warns bool
	}{
		"booted by another before": {"live_iso=a2, host_content=h2", "a2", old, false, true},
		"booted by another since":  {"live_iso=a2, host_content=h2", "a2", later, false, false},
		"another image":            {"live_iso=a2, host_content=h2", "a3", old, false, false},
		"the image says it":        {"live_iso=a2, host_content=h2, contains=h2", "a2", old, false, false},
		"wanted together before":   {"live_iso=a2, host_content=h2", "a2", old, true, false},
		"no content of its own":    {"live_iso=a2, reboot_policy=always", "a2", old, false, false},
		"demanded by a trigger":    {"live_iso=a2, rebuild_triggers=2", "a2", old, false, false},
		"nothing restarts":         {"live_iso=a2", "a2", old, false, false},
		"not known yet":            {"live_iso=?", "a2", old, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(2)
				site := sitetest.NewClient(fake).Site
				at := time.Now().Add(tt.ago)
				time.Sleep(time.Second)
				record := bootiso.NewRecord(bootiso.Artifacts{URL: "http://images/" + tt.booted}, at, nil)
				text, err := json.Marshal(map[string]any{"terraform_metal_boot": deploy.BootNote{Record: record}})
				extra := map[string]any{}
				if err != nil || json.Unmarshal(text, &extra) != nil {
					t.Fatal(err)
				}
				fake.Set("node-001", "extra", extra)
				seen := runningMachine("live_iso=a1, host_content=h1, rebuild_triggers=1")
				seen.ID = ironictest.NodeOf(t, fake, "node-000").UUID
				wish := changed(seen.Was, tt.wish)
				if tt.noted {
					seen.Sight.Boot.Wanted = bootiso.NextWanted(wish.LiveISO.V.Want.Artifacts, *seen.Sight.Boot.Booted, nil)
				}
				plan := deploy.Decide(wish, seen)
				look := deploy.Look{Site: site, Wish: plan.Forecast.Wish, Seen: seen, Plan: plan}
				look.Image(t.Context())
				const want = "Node n1 is restarted for host.c. Node node-001 was booted with the same image at"
				switch says := look.Notices(); {
				case tt.warns != (len(says) > 0):
					t.Errorf("the plan says %v", says)
				case tt.warns && !strings.Contains(says[0].Detail, want):
					t.Errorf("the plan says %q", says[0].Detail)
				}
			})
		})
	}
}
