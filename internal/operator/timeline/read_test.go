package timeline_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/timeline"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// of returns lines of a record about another node.
func of(id, name string, lines []watch.Entry) []watch.Entry {
	lines = slices.Clone(lines)
	for i := range lines {
		if lines[i].Node != "" {
			lines[i].Node, lines[i].Name = id, name
		}
	}
	return lines
}

// What Ironic has no longer is told from records. Nothing is found that neither knows.
func TestRead_whatIsGone(t *testing.T) {
	t.Parallel()
	client := sitetest.NewClient(ironictest.Fleet(1)).Ironic
	named := record("20 began; 20 deploying@8f4e; 30 active@8f4e; 40 deleted; 50 ended")
	for i := range named {
		if named[i].Instance != "" {
			named[i].Allocation = "db-0"
		}
	}
	known := [][]watch.Entry{
		record("0 began; 0 available<-9; 10 deploying@web-0; 20 active@web-0; 30 deleted; 40 ended"),
		of("n2", "rack1-02", named),
	}
	for ref, want := range map[string]string{
		"n1": "node rack1-01 (n1): -9 available for 19; 10 deploying for 10; 20 active for 10; 30 deleted for 10 at least; 40 " +
			"nothing is known for 20",
		"rack1-01": "node rack1-01 (n1): -9 available for 19; 10 deploying for 10; 20 active for 10; 30 deleted for 10 at least; 40 " +
			"nothing is known for 20",
		"web-0": "allocation web-0: 10 deploying for 10; 20 active for 10; 30 deleted for 10 at least; 40 nothing is known for 20",
		"db-0":  "allocation db-0 (8f4e): 20 deploying for 10; 30 active for 10; 40 deleted for 10 at least; 50 nothing is known for 10",
	} {
		facts, err := timeline.Read(t.Context(), client, ref, known)
		facts.Now = at(60)
		if got := facts.Subject + ": " + brief(timeline.Join(facts)); err != nil || got != want {
			t.Errorf("%s: %v\ngot  %s\nwant %s", ref, err, got, want)
		}
		if !strings.Contains(strings.Join(facts.Missing, " "), "only records tell of it") {
			t.Errorf("%s: nothing says that Ironic does not have it: %q", ref, facts.Missing)
		}
	}
	if _, err := timeline.Read(t.Context(), client, "rack9-99", known); !fault.Is(err, timeline.KindNotFound) {
		t.Errorf("error: %v", err)
	}
}

// A user who may not list nodes is told what is not known of an allocation that only a record has, and that a typo names nothing.
func TestRead_withoutTheRightToListNodes(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(1)
	fake.Reject = func(r *http.Request) *fakeironic.Rejection {
		if r.URL.Path == "/v1/nodes" {
			return ironictest.Fault(http.StatusForbidden, "Access was denied")
		}
		return nil
	}
	client := sitetest.NewClient(fake).Ironic
	known := [][]watch.Entry{record("0 began; 10 deploying@web-0; 20 active@web-0; 40 ended")}
	if _, err := timeline.Read(t.Context(), client, "rack9-99", known); !fault.Is(err, timeline.KindNotFound) {
		t.Errorf("error: %v", err)
	}
	facts, err := timeline.Read(t.Context(), client, "web-0", known)
	missing := strings.Join(facts.Missing, " ")
	if err != nil || len(facts.Machines) != 1 || !strings.Contains(missing, "is to get allocation web-0 again is not known") ||
		!strings.Contains(missing, "in quarantine") {
		t.Errorf("%d machines, %v, missing %q", len(facts.Machines), err, missing)
	}
}

// The life of an allocation is on the nodes that it had, as long as it had them: by the records, by the notes of quarantines, and now.
func TestRead_followsAnAllocation(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(3)
		client := sitetest.NewClient(fake)
		began := time.Now()
		<-time.After(time.Hour)
		first, second := ironictest.NodeOf(t, fake, "node-000").UUID, ironictest.NodeOf(t, fake, "node-001").UUID
		a, err := sitetest.Allocate(t.Context(), client, ironic.AllocationSpec{
			UUID: ironic.NewUUID(), Name: "web-0",
			ResourceClass: "baremetal", CandidateNodes: []string{"node-002"},
		})
		if err != nil {
			t.Fatal(err)
		}
		past := of(first, "node-000", record("0 began; 0 available<-9; 10 deploying@"+a.UUID+"; 20 active@"+a.UUID+
			"; 30 deleting; 35 available; 36 ended"))
		for i := range past {
			past[i].At = began.Add(past[i].At.Sub(at(0)))
		}
		failed := began.Add(45 * time.Minute).UTC().Truncate(time.Second)
		since := failed.Add(time.Minute).Format(time.RFC3339)
		fake.Set("node-001", "extra", map[string]any{"terraform_metal_quarantine": map[string]any{
			"allocation": "web-0", "instance": a.UUID,
			"since": since, "failed": failed.Format(time.RFC3339),
		}})
		fake.Set("node-001", "retired", true)
		fake.Set("node-001", "retired_reason", "quarantine: the deployment for allocation web-0 failed on it at "+since)
		fake.Set("node-001", "provision_state", "deploy failed")
		fake.Set("node-001", "provision_updated_at", failed.Format(time.RFC3339))
		facts, err := timeline.Read(t.Context(), client.Ironic, "web-0", [][]watch.Entry{past})
		if err != nil || len(facts.Machines) != 3 {
			t.Fatalf("%d machines, %v", len(facts.Machines), err)
		}
		life := timeline.Join(facts)
		var got []string
		for _, m := range life.Moments {
			got = append(got, strings.TrimSpace(m.Node+" "+m.What))
		}
		want := []string{
			"node-000 deploying", "node-000 active", "node-000 deleting", "nothing is known", "node-001 deploy failed",
			"node-001 quarantine: the deployment for allocation web-0 failed", "allocation web-0 created",
		}
		if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		text := told(t, fake, "web-0", [][]watch.Entry{past})
		if !strings.Contains(text, "NODE ") || !strings.Contains(text, second[:8]) {
			t.Errorf("the text does not name the nodes:\n%s", text)
		}
	})
}

