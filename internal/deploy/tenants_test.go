package deploy_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/found"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// withKeystone sets the environment of a user with a password.
func withKeystone(t *testing.T) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "OS_") {
			t.Setenv(name, "")
		}
	}
	for name, value := range map[string]string{
		"AUTH_URL": "http://keystone.test/v3", "USERNAME": "operator", "PASSWORD": "secret",
		"PROJECT_NAME": "metal", "DOMAIN_NAME": "Default",
	} {
		t.Setenv("OS_"+name, value)
	}
}

// ofProject lets a client be one of a project that Keystone has authenticated.
func ofProject(fake *fakeironic.Server, project string) func(*machine.Config) {
	return func(c *machine.Config) {
		c.Auth = api.AuthKeystone
		c.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host != "keystone.test" {
				return fake.RoundTrip(r)
			}
			body := fmt.Sprintf(`{"token": {"project": {"id": %q, "name": "metal"}, "expires_at": %q, "catalog": []}}`, project,
				time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339Nano))
			return &http.Response{
				StatusCode: http.StatusCreated, Header: http.Header{"X-Subject-Token": {"token"}, "Content-Type": {"application/json"}},
				Body: io.NopCloser(bytes.NewReader([]byte(body))), Request: r,
			}, nil
		})
	}
}

// forged is a mark of a run that never was, for a node that another run has reserved.
func forged(t *testing.T, fake *fakeironic.Server, id string) map[string]any {
	t.Helper()
	for _, mark := range sitetest.ExtraOf(t, fake,
		id)[string(notes.MarkReservation)].(map[string]any) {
		copied := mark.(map[string]any)
		delete(copied, "done")
		return map[string]any{ironic.NewUUID(): copied}
	}
	t.Fatal("there is no mark")
	return nil
}

// A user of another project reads the mark of a reservation and writes it anew, as if the run had been killed. The reservation stays.
func TestReserveNew_markOfAnotherProject(t *testing.T) { //nolint:paralleltest // it sets the environment
	withKeystone(t)
	for project, taken := range map[string]bool{"a": true, "b": false} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := ironictest.Fleet(1)
			holder := sitetest.NewClient(fake, ofProject(fake, "a"))
			m, err := holder.Machine(t.Context(), "node-000")
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := deploy.ReserveNew(t.Context(), m, sitetest.Debian("12"), "", sitetest.InAnHour()); err != nil {
				t.Fatal(err)
			}
			fake.Set("node-000", "extra", map[string]any{string(notes.MarkReservation): forged(t, fake, m.Node().UUID)})
			time.Sleep(time.Minute)
			next, err := sitetest.NewClient(fake, ofProject(fake, project)).Machine(t.Context(), "node-000")
			if err != nil {
				t.Fatal(err)
			}
			if _, by, err := deploy.ReserveNew(t.Context(), next, sitetest.Debian("12"), "", sitetest.InAnHour()); (by != nil) != taken ||
				(err == nil) != taken {
				t.Errorf("project %s: taken over from %v, %v", project, by, err)
			}
		})
	}
}

// What a note says that a machine has lost is written to it and connected. Another project must not decide that.
func TestDeploy_lossesThatAnotherProjectNoted(t *testing.T) { //nolint:paralleltest // it sets the environment
	withKeystone(t)
	for owner, restored := range map[any]bool{"a": true, "b": false} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake, id, instance := sitetest.Reserved(t, time.Minute)
			fake.Set(id, "owner", owner)
			fake.Set(id, "extra", map[string]any{"terraform_metal_boot": map[string]any{
				"image": "x", "lost": map[string]any{"instance": instance, "info": map[string]any{"kernel_append_params": "init=/bin/sh"}},
				"again": map[string]any{"instance": instance, "clean": "true"},
			}})
			fake.Set(id, "automated_clean", false)
			node, _, err := sitetest.NewClient(fake, ofProject(fake, "a")).Deploy(t.Context(), id, sitetest.Debian("12"),
				sitetest.OnceIn4h(instance))
			if err != nil || (node.InstanceInfo["kernel_append_params"] != nil) != restored {
				t.Errorf("the owner is %v: instance_info is %v, %v", owner, node.InstanceInfo, err)
			}
			if got := ironictest.NodeOf(t, fake, id).Raw["automated_clean"]; got != restored {
				t.Errorf("the owner is %v: automated_clean is %v", owner, got)
			}
		})
	}
}

