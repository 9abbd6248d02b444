package deploy_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// A quarantine counts for a day, for allocations of the same name, and until an operator returns the node.
func TestQuarantine_countsForADay(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, now := ironictest.Fleet(5), time.Now()
		for i, note := range []struct {
			allocation string
			age        time.Duration
			retired    bool
		}{
			{"web", time.Hour, true},
			{"web", 23 * time.Hour, true},
			{"web", 25 * time.Hour, true},
			{"db", time.Hour, true},
			{"web", time.Hour, false},
		} {
			id := fake.Nodes()[i].UUID
			fake.Set(id, "provision_state", "manageable")
			fake.Set(id, "retired", note.retired)
			since := now.Add(-note.age).UTC().Format(time.RFC3339)
			fake.Set(id, "retired_reason", "quarantine: the deployment for allocation "+note.allocation+" failed on it at "+since)
			fake.Set(id, "extra", map[string]any{"terraform_metal_quarantine": map[string]any{
				"allocation": note.allocation,
				"instance":   ironic.NewUUID(), "since": since,
			}})
		}
		web := &ironic.Allocation{UUID: ironic.NewUUID(), Name: "web"}
		if _, err := deploy.CheckTries(t.Context(), sitetest.NewClient(fake).Site, web, 3); err != nil {
			t.Errorf("got %v", err)
		}
		client := sitetest.NewClient(fake)
		_, err := deploy.CheckTries(t.Context(), client.Site, web, 2)
		if !failure.Is(err, deploy.KindTried) || !strings.Contains(err.Error(), "on 2 of at most 2 nodes (max_nodes)") {
			t.Fatalf("got %v", err)
		}
		older, newer := strings.Index(err.Error(), fake.Nodes()[1].UUID), strings.Index(err.Error(), fake.Nodes()[0].UUID)
		if older < 0 || newer < older {
			t.Errorf("the nodes are not named in the order of their failures: %v", err)
		}
		_, _ = deploy.CheckTries(t.Context(), client.Site, web, 9)
		if lists := ironictest.Count(fake, "GET", "/v1/nodes"); lists > 2 {
			t.Errorf("two runs sent %d lists", lists)
		}
	})
}

// An update takes a machine out of use only if on_failure says so, and the machine has lost what it ran.
func TestRebuild_needsQuarantine(t *testing.T) {
	t.Parallel()
	broken := &failure.Error{Kind: failure.KindFailed, Goal: states.GoalRebuilt, Node: &ironic.Node{ProvisionState: "deploy failed"}}
	image, iso := deploy.Deployment{}, deploy.Deployment{LiveISO: &bootiso.Want{}}
	for name, tt := range map[string]struct {
		rebuild deploy.Rebuild
		failed  error
		want    bool
	}{
		"it has failed":         {deploy.Rebuild{Phase: deploy.Deploys, Wanted: image, Quarantines: true}, broken, true},
		"it has not":            {deploy.Rebuild{Phase: deploy.Deploys, Wanted: image, Quarantines: true}, nil, false},
		"Ctrl-C":                {deploy.Rebuild{Phase: deploy.Deploys, Wanted: image, Quarantines: true}, context.Canceled, false},
		"on_failure is another": {deploy.Rebuild{Phase: deploy.Deploys, Wanted: image}, broken, false},
		"a live ISO":            {deploy.Rebuild{Phase: deploy.Deploys, Wanted: iso, Quarantines: true}, broken, false},
		"a later step":          {deploy.Rebuild{Phase: deploy.Restarts, Wanted: image, Quarantines: true}, broken, false},
	} {
		if got := tt.rebuild.NeedsQuarantine(tt.failed); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

// A deployment that fails for want of a port of Neutron would fail on each node, so it takes none out of use.
func TestIsDeployFailure_notWithoutVIF(t *testing.T) {
	t.Parallel()
	for lastError, want := range map[string]bool{
		"Deploy step deploy.write_image failed: no space left.":                                                                  true,
		"Deploy step deploy.deploy failed: Port " + ourVIF + " failed to reach status ACTIVE.":                                   true,
		"Deploy step deploy.deploy failed: No ports are associated with node n1.":                                                true,
		"Deploy step deploy.deploy failed: Unable to set binding:host_id for neutron port X. Error: No Port found for " + ourVIF: false,
		"Deploy step deploy.deploy failed: No neutron ports or portgroups are associated with node n1.":                          false,
		"Deploy step deploy.deploy failed: Failed to bind any flat network ports for node n1.":                                   false,
	} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := ironictest.Fleet(1)
			fake.Fail = func(fakeironic.Node, string) string { return lastError }
			client, id, instanceID := sitetest.NewClient(fake), fake.Nodes()[0].UUID, ironic.NewUUID()
			if _, err := client.ReserveNode(t.Context(), id, instanceID); err != nil {
				t.Fatal(err)
			}
			_, _, err := client.Deploy(t.Context(), id, deploy.Deployment{}, deploy.DeployOptions{
				Instance: instanceID, Attempts: 1,
				Timeout: time.Hour,
			})
			if is := deploy.IsDeployFailure(err); is != want {
				t.Errorf("%s: %t, %v", lastError, is, err)
			}
		})
	}
}

