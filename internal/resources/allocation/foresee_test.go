package allocation_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

func TestAccAllocation_planWarnsOfDemandsThatNoNodeMeets(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "rack1-09", nil)
	site.AddTrait(s, node, "CUSTOM_NVME")
	for name, step := range map[string]struct {
		settings string
		texts    []string
	}{
		"candidate": {"resource_class = " + acctest.Quoted(s.Class()) + "\ncandidate_nodes = [" +
			acctest.Quoted(s.Name("rack1-9")) + "]", []string{
			"Ironic does not know this node", "Ironic knows no node " + s.Name("rack1-9") + "; similar: " + s.Name("rack1-09") + ".",
		}},
		"backfill": {"backfill_node = " + acctest.Quoted(s.Name("rack1-9")), []string{"Ironic knows no node " + s.Name("rack1-9") +
			"; similar: " + s.Name("rack1-09") + "."}},
		"class": {
			"resource_class = " + acctest.Quoted("other"+s.Class()),
			[]string{"No node has this class", "No node has the class \"other" + s.Class() + "\". The classes of the nodes: "},
		},
		"trait": {"resource_class = " + acctest.Quoted(s.Class()) + "\ntraits = [\"CUSTOM_NVMEE\"]", []string{
			"No node has this trait", "No node has the trait CUSTOM_NVMEE; similar: CUSTOM_NVME.",
		}},
		"state": {
			"backfill_node = " + acctest.Quoted(node),
			[]string{"No node matches now", "0 of 1 candidate: 1 not active (1 available)."},
		},
	} {
		w := acctest.NewWorkspace(t, s.Provider()+"resource \"metal_allocation\" \"a\" {\n"+step.settings+"\n}\n")
		output, _ := w.Plan()
		acctest.Mention(t, output, append(step.texts, "Warning: ", "needs depends_on with that metal_host")...)
		if output, code := w.Run("apply", "-auto-approve"); code == 0 {
			t.Errorf("%s: the apply worked:\n%s", name, output)
		}
	}
}

// A wrong name in require.exclude would let the allocation reserve the very node that was meant.
func TestAccAllocation_planWarnsOfUnknownExcludedNode(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	site.AddNode(t, s, "rack1-09", nil)
	config := func(excluded string) string {
		return s.Provider() + acctest.Allocation(s, "require = { exclude = ["+acctest.Quoted(s.Name(excluded))+"] }")
	}
	w := acctest.NewWorkspace(t, config("rack1-9"))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Ironic does not know this node", "Ironic knows no node "+s.Name("rack1-9")+"; similar: "+s.Name("rack1-09")+
		".", "require.exclude does not keep the allocation from any node by that name")
	w.Configure(config("rack1-09"))
	output, _ = w.Plan()
	acctest.NeverMention(t, output, "Ironic does not know this node")
}

func TestAccAllocation_planIsSilentAboutHostsOfThisPlan(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	before := s.Provider() + acctest.Host(s, 1, `depends_on = [terraform_data.a]`) + "resource \"terraform_data\" \"a\" {}\n" +
		acctest.Allocation(s, `depends_on = [metal_host.h1]`, "candidate_nodes = ["+acctest.Quoted(s.Name("h1"))+"]",
			`traits = ["CUSTOM_NEW"]`)
	config := strings.Replace(before, `depends_on = [terraform_data.a]`, `traits = ["CUSTOM_NEW"]`, 1)
	w := acctest.NewWorkspace(t, config)
	silent := func() {
		t.Helper()
		if output := w.Must("apply", "-auto-approve"); strings.Contains(output, "Warning: No ") ||
			strings.Contains(output, "Ironic does not know") {
			t.Errorf("the plan warns of a host that it creates or changes:\n%s", output)
		}
	}
	silent() // creates the host
	w.Must("destroy", "-auto-approve", "-target=metal_allocation.a")
	s.Must(http.MethodDelete, "nodes/"+s.Name("h1")+"/traits/CUSTOM_NEW", nil)
	silent() // changes the host
	w.Must("destroy", "-auto-approve")
}

func TestFakeAllocation_plansShareOneList(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	s := site.StartFake(t, fake)
	fake.AddFleet(60, s.Class())
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, "count = 60", `name = "web-${count.index}"`))
	before := len(fake.Requests())
	w.Must("plan")
	if n := len(fake.Requests()) - before; n > 3 { // API version, lists
		t.Errorf("the plan took %d requests, want at most 3: %v", n, fake.Requests()[before:])
	}
}

// A run that was killed may have created the allocation that the next one plans, and reserved the only node for it.
func TestAccAllocation_planIsSilentAboutAnAllocationThatExists(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	site.AddNode(t, s, "n1", nil)
	left := site.Text(s.Must(http.MethodPost, "allocations", map[string]any{"name": s.Name("web"), "resource_class": s.Class()})["uuid"])
	t.Cleanup(func() { s.Must(http.MethodDelete, "allocations/"+left, nil) })
	site.Until(t, "the allocation", func() bool { return site.AllocationNamed(s, left)["state"] == "active" })
	for name, warns := range map[string]bool{s.Name("web"): false, s.Name("shop"): true} {
		w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, "name = "+acctest.Quoted(name)))
		if output, _ := w.Plan(); strings.Contains(output, "No node matches now") != warns {
			t.Errorf("%s: the plan warns: %t, want %t\n%s", name, !warns, warns, output)
		}
	}
}