// A live ISO replaces another on a machine of another project: what the run itself has noted is restored.
func TestBootISO_restoresOnNodeOfAnotherProject(t *testing.T) { //nolint:paralleltest // it sets the environment
	withKeystone(t)
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, instance := sitetest.Booted(t, "1.109", sitetest.OverNetwork)
		fake.Set(id, "owner", "b")
		node := ironictest.NodeOf(t, fake, id)
		info := node.Raw["instance_info"].(map[string]any)
		info["display_name"] = "web"
		fake.Set(id, "instance_info", info)
		o := deploy.DeployOptions{Instance: instance, Attempts: 1, Timeout: 4 * time.Hour, Other: deploy.RebuildOther}
		now, _, err := sitetest.NewClient(fake, ofProject(fake, "a")).BootISO(t.Context(), id, sitetest.Live("2"), o)
		if err != nil || now.InstanceInfo["display_name"] != "web" || len(ironictest.Verbs(t, fake, id)) != 2 {
			t.Errorf("instance_info is %v after %v, %v", now.InstanceInfo, ironictest.Verbs(t, fake, id), err)
		}
	})
}

// The discovery record of a node of another project makes it no machine of a discovery.
func TestSurvey_recordOfAnotherProject(t *testing.T) { //nolint:paralleltest // it sets the environment
	withKeystone(t)
	for owner, belongs := range map[any]bool{"a": true, nil: true, "b": false} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := ironictest.Fleet(1)
			fake.Set("node-000", "provision_state", "active")
			fake.Set("node-000", "owner", owner)
			fake.Set("node-000", "extra", map[string]any{"terraform_metal_discovery": map[string]any{
				"v": 1, "owner": "rack",
				"name": "r1",
			}})
			survey, err := found.TakeSurvey(t.Context(), sitetest.NewClient(fake, ofProject(fake, "a")).Site, "rack", nil)
			if err != nil || (len(survey.Hosts) == 1) != belongs {
				t.Errorf("the owner is %v: %+v, %v", owner, survey, err)
			}
		})
	}
}

// A user who may write notes, and may not retire a node, does not get it undeployed, and does not use up the nodes that a deployment may
// try.
func TestQuarantine_noteWithoutItsReason(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, allocation := quarantined(t)
		fake.Set(id, "retired_reason", "broken fan")
		m, err := sitetest.NewClient(fake).Machine(t.Context(), id)
		if err == nil {
			err = deploy.FinishQuarantine(t.Context(), m, allocation, time.Hour)
		}
		if got := ironictest.Verbs(t, fake, id); err != nil || len(got) > 0 {
			t.Errorf("verbs %v, %v", got, err)
		}
		if _, err := deploy.CheckTries(t.Context(), sitetest.NewClient(fake).Site, &ironic.Allocation{UUID: allocation, Name: "web"},
			1); err != nil {
			t.Error(err)
		}
	})
}

// The note of an allocation to make again can say anything: neither is another node reserved, nor does the machine stay undestroyable.
func TestUndeploy_forgedAllocation(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(fake *fakeironic.Server, note map[string]any){
		"another node": func(fake *fakeironic.Server, note map[string]any) {
			note["candidate_nodes"] = []any{fake.Nodes()[1].UUID}
		},
		"a name that is refused":   func(_ *fakeironic.Server, note map[string]any) { note["name"] = "no/name" },
		"a class that no node has": func(_ *fakeironic.Server, note map[string]any) { note["resource_class"] = "other" },
		"a name of another project": func(fake *fakeironic.Server, note map[string]any) {
			note["name"] = "theirs"
			ironictest.AsOther(t, fake, http.MethodPost, "allocations", map[string]any{"name": "theirs", "resource_class": "none"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(2)
				ours := ironic.NewUUID()
				note := map[string]any{"uuid": ours, "name": "web", "resource_class": "baremetal"}
				change(fake, note)
				id := fake.Nodes()[0].UUID
				fake.Set(id, "provision_state", "clean failed")
				fake.Set(id, "extra", map[string]any{"terraform_metal_allocation": note})
				if _, err := sitetest.NewClient(fake).Undeploy(t.Context(), id, ours, ours, time.Hour); err != nil {
					t.Error(err)
				}
				if other := ironictest.NodeOf(t, fake, fake.Nodes()[1].UUID); other.InstanceUUID != "" {
					t.Error("another node is reserved")
				}
				if extra := sitetest.ExtraOf(t, fake, id); extra["terraform_metal_allocation"] != nil {
					t.Errorf("the note is still there: %v", extra)
				}
			})
		})
	}
}

