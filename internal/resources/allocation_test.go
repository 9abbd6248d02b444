package resources_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/compare"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

const allocationAddress = "metal_allocation.a"

// allocationIs checks an attribute of the allocation in state.
func allocationIs(attribute string, value knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(allocationAddress, tfjsonpath.New(attribute), value)
}

// allocationPlan checks what is planned for the allocation.
func allocationPlan(action plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(allocationAddress, action)}}
}

func TestAccAllocation_reservesRenamesAndReleases(t *testing.T) {
	s := acctest.Start(t, nil)
	stays := statecheck.CompareValue(compare.ValuesSame())
	same := func() statecheck.StateCheck { return stays.AddStateValue(allocationAddress, tfjsonpath.New("id")) }
	before := s.Provider() + host(s, 1, `traits = ["CUSTOM_NVME"]`) +
		allocation(s, `depends_on = [metal_host.h1]`, `name = `+quoted(s.Name("web")), `traits = ["CUSTOM_NVME"]`, `extra = { team = "web", slots = 2, old = true }`)
	after := s.Provider() + host(s, 1, `traits = ["CUSTOM_NVME"]`) +
		allocation(s, `depends_on = [metal_host.h1]`, `name = `+quoted(s.Name("shop")), `traits = ["CUSTOM_NVME"]`, `extra = { team = "shop", slots = 2, tags = ["a"] }`)
	imported := []string{"candidate_nodes", "timeouts"}
	test(t,
		resource.TestStep{
			Config: before,
			ConfigStateChecks: []statecheck.StateCheck{
				same(),
				statecheck.CompareValuePairs(allocationAddress, tfjsonpath.New("node_id"), "metal_host.h1", tfjsonpath.New("id"), compare.ValuesSame()),
				allocationIs("node_name", knownvalue.StringExact(s.Name("h1"))),
				allocationIs("state", knownvalue.StringExact("active")),
				allocationIs("last_error", knownvalue.Null()),
				allocationIs("created_at", knownvalue.NotNull()),
			},
		},
		resource.TestStep{
			Config:            after,
			ConfigPlanChecks:  allocationPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{same(), allocationIs("name", knownvalue.StringExact(s.Name("shop")))},
			Check: func(*terraform.State) error {
				got := fmt.Sprint(allocationNamed(s, s.Name("shop"))["extra"])
				if want := "map[slots:2 tags:[a] team:shop]"; got != want {
					return fmt.Errorf("extra in Ironic is %s, want %s", got, want)
				}
				return nil
			},
		},
		resource.TestStep{ResourceName: allocationAddress, ImportState: true, ImportStateVerify: true, ImportStateVerifyIgnore: imported},
		resource.TestStep{
			ResourceName: allocationAddress, ImportState: true, ImportStateId: s.Name("shop"),
			ImportStateVerify: true, ImportStateVerifyIgnore: imported,
		},
		resource.TestStep{
			ResourceName: allocationAddress, ImportState: true, ImportStateKind: resource.ImportBlockWithID, ImportStateId: s.Name("shop"),
			ImportPlanChecks: resource.ImportPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
		},
	)
	if left := s.Left(); len(left) > 0 {
		t.Errorf("left in Ironic: %v", left)
	}
}