// Only a machine that is to blame is put into quarantine: a wrong image would empty the pool. What has several causes speaks against a
// machine only if the same image runs on another one, whatever its host name.
func TestEndTry_blameDecides(t *testing.T) {
	t.Parallel()
	const (
		missing = "Validation of image href http://h/a failed, reason: Got HTTP code 404 instead of 200 in response to HEAD request."
		broken  = "Deploy step deploy.write_image failed: Writing image to device /dev/sda failed with exit code 1"
		silent  = "Timeout reached while waiting for callback for node n"
		busy    = "No free conductor workers available."
		unknown = "It broke."
	)
	for name, tt := range map[string]struct {
		lastError string
		proven    bool // the run has deployed the same image on another machine
		want      bool
	}{
		"an image that is not there": {missing, false, false},
		"an image that was there":    {missing, true, false},
		"a disk":                     {broken, false, true},
		"no worker":                  {busy, true, false},
		"a ramdisk that never came":  {silent, false, false},
		"only on this one":           {silent, true, true},
		"what nobody knows":          {unknown, false, true},
	} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := ironictest.Fleet(2)
			bad, good := fake.Nodes()[0].UUID, fake.Nodes()[1].UUID
			fake.Fail = func(n fakeironic.Node, verb string) string {
				if n.UUID == bad && verb == "active" {
					return tt.lastError
				}
				return ""
			}
			client := sitetest.NewClient(fake)
			deployOn := func(id string) (*machine.Machine, string, error) {
				instance := ironic.NewUUID()
				if _, err := client.ReserveNode(t.Context(), id, instance); err != nil {
					t.Fatal(err)
				}
				named := deploy.Deployment{
					Image:       &deploy.Image{URL: "http://h/a", Checksum: strings.Repeat("a", 64)},
					ConfigDrive: map[string]any{"meta_data": map[string]any{"name": id}},
				}
				_, _, err := client.Deploy(t.Context(), id, named, deploy.DeployOptions{
					Instance: instance, Attempts: 1, Timeout: time.Hour,
				})
				m, bad := client.Machine(t.Context(), id)
				if bad != nil {
					t.Fatal(bad)
				}
				return m, instance, err
			}
			if tt.proven {
				if _, _, err := deployOn(good); err != nil {
					t.Fatal(err)
				}
			}
			m, instance, failed := deployOn(bad)
			try := &deploy.Try{Allocation: &ironic.Allocation{UUID: instance, Name: "web"}, Max: 3}
			is, notices, err := deploy.EndTry(t.Context(), m, try, failed, time.Hour,
				func(context.Context, *ironic.Node, time.Duration) error { return nil })
			if is != tt.want || err == nil || is == (len(notices) > 0) {
				t.Errorf("%s: in quarantine: %t, want %t; %v, %v", name, is, tt.want, notices, err)
			}
		})
	}
}

// A deployment that would ask for the same is not tried again, and what passes by itself is not tried more often than the walk does.
func TestDeploy_attemptsEndWhereTheyAreInVain(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]int{
		"Validation of image href http://h/a failed, reason: Got HTTP code 404 instead of 200 in response to HEAD request.": 1,
		"No free conductor workers available.": 4,
		"Deploy step deploy.write_image failed: Writing image to device /dev/sda failed with exit code 1": 3,
		"It broke.": 3,
	} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := ironictest.Fleet(1)
			verbs := 0
			fake.Fail = func(_ fakeironic.Node, verb string) string {
				if verb == "active" {
					verbs++
				}
				return words
			}
			client, id, instanceID := sitetest.NewClient(fake), fake.Nodes()[0].UUID, ironic.NewUUID()
			if _, err := client.ReserveNode(t.Context(), id, instanceID); err != nil {
				t.Fatal(err)
			}
			options := deploy.DeployOptions{Instance: instanceID, Attempts: 3, Timeout: time.Hour}
			if _, _, err := client.Deploy(t.Context(), id, deploy.Deployment{}, options); !failure.Is(err, failure.KindFailed) {
				t.Errorf("%q: %v", words, err)
			}
			if verbs != want {
				t.Errorf("%q: Ironic has deployed %d times, want %d", words, verbs, want)
			}
		})
	}
}