// rubbish are values that other users can write in place of a mark or a note.
func rubbish() map[string]any {
	huge := strings.Repeat("x", 100_000)
	run := map[string]any{"since": "3000-01-01T00:00:00Z", "done": "3000-01-01T00:00:00Z", "instance": huge, "origin": huge, "group": huge}
	return map[string]any{
		"a boolean": true, "a number": 1e308, "a negative number": -1e308, "a text": huge, "a list": []any{huge, nil, 1},
		"an empty object": map[string]any{},
		"wrong types": map[string]any{
			"image": []any{1}, "again": 7, "lost": true, "wanted": "x", "owner": 3, "name": []any{}, "uuid": false, "allocation": []any{},
			"triggers": 9, "since": "x", "failed": 1,
		},
		"nested wrong types": map[string]any{
			"image": "x", "again": map[string]any{"clean": 5},
			"lost": map[string]any{"info": []any{}}, "before": 4,
		},
		"a path as run":     map[string]any{"../../instance_uuid": run, "b": run},
		"one path as run":   map[string]any{"x/since": run},
		"a run to come":     map[string]any{ironic.NewUUID(): run},
		"a run of the past": map[string]any{ironic.NewUUID(): map[string]any{"since": "0001-01-02T00:00:00Z"}},
		"huge texts": map[string]any{
			"image": huge, "owner": huge, "name": huge, "uuid": huge, "allocation": huge, "instance": huge,
			"triggers": huge, "boots": 1 << 40,
		},
	}
}

// Whatever stands in place of a mark or a note, a machine is enrolled, deployed and undeployed, and a message stays short.
func TestNotes_rubbishStopsNothing(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		"creation", "reservation", "allocation", "boot", "discovery", "enrolled", "failures", "inspection",
		"quarantine",
	} {
		for name, value := range rubbish() {
			t.Run(key+", "+name, func(t *testing.T) {
				t.Parallel()
				ironictest.InVirtualTime(t, func(t *testing.T) { liveWith(t, "terraform_metal_"+key, value) })
			})
		}
	}
}

// liveWith enrolls, deploys and undeploys a machine, while another user writes a value under a key of extra before each edit of the run.
func liveWith(t *testing.T, key string, value any) {
	t.Helper()
	fake, who := &fakeironic.Server{}, sitetest.MachineOf(1)
	client := sitetest.NewClient(fake)
	made := sitetest.Begin(t, client, who)
	ironictest.AsOther(t, fake, http.MethodPost, "ports", map[string]any{"node_uuid": who.UUID, "address": "52:54:00:00:00:01"})
	busy := false
	fake.Reject = func(r *http.Request) *fakeironic.Rejection {
		if r.Method == http.MethodPatch && !busy {
			busy = true
			fake.Set(who.UUID, "extra", map[string]any{key: value})
			busy = false
		}
		return nil
	}
	if err := made.EndCreation(t.Context(), notes.MarkCreation, made.Reach(t.Context(), states.GoalAvailable, time.Hour)); err != nil {
		t.Fatalf("enroll: %v", err)
	}
	m, err := sitetest.NewClient(fake).Machine(t.Context(), who.UUID)
	if err != nil {
		t.Fatal(err)
	}
	_ = deploy.BootAnswer(m.Node(), bootiso.Want{Artifacts: sitetest.Live("1").LiveISO.Artifacts})
	instance, by, err := deploy.ReserveNew(t.Context(), m, sitetest.Debian("12"), "", sitetest.InAnHour())
	if err != nil || by != nil {
		t.Fatalf("reserve: taken over from %v, %v", by, err)
	}
	if _, err := deploy.Deploy(t.Context(), m, sitetest.Debian("12"), deploy.DeployOptions{
		Instance: instance, Attempts: 1,
		Timeout: time.Hour, Creates: true,
	}); err != nil {
		t.Fatalf("deploy: %v", err)
	}
	if _, err := found.TakeSurvey(t.Context(), sitetest.NewClient(fake).Site, "rack", nil); err != nil {
		t.Fatalf("survey: %v", err)
	}
	if _, err := host.Admit(t.Context(), sitetest.NewClient(fake).Site, sitetest.TheSame(who), sitetest.InAnHour()); err == nil ||
		len(err.Error()) > 1000 {
		t.Errorf("a second host of this name: %.200v", err)
	} else if _, detail := failure.Explain("enroll", err); len(detail) > 2000 || strings.Contains(detail, "is creating it") {
		t.Errorf("a second host of this name: %.200s", detail)
	}
	if _, err := sitetest.NewClient(fake).Undeploy(t.Context(), who.UUID, instance, "", time.Hour); err != nil {
		t.Fatalf("undeploy: %v", err)
	}
}