func TestAccAllocation_choosesByTraitsCandidatesAndOwner(t *testing.T) {
	s := acctest.Start(t, nil)
	plain := addNode(t, s, "plain", nil)
	fast := addNode(t, s, "fast", nil)
	rented := addNode(t, s, "rented", nil)
	listed := addNode(t, s, "listed", nil)
	addTrait(s, fast, "CUSTOM_NVME")
	addTrait(s, fast, "CUSTOM_GPU")
	addTrait(s, listed, "CUSTOM_SSD")
	s.Patch(rented, "add", "/owner", "project-x")
	one := func(name string, settings ...string) string {
		return fmt.Sprintf("resource \"metal_allocation\" %q {\n  resource_class = %q\n  %s\n}\n", name, s.Class(), strings.Join(settings, "\n  "))
	}
	got := func(name, node string) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("metal_allocation."+name, tfjsonpath.New("node_id"), knownvalue.StringExact(node))
	}
	test(t, resource.TestStep{
		Config: s.Provider() +
			one("traits", `traits = ["CUSTOM_GPU", "CUSTOM_NVME"]`) +
			one("name", `candidate_nodes = [`+quoted(s.Name("plain"))+`]`) +
			one("uuid", `candidate_nodes = [`+quoted(plain)+`, `+quoted(listed)+`]`, `traits = ["CUSTOM_SSD"]`) +
			one("owner", `owner = "project-x"`),
		ConfigStateChecks: []statecheck.StateCheck{got("traits", fast), got("name", plain), got("uuid", listed), got("owner", rented)},
	})
}

func TestAccAllocation_countsWhyNoNodeMatchesAndLeavesNothing(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	addNode(t, s, "plain", nil)
	broken := addNode(t, s, "broken", nil)
	s.Must(http.MethodPut, "nodes/"+broken+"/maintenance", map[string]any{})
	asleep := addNode(t, s, "asleep", nil)
	s.Verb(asleep, "manage", "manageable")
	t.Cleanup(func() { s.Verb(asleep, "provide", "available") })
	w := acctest.NewWorkspace(t, s.Provider()+allocation(s, `name = `+quoted(s.Name("web")), `traits = ["CUSTOM_NVME"]`))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the apply worked:\n%s", output)
	}
	mention(t, output, "Could not allocate a node for "+s.Name("web"), "No node matches: 0 of ", "1 not available (1 manageable)", "1 in maintenance", "1 without CUSTOM_NVME",
		"Ironic says: Failed to process allocation", "Make more nodes available in this class")
	if left := allocationNamed(s, s.Name("web")); left != nil {
		t.Errorf("the failed allocation is still there: %v", left)
	}
	if inState(t, w, allocationAddress) != nil {
		t.Errorf("an allocation that failed is in state:\n%s", w.State())
	}
	addTrait(s, s.Name("plain"), "CUSTOM_NVME")
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
}

func TestAccAllocation_saysThatANodesPowerStateIsUnknown(t *testing.T) {
	s := acctest.Start(t, nil)
	id := text(s.Must(http.MethodPost, "nodes", map[string]any{"driver": "fake-hardware", "name": s.Name("dark"), "resource_class": s.Class()})["uuid"])
	t.Cleanup(func() { removeNode(t, s, id) })
	s.Verb(id, "manage", "manageable")
	s.Verb(id, "provide", "available")
	test(t, resource.TestStep{
		Config:      s.Provider() + allocation(s),
		ExpectError: regexp.MustCompile(wrapped(`1 with unknown power state`) + `[\s\S]*` + wrapped(`set power_state on their metal_host`)),
	})
}

func TestAccAllocation_nameTaken(t *testing.T) {
	s := acctest.Start(t, nil)
	addNode(t, s, "n1", nil)
	taken := text(s.Must(http.MethodPost, "allocations", map[string]any{"name": s.Name("web"), "resource_class": s.Class()})["uuid"])
	t.Cleanup(func() { s.Must(http.MethodDelete, "allocations/"+taken, nil) })
	test(t, resource.TestStep{
		Config:      s.Provider() + allocation(s, `name = `+quoted(s.Name("web"))),
		ExpectError: regexp.MustCompile(wrapped(`An allocation with name `+s.Name("web")+` already exists`) + `[\s\S]*` + wrapped(`Import the existing allocation, or choose another name`)),
	})
}

