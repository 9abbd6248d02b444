package resources_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
)

// wantUntouched fails a test unless a node is deployed, and nobody has asked it for anything since forgetVerbs.
func wantUntouched(t *testing.T, s *acctest.Site, node string) {
	t.Helper()
	wantVerbs(t, s, node)
	if now := s.Node(node)["provision_state"]; now != "active" {
		t.Errorf("the node is %v", now)
	}
}

func TestAccAllocation_renamingItsCandidateChangesNothing(t *testing.T) {
	t.Parallel()
	for attribute, warns := range map[string]bool{"name": true, "id": false} {
		t.Run(attribute, func(t *testing.T) {
			t.Parallel()
			s := acctest.Start(t, nil)
			config := s.Provider() + host(s, 1) + allocation(s, "candidate_nodes = [metal_host.h1."+attribute+"]") + allocated(image("v1"))
			w := acctest.NewWorkspace(t, config)
			w.Must("apply", "-auto-approve")
			node := text(inState(t, w, "metal_host.h1").Values["id"])
			reservation := s.Node(node)["instance_uuid"]
			forgetVerbs(s)
			w.Configure(strings.ReplaceAll(config, quoted(s.Name("h1")), quoted(s.Name("h1-b"))))
			output, _ := w.Plan()
			mention(t, output, " 0 to add,", " 0 to destroy.")
			if warned := strings.Contains(output, "No node has this name yet"); warned != warns {
				t.Errorf("the plan warns: %t, want %t\n%s", warned, warns, output)
			}
			w.Must("apply", "-auto-approve")
			wantUntouched(t, s, node)
			if now := s.Node(node); now["name"] != s.Name("h1-b") || now["instance_uuid"] != reservation {
				t.Errorf("the node is called %v, and reserved by %v", now["name"], now["instance_uuid"])
			}
			noChanges(t, w)
			w.Must("destroy", "-auto-approve")
		})
	}
}

func TestAccAllocation_candidateThatNoNodeIsUndeploysNothing(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	config := func(candidate string) string {
		return s.Provider() + allocation(s, `candidate_nodes = [`+quoted(s.Name(candidate))+`]`) + allocated(image("v1"))
	}
	w := acctest.NewWorkspace(t, config("n1"))
	w.Must("apply", "-auto-approve")
	forgetVerbs(s)
	w.Configure(config("nobody"))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Errorf("the apply worked:\n%s", output)
	}
	mention(t, output, "Ironic knows no node "+s.Name("nobody"), "The reserved node does not fit any more", "does not satisfy candidate_nodes")
	wantUntouched(t, s, node)
	w.Configure(config("n1"))
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccAllocation_candidateThatBecomesKnownLaterUndeploysNothing(t *testing.T) {
	t.Parallel()
	for _, attribute := range []string{"name", "id"} { // a name is known when it is planned, but no node has it
		t.Run(attribute, func(t *testing.T) {
			t.Parallel()
			s := acctest.Start(t, nil)
			config := func(candidate string) string {
				return s.Provider() + allocation(s, `candidate_nodes = [`+candidate+`]`) + allocated(image("v1"))
			}
			node := addNode(t, s, "n1", nil)
			w := acctest.NewWorkspace(t, config(quoted(node)))
			w.Must("apply", "-auto-approve")
			forgetVerbs(s)
			w.Configure(config("metal_host.h1."+attribute) + host(s, 1))
			output, code := w.Run("apply", "-auto-approve")
			if code == 0 {
				t.Errorf("the apply worked:\n%s", output)
			}
			mention(t, output, "The reserved node does not fit any more", "does not satisfy candidate_nodes, as only became known now. It stays reserved.")
			wantUntouched(t, s, node)
			w.Must("destroy", "-auto-approve")
		})
	}
}

func TestAccAllocation_deployedNodeIsNotGivenUpForNothing(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	other := addNode(t, s, "other", nil)
	config := func(hosts string, settings ...string) string {
		return s.Provider() + host(s, 1, `traits = [`+hosts+`]`) +
			allocation(s, append([]string{`depends_on = [metal_host.h1]`}, settings...)...) + allocated(image("v1"))
	}
	w := acctest.NewWorkspace(t, config(`"CUSTOM_NVME"`, `traits = ["CUSTOM_NVME"]`))
	w.Must("apply", "-auto-approve")
	node := text(inState(t, w, "metal_host.h1").Values["id"])
	forgetVerbs(s)
	refused := func(config string, texts ...string) {
		t.Helper()
		w.Configure(config)
		output, code := w.Run("apply", "-auto-approve")
		if code == 0 {
			t.Errorf("the apply worked:\n%s", output)
		}
		mention(t, output, append(texts, "No other node matches", "It is not given up for nothing", "apply that first (-target)")...)
		wantUntouched(t, s, node)
	}
	refused(config(`"CUSTOM_NVME"`, `traits = ["CUSTOM_SSD"]`), "does not satisfy traits", "0 of ", "without CUSTOM_SSD")
	refused(config(`"CUSTOM_NVME"`, `traits = ["CUSTOM_SSD"]`, `candidate_nodes = [`+quoted(other)+`]`), "0 of 1 candidate: 1 without CUSTOM_SSD")

	both := config(`"CUSTOM_SSD"`, `traits = ["CUSTOM_SSD"]`)
	refused(both, "does not satisfy traits")
	w.Must("apply", "-auto-approve", "-target=metal_host.h1")
	w.Must("apply", "-auto-approve")
	wantUntouched(t, s, node)
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccAllocation_planSaysThatADeployedNodeIsGivenUp(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	first := addNode(t, s, "first", nil)
	second := addNode(t, s, "second", nil)
	config := func(candidate string) string {
		return s.Provider() + allocation(s, `candidate_nodes = [`+quoted(candidate)+`]`) + allocated(image("v1"))
	}
	w := acctest.NewWorkspace(t, config(first))
	w.Must("apply", "-auto-approve")
	w.Configure(config(second))
	output, _ := w.Plan()
	mention(t, output, "Reserved node is given up", "Node "+s.Name("first"), "does not satisfy candidate_nodes: when what is deployed on it has been undeployed, it is released",
		"Matching at present: 1 of 1 candidate.")
	w.Must("destroy", "-auto-approve")
}