// cable makes the ports and port groups of a node that has none.
func cable(ctx context.Context, c *sitetest.Client, node string, want host.WantedCables) error {
	m, err := c.Machine(ctx, node)
	if err == nil {
		_, err = host.ApplyPorts(ctx, m, want, true)
	}
	return err
}

// What must be unique belongs to another project: for this user it does not exist, and cannot be imported.
func TestUnseen_saysThatItBelongsToOthers(t *testing.T) { //nolint:paralleltest // it sets the environment
	withKeystone(t)
	address := "52:54:00:ff:ff:01"
	for text, do := range map[string]func(ctx context.Context, c *sitetest.Client, node string) error{
		"A node with name taken already exists.": func(ctx context.Context, c *sitetest.Client, _ string) error {
			_, err := host.Enroll(ctx, c.Site, ironic.NewUUID(), ironic.Settings{"name": "taken", "driver": "redfish"})
			return err
		},
		"A node with name taken  already exists.": func(ctx context.Context, c *sitetest.Client, node string) error { // a rename
			m, err := c.Machine(ctx, node)
			if err == nil {
				err = m.Patch(ctx, sitetest.Setting("/name", "taken"))
			}
			return err
		},
		"A port with MAC address " + address + " already exists.": func(ctx context.Context, c *sitetest.Client, node string) error {
			return cable(ctx, c, node, host.WantedCables{Ports: map[string]ironic.PortSpec{address: {Address: address}}})
		},
		"A portgroup with MAC address " + address + " already exists.": func(ctx context.Context, c *sitetest.Client, node string) error {
			return cable(ctx, c, node, host.WantedCables{Groups: map[string]ironic.PortGroupSpec{"bond0": {Address: address}}})
		},
		"An allocation with name taken already exists.": func(ctx context.Context, c *sitetest.Client, _ string) error {
			_, _, err := allocate.Allocate(ctx, c.Site, &allocate.Request{AllocationSpec: ironic.AllocationSpec{
				UUID: ironic.NewUUID(),
				Name: "taken", ResourceClass: "baremetal",
			}})
			return err
		},
	} {
		for project, seen := range map[string]bool{"a": false, "": true} {
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				fake.Reject = func(r *http.Request) *fakeironic.Rejection {
					if r.Method != http.MethodPost && r.Method != http.MethodPatch {
						return nil
					}
					return ironictest.Fault(http.StatusConflict, strings.ReplaceAll(text, "  ", " "))
				}
				began, err := time.Now(), do(t.Context(), sitetest.NewClient(fake, ofProject(fake, project)),
					ironictest.NodeOf(t, fake, "node-000").UUID)
				_, detail := failure.Explain("do it", err)
				if err == nil || strings.Contains(detail, "another project") == seen || !seen &&
					strings.Contains(detail, "terraform import") || time.Since(began) > time.Minute {
					t.Errorf("%s after %s", detail, time.Since(began))
				}
			})
		}
	}
}

// The user of a project learns that the nodes of others are not counted.
func TestCensus_saysWhatTheUserSees(t *testing.T) { //nolint:paralleltest // it sets the environment
	withKeystone(t)
	for project, says := range map[string]bool{"a": true, "": false} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			client := sitetest.NewClient(ironictest.Fleet(2), ofProject(ironictest.Fleet(2), project))
			_, err := sitetest.Allocate(t.Context(), client, ironic.AllocationSpec{UUID: ironic.NewUUID(), ResourceClass: "other"})
			if err == nil || strings.Contains(err.Error(), "0 of 2 nodes that this user sees") != says {
				t.Errorf("project %q: %v", project, err)
			}
		})
	}
}