// An undeployment deletes the allocation and creates it again. Its life has what was before, also in between, and the state that the node
// had before.
func TestRead_tellsTheLifeBeforeAnUndeployment(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		fake.StepTime = 3 * time.Minute
		fake.Set("node-000", "deploy_interface", "direct")
		client, id := sitetest.NewClient(fake), ironictest.NodeOf(t, fake, "node-000").UUID
		<-time.After(time.Hour)
		a, err := sitetest.Allocate(t.Context(), client, ironic.AllocationSpec{
			UUID: ironic.NewUUID(), Name: "web-1",
			ResourceClass: "baremetal",
		})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Minute)
		has := func(when string, texts ...string) {
			t.Helper()
			text, rest, found := told(t, fake, "web-1", nil), "", false
			for _, want := range texts {
				if rest, found = text, strings.Contains(text, want); !found {
					t.Errorf("%s, the life does not go on with %q:\n%s", when, want, rest)
					return
				}
				_, text, _ = strings.Cut(text, want)
			}
		}
		has("at first", "allocation web-1 created ", "2000-01-01 01:00:00  10m00s so far  available")
		if _, _, err := client.Deploy(t.Context(), id, sitetest.Debian("12"), deploy.DeployOptions{
			Instance: a.UUID, Attempts: 1,
			Timeout: 4 * time.Hour,
		}); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := client.Undeploy(t.Context(), id, a.UUID, a.UUID, 4*time.Hour)
			ended <- err
		}()
		<-time.After(5 * time.Minute)
		has("in between", "The allocation is deleted.", "allocation web-1 created", "deployment", "cleaning",
			"an undeployment of node node-000 ("+id+") is to create it again")
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		has("afterwards", "allocation web-1 created ", "deployment", "allocation web-1 created again, because an undeployment "+
			"had deleted it")
	})
}

// What Ironic refuses to show is said, and the rest is told.
func TestRead_saysWhatItMayNotSee(t *testing.T) {
	t.Parallel()
	refused := func(path string, status int) func(*http.Request) *fakeironic.Rejection {
		return func(r *http.Request) *fakeironic.Rejection {
			if strings.HasSuffix(r.URL.Path, path) {
				return ironictest.Fault(status, "Forbidden")
			}
			return nil
		}
	}
	for name, tc := range map[string]struct {
		api    string
		reject func(*http.Request) *fakeironic.Rejection
		want   string
	}{
		"no right to the history": {"", refused("/history", http.StatusForbidden), "does not show you the history of node node-000"},
		"an old Ironic":           {"1.77", nil, "Ironic has no history of nodes (API 1.78)"},
		"an empty history":        {"", nil, "The history of node node-000"},
		"no record":               {"", nil, "No record of metal watch was given."},
		"no right to the allocation": {
			"", refused("/allocation", http.StatusForbidden),
			"does not show you the allocation of node node-000",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := &fakeironic.Server{MaxMicroversion: tc.api}
			fake.AddFleet(1, "baremetal")
			client := sitetest.NewClient(fake)
			if _, err := sitetest.Allocate(t.Context(), client, ironic.AllocationSpec{
				UUID: ironic.NewUUID(), Name: "web-0",
				ResourceClass: "baremetal",
			}); err != nil {
				t.Fatal(err)
			}
			fake.Reject = tc.reject
			if text := told(t, fake, "node-000", nil); !strings.Contains(text, tc.want) || !strings.Contains(text, "node created") {
				t.Errorf("the life does not say %q:\n%s", tc.want, text)
			}
		})
	}
	fake := ironictest.Fleet(1)
	fake.Reject = refused("/history", http.StatusBadRequest)
	if _, err := timeline.Read(t.Context(), sitetest.NewClient(fake).Ironic, "node-000", nil); err == nil ||
		!strings.Contains(err.Error(), "read the history of node node-000") {
		t.Errorf("error: %v", err)
	}
}

// A node and an allocation may have the same name: the node is told of, and the other one named.
func TestRead_sameNames(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(2)
	client := sitetest.NewClient(fake)
	a, err := sitetest.Allocate(t.Context(), client, ironic.AllocationSpec{
		UUID: ironic.NewUUID(), Name: "node-000",
		ResourceClass: "baremetal", CandidateNodes: []string{"node-001"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if text := told(t, fake, "node-000", nil); !strings.HasPrefix(text, "node node-000 (") ||
		!strings.Contains(text, "use its UUID, "+a.UUID) {
		t.Errorf("the life is\n%s", text)
	}
	if text := told(t, fake, a.UUID, nil); !strings.HasPrefix(text, "allocation node-000 (") || !strings.Contains(text, "Node node-001") {
		t.Errorf("the life is\n%s", text)
	}
}
