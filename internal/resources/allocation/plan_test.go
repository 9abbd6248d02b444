package allocation_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// wantUntouched fails a test unless a node is deployed, and has got no verb since forgetVerbs.
func wantUntouched(t *testing.T, s *site.Site, node string) {
	t.Helper()
	site.WantVerbs(t, s, node)
	if now := s.Node(node)["provision_state"]; now != "active" {
		t.Errorf("the node is %v", now)
	}
}

func TestAccAllocation_renamedCandidate(t *testing.T) {
	t.Parallel()
	for _, attribute := range []string{"name", "id"} {
		t.Run(attribute, func(t *testing.T) {
			t.Parallel()
			s := site.Start(t, nil)
			config := s.Provider() + acctest.Host(s, 1) + acctest.Allocation(s, "candidate_nodes = [metal_host.h1."+attribute+"]") +
				acctest.Allocated(acctest.Image("v1"))
			w := acctest.NewWorkspace(t, config)
			w.Must("apply", "-auto-approve")
			node := site.Text(acctest.InState(t, w, "metal_host.h1").Values["id"])
			reservation := s.Node(node)["instance_uuid"]
			site.ForgetVerbs(s)
			w.Configure(strings.ReplaceAll(config, acctest.Quoted(s.Name("h1")), acctest.Quoted(s.Name("h1-b"))))
			output, _ := w.Plan()
			acctest.Mention(t, output, " 0 to add, 1 to change, 0 to destroy.")
			acctest.NeverMention(t, output, "Warning:")
			w.Must("apply", "-auto-approve")
			wantUntouched(t, s, node)
			if now := s.Node(node); now["name"] != s.Name("h1-b") || now["instance_uuid"] != reservation {
				t.Errorf("the node is called %v, and reserved by %v", now["name"], now["instance_uuid"])
			}
			acctest.NoChanges(t, w)
			w.Must("destroy", "-auto-approve")
		})
	}
}

// The list of available nodes lacks the reserved node as soon as it is reserved.
func TestAccAllocation_candidatesLimitTheSearchOnly(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	for _, name := range []string{"n1", "n2"} {
		site.AddNode(t, s, name, nil)
	}
	config := s.Provider() + "data \"metal_hosts\" \"free\" {\n  provision_state = \"available\"\n  resource_class = " +
		acctest.Quoted(s.Class()) + "\n}\n" +
		acctest.Allocation(s, "count = 2", "name = \""+s.Name("web")+"-${count.index}\"",
			"candidate_nodes = [for host in data.metal_hosts.free.hosts : host.id]") +
		acctest.Deployment("metal_allocation.a[count.index].node_id", "count = 2", "allocation_id = metal_allocation.a[count.index].id",
			acctest.Image("v1"))
	w := acctest.NewWorkspace(t, config)
	w.Must("apply", "-auto-approve")
	site.ForgetVerbs(s)
	output, changes := w.Plan() // the list is empty now
	if changes {
		t.Errorf("the plan is not empty:\n%s", output)
	}
	acctest.NeverMention(t, output, "Warning:")
	w.Must("apply", "-auto-approve")
	for _, name := range []string{"n1", "n2"} {
		wantUntouched(t, s, s.Name(name))
	}
	w.Must("destroy", "-auto-approve")
}

func TestAccAllocation_candidatesMayComeAndGo(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	other := site.AddNode(t, s, "n2", nil)
	config := func(settings ...string) string {
		return s.Provider() + acctest.Allocation(s, settings...) + acctest.Allocated(acctest.Image("v1"))
	}
	among := func(nodes string) string { return "candidate_nodes = [" + nodes + "]" }
	w := acctest.NewWorkspace(t, config(among(acctest.Quoted(node))))
	w.Must("apply", "-auto-approve")
	site.ForgetVerbs(s)
	for _, step := range map[string]struct {
		config, plan string
	}{
		"another node":          {config(among(acctest.Quoted(other))), "No changes."},
		"an unknown name":       {config(among(`"unknown"`)), "No changes."},
		"one more":              {config(among(acctest.Quoted(node) + ", " + acctest.Quoted(other))), "No changes."},
		"by name":               {config(among(acctest.Quoted(s.Name("n1")))), "No changes."},
		"not known during plan": {config(among("metal_host.h1.id")) + acctest.Host(s, 1), "1 to add, 0 to change, 0 to destroy"},
		"removed":               {config(), "0 to add, 1 to change, 0 to destroy"},
	} {
		w.Configure(step.config)
		output, _ := w.Plan()
		acctest.Mention(t, output, step.plan)
		acctest.NeverMention(t, strings.ReplaceAll(output, "Warning: New host is cleaned", ""), "Warning:")
	}
	w.Configure(config())
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	w.Configure(config(among(acctest.Quoted(other))))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
	acctest.NoChanges(t, w)
	wantUntouched(t, s, node)
	w.Must("destroy", "-auto-approve")
}

func TestAccAllocation_withoutCandidatesReservesNothing(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, "candidate_nodes = []"))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Warning: No candidates", "no node may be reserved")
	acctest.Fails(t, w, acctest.Apply(), "Error: No candidates")
	if taken := s.Node(s.Name("n1"))["instance_uuid"]; taken != nil {
		t.Errorf("node n1 is reserved by %v", taken)
	}
}

func TestAccAllocation_keepsDeployedNode(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	other := site.AddNode(t, s, "other", nil)
	config := func(hosts string, settings ...string) string {
		return s.Provider() + acctest.Host(s, 1, `traits = [`+hosts+`]`) +
			acctest.Allocation(s, append([]string{`depends_on = [metal_host.h1]`}, settings...)...) + acctest.Allocated(acctest.Image("v1"))
	}
	w := acctest.NewWorkspace(t, config(`"CUSTOM_NVME"`, `traits = ["CUSTOM_NVME"]`))
	w.Must("apply", "-auto-approve")
	node := site.Text(acctest.InState(t, w, "metal_host.h1").Values["id"])
	site.ForgetVerbs(s)
	refused := func(config string, texts ...string) {
		t.Helper()
		w.Configure(config)
		output, code := w.Run("apply", "-auto-approve")
		if code == 0 {
			t.Errorf("the apply worked:\n%s", output)
		}
		acctest.Mention(t, output, append(texts, "No other node matches", "does not release the node without a replacement",
			"apply that first (-target)")...)
		wantUntouched(t, s, node)
	}
	refused(config(`"CUSTOM_NVME"`, `traits = ["CUSTOM_SSD"]`), "does not satisfy traits", "0 of ", "without CUSTOM_SSD")
	refused(config(`"CUSTOM_NVME"`, `traits = ["CUSTOM_SSD"]`, `candidate_nodes = [`+acctest.Quoted(other)+`]`),
		"0 of 1 candidate: 1 without CUSTOM_SSD")

	both := config(`"CUSTOM_SSD"`, `traits = ["CUSTOM_SSD"]`)
	refused(both, "does not satisfy traits")
	w.Must("apply", "-auto-approve", "-target=metal_host.h1")
	w.Must("apply", "-auto-approve")
	wantUntouched(t, s, node)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}