func TestAccAllocation_releasedBehindOurBackIsMadeAgain(t *testing.T) {
	s := acctest.Start(t, nil)
	addNode(t, s, "n1", nil)
	config := s.Provider() + allocation(s, `name = `+quoted(s.Name("web")))
	differs := statecheck.CompareValue(compare.ValuesDiffer())
	test(t,
		resource.TestStep{Config: config, ConfigStateChecks: []statecheck.StateCheck{differs.AddStateValue(allocationAddress, tfjsonpath.New("id"))}},
		resource.TestStep{
			PreConfig:         func() { s.Must(http.MethodDelete, "allocations/"+s.Name("web"), nil) },
			Config:            config,
			ConfigPlanChecks:  allocationPlan(plancheck.ResourceActionCreate),
			ConfigStateChecks: []statecheck.StateCheck{differs.AddStateValue(allocationAddress, tfjsonpath.New("id"))},
		},
	)
}

func TestAccAllocation_changedBehindOurBackIsShown(t *testing.T) {
	s := acctest.Start(t, nil)
	addNode(t, s, "n1", nil)
	config := s.Provider() + allocation(s, `name = `+quoted(s.Name("web")), `extra = { team = "web" }`)
	edit := func(path string, value any) {
		s.Must(http.MethodPatch, "allocations/"+s.Name("web"), []any{map[string]any{"op": "add", "path": path, "value": value}})
	}
	test(t,
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() { edit("/extra/note", "of somebody else") },
			Config:    config, PlanOnly: true,
		},
		resource.TestStep{
			PreConfig: func() { edit("/extra/team", "shop"); edit("/name", s.Name("shop")) },
			Config:    config, ConfigPlanChecks: allocationPlan(plancheck.ResourceActionUpdate),
			Check: func(*terraform.State) error {
				if got, want := fmt.Sprint(allocationNamed(s, s.Name("web"))["extra"]), "map[note:of somebody else team:web]"; got != want {
					return fmt.Errorf("extra in Ironic is %s, want %s", got, want)
				}
				return nil
			},
		},
	)
}

func TestAccAllocation_isNotReleasedUnderARunningMachine(t *testing.T) {
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	config := s.Provider() + allocation(s, `name = `+quoted(s.Name("web")))
	test(t,
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() { s.Verb(node, "active", "active") },
			Config:    config, Destroy: true,
			ExpectError: regexp.MustCompile(wrapped(`Could not release node `+s.Name("n1")) + `[\s\S]*` +
				wrapped(`because the node is active`) + `[\s\S]*` + wrapped(`Destroy its metal_deployment first, or undeploy it with`)),
		},
		resource.TestStep{Config: config, PlanOnly: true},
		resource.TestStep{PreConfig: func() { s.Verb(node, "deleted", "available") }, Config: s.Provider(), ExpectNonEmptyPlan: false},
	)
}

func TestAccAllocation_demandsThatTheNodeStillMeetsChangeInPlace(t *testing.T) {
	s := acctest.Start(t, nil)
	first := addNode(t, s, "first", nil)
	second := addNode(t, s, "second", nil)
	addTrait(s, first, "CUSTOM_A")
	addTrait(s, first, "CUSTOM_B")
	stays := statecheck.CompareValue(compare.ValuesSame())
	same := func() statecheck.StateCheck { return stays.AddStateValue(allocationAddress, tfjsonpath.New("id")) }
	inPlace := func(config string) resource.TestStep {
		return resource.TestStep{
			Config: s.Provider() + config, ConfigPlanChecks: allocationPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{same(), allocationIs("node_id", knownvalue.StringExact(first))},
		}
	}
	candidates := func(nodes ...string) string { return "candidate_nodes = [" + strings.Join(nodes, ", ") + "]" }
	test(t,
		resource.TestStep{
			Config:            s.Provider() + allocation(s, candidates(quoted(first)), `traits = ["CUSTOM_A", "CUSTOM_B"]`),
			ConfigStateChecks: []statecheck.StateCheck{same()},
		},
		inPlace(allocation(s, candidates(quoted(first), quoted(second)), `traits = ["CUSTOM_A"]`)),
		inPlace(host(s, 1)+allocation(s, candidates(quoted(s.Name("first")), "metal_host.h1.id"), `traits = ["CUSTOM_A"]`)),
		inPlace(host(s, 1)+allocation(s, candidates(quoted(s.Name("first")), "metal_host.h1.id"))),
		resource.TestStep{
			Config:            s.Provider() + host(s, 1) + allocation(s, candidates(quoted(second))),
			ConfigPlanChecks:  allocationPlan(plancheck.ResourceActionDestroyBeforeCreate),
			ConfigStateChecks: []statecheck.StateCheck{allocationIs("node_id", knownvalue.StringExact(second))},
		},
		resource.TestStep{
			Config:      s.Provider() + host(s, 1) + allocation(s, candidates(quoted(second)), `traits = ["CUSTOM_A"]`),
			ExpectError: regexp.MustCompile(wrapped(`0 of 1 candidate: 1 without CUSTOM_A`)),
		},
	)
}

func TestAccAllocation_backfillsAnActiveNode(t *testing.T) {
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	s.Verb(node, "active", "active")
	backfill := `resource "metal_allocation" "a" { node = ` + quoted(s.Name("n1")) + ` }` + "\n"
	test(t,
		resource.TestStep{
			Config: s.Provider() + backfill,
			ConfigStateChecks: []statecheck.StateCheck{
				allocationIs("node_id", knownvalue.StringExact(node)), allocationIs("node_name", knownvalue.StringExact(s.Name("n1"))),
				allocationIs("state", knownvalue.StringExact("active")),
			},
		},
		resource.TestStep{PreConfig: func() { s.Verb(node, "deleted", "available") }, Config: s.Provider() + backfill, PlanOnly: true, ExpectNonEmptyPlan: true},
		resource.TestStep{
			Config:      s.Provider() + backfill,
			ExpectError: regexp.MustCompile(wrapped(`Node must be in the "active" state, but the current state is "available"`)),
		},
	)
	status, answer := s.Call(http.MethodGet, "allocations?resource_class="+s.Class(), nil)
	if left, _ := answer["allocations"].([]any); status != http.StatusOK || len(left) > 0 {
		t.Errorf("left in Ironic: %v", answer)
	}
}

func TestAccAllocation_needsToKnowWhichNode(t *testing.T) {
	s := acctest.Start(t, nil)
	test(t,
		resource.TestStep{
			Config: s.Provider() + `resource "metal_allocation" "a" { name = "web" }`, PlanOnly: true,
			ExpectError: regexp.MustCompile(wrapped(`Set resource_class, so that Ironic can choose a node, or node`)),
		},
		resource.TestStep{
			Config: s.Provider() + allocation(s, `candidate_nodes = ["nobody-`+s.Class()+`"]`),
			ExpectError: regexp.MustCompile(wrapped(`Nodes cannot be found: nobody-`+s.Class()) + `[\s\S]*` +
				wrapped(`each must be the name or UUID of an existing node`)),
		},
		resource.TestStep{
			Config: s.Provider(`microversion = "1.51"`) + allocation(s), PlanOnly: true,
			ExpectError: regexp.MustCompile(wrapped(`needs API 1.52 of Ironic, but 1.51 is in use`)),
		},
	)
}

// stalledAllocations are those of an Ironic that takes its time: they are allocating until over.
type stalledAllocations struct {
	asked chan struct{} // that somebody has asked
	over  atomic.Bool
}

// answer answers for an allocation in the place of the fake.
func (a *stalledAllocations) answer(r *http.Request) *fakeironic.Rejection {
	id, one := strings.CutPrefix(r.URL.Path, "/v1/allocations/")
	if !one || r.Method != http.MethodGet || a.over.Load() {
		return nil
	}
	a.asked <- struct{}{}
	return &fakeironic.Rejection{Status: http.StatusOK, Body: fmt.Sprintf(`{"uuid": %q, "state": "allocating"}`, id)}
}

// interrupt interrupts an apply that waits for its allocation, which is in state then, and ends the stall.
func (a *stalledAllocations) interrupt(t *testing.T, w *acctest.Workspace) *object {
	t.Helper()
	running := w.Start("apply", "-auto-approve")
	<-a.asked
	mention(t, interrupt(t, running), "Interrupted: allocate a node")
	made := inState(t, w, allocationAddress)
	if made == nil || made.Tainted || made.Values["state"] != "allocating" {
		t.Fatalf("in state is %+v", made)
	}
	a.over.Store(true)
	return made
}

func TestFakeAllocation_interruptedWhileAllocatingIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	stalled := &stalledAllocations{asked: make(chan struct{}, 1000)}
	s := acctest.StartFake(t, &fakeironic.Server{Reject: stalled.answer})
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+allocation(s)+allocated(image("v1")))
	made := stalled.interrupt(t, w)
	w.Must("apply", "-auto-approve")
	now := inState(t, w, allocationAddress)
	if now.Values["id"] != made.Values["id"] || now.Values["node_id"] != node || now.Values["state"] != "active" {
		t.Errorf("in state is %+v", now)
	}
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// Nobody has seen how the allocation of an interrupted apply failed. Ironic keeps it, and never tries it again.
func TestFakeAllocation_interruptedAndFailedThenIsMadeAnew(t *testing.T) {
	t.Parallel()
	stalled := &stalledAllocations{asked: make(chan struct{}, 1000)}
	s := acctest.StartFake(t, &fakeironic.Server{Reject: stalled.answer})
	w := acctest.NewWorkspace(t, s.Provider()+allocation(s, `name = `+quoted(s.Name("web"))))
	made := stalled.interrupt(t, w)
	output, _ := w.Plan()
	mention(t, output, "Failed allocation is made anew", "Ironic said: Failed to process allocation", "1 to add, 0 to change, 1 to destroy")
	node := addNode(t, s, "n1", nil)
	w.Must("apply", "-auto-approve")
	now := inState(t, w, allocationAddress)
	if now.Values["id"] == made.Values["id"] || now.Values["node_id"] != node || now.Values["state"] != "active" {
		t.Errorf("in state is %+v", now)
	}
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
	if left := s.Left(); len(left) != 1 { // the node
		t.Errorf("left in Ironic: %v", left)
	}
}

// An allocation that Ironic has deleted with an instance is remembered by its node, and made again. While the node does not
// answer, nobody knows that it is gone for good.
func TestFakeAllocation_staysInStateWhileItsNodeDoesNotAnswer(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	var node string
	s := acctest.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		if broken.Load() && r.Method == http.MethodGet && r.URL.Path == "/v1/nodes/"+node {
			return &fakeironic.Rejection{Status: http.StatusInternalServerError}
		}
		return nil
	}})
	node = addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+allocation(s))
	w.Must("apply", "-auto-approve")
	id := inState(t, w, allocationAddress).Values["id"]
	s.Patch(node, "add", "/extra/terraform_metal_allocation", map[string]any{"uuid": id, "resource_class": s.Class()})
	s.Must(http.MethodDelete, "allocations/"+text(id), nil)

	broken.Store(true)
	fails(t, w, []string{"apply", "-refresh-only", "-auto-approve"}, "Could not tell whether allocation "+text(id)+" is gone for good")
	if a := inState(t, w, allocationAddress); a == nil || a.Values["id"] != id {
		t.Errorf("in state is %+v", a)
	}
	broken.Store(false)
	noChanges(t, w)
	s.Patch(node, "remove", "/extra/terraform_metal_allocation", nil)
	if output, _ := w.Plan(); !strings.Contains(output, "1 to add") {
		t.Errorf("the allocation is gone, and not to be made again:\n%s", output)
	}
}
