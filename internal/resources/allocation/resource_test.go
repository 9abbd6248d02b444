package allocation_test

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

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// allocationIs checks an attribute of the allocation in state.
func allocationIs(attribute string, value knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(acctest.AllocationAddress, tfjsonpath.New(attribute), value)
}

// allocationPlan checks the planned action for the allocation.
func allocationPlan(action plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(acctest.AllocationAddress, action)}}
}

func TestAccAllocation_lifecycle(t *testing.T) {
	s := site.Start(t, nil)
	stays := statecheck.CompareValue(compare.ValuesSame())
	same := func() statecheck.StateCheck {
		return stays.AddStateValue(acctest.AllocationAddress, tfjsonpath.New("id"))
	}
	before := s.Provider() + acctest.Host(s, 1, `traits = ["CUSTOM_NVME"]`) +
		acctest.Allocation(s, `depends_on = [metal_host.h1]`, `name = `+acctest.Quoted(s.Name("web")), `traits = ["CUSTOM_NVME"]`,
			`extra = { team = "web", slots = 2, old = true }`)
	after := s.Provider() + acctest.Host(s, 1, `traits = ["CUSTOM_NVME"]`) +
		acctest.Allocation(s, `depends_on = [metal_host.h1]`, `name = `+acctest.Quoted(s.Name("shop")), `traits = ["CUSTOM_NVME"]`,
			`extra = { team = "shop", slots = 2, tags = ["a"] }`)
	imported := []string{"candidate_nodes", "timeouts"}
	acctest.Test(t,
		resource.TestStep{
			Config: before,
			ConfigStateChecks: []statecheck.StateCheck{
				same(),
				statecheck.CompareValuePairs(acctest.AllocationAddress, tfjsonpath.New("node_id"), "metal_host.h1", tfjsonpath.New("id"),
					compare.ValuesSame()),
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
				got := fmt.Sprint(site.AllocationNamed(s, s.Name("shop"))["extra"])
				if want := "map[slots:2 tags:[a] team:shop]"; got != want {
					return fmt.Errorf("extra in Ironic is %s, want %s", got, want)
				}
				return nil
			},
		},
		resource.TestStep{
			ResourceName: acctest.AllocationAddress, ImportState: true, ImportStateVerify: true,
			ImportStateVerifyIgnore: imported,
		},
		resource.TestStep{
			ResourceName: acctest.AllocationAddress, ImportState: true, ImportStateId: s.Name("gone"),
			ExpectError: regexp.MustCompile(acctest.Wrapped("Could not import allocation "+s.Name("gone")) + `[\s\S]*` +
				acctest.Wrapped("If it is gone, remove its import block.")),
		},
		resource.TestStep{
			ResourceName: acctest.AllocationAddress, ImportState: true, ImportStateId: s.Name("shop"),
			ImportStateVerify: true, ImportStateVerifyIgnore: imported,
		},
		resource.TestStep{
			ResourceName: acctest.AllocationAddress, ImportState: true, ImportStateKind: resource.ImportBlockWithID,
			ImportStateId:    s.Name("shop"),
			ImportPlanChecks: resource.ImportPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
		},
	)
	if left := s.Left(); len(left) > 0 {
		t.Errorf("left in Ironic: %v", left)
	}
}

func TestAccAllocation_choosesByTraitsCandidatesAndOwner(t *testing.T) {
	s := site.Start(t, nil)
	plain := site.AddNode(t, s, "plain", nil)
	fast := site.AddNode(t, s, "fast", nil)
	rented := site.AddNode(t, s, "rented", nil)
	listed := site.AddNode(t, s, "listed", nil)
	site.AddTrait(s, fast, "CUSTOM_NVME")
	site.AddTrait(s, fast, "CUSTOM_GPU")
	site.AddTrait(s, listed, "CUSTOM_SSD")
	s.Patch(rented, "add", "/owner", "project-x")
	one := func(name string, settings ...string) string {
		return fmt.Sprintf("resource \"metal_allocation\" %q {\n  resource_class = %q\n  %s\n}\n", name, s.Class(),
			strings.Join(settings, "\n  "))
	}
	got := func(name, node string) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("metal_allocation."+name, tfjsonpath.New("node_id"), knownvalue.StringExact(node))
	}
	acctest.Test(t, resource.TestStep{
		Config: s.Provider() +
			one("traits", `traits = ["CUSTOM_GPU", "CUSTOM_NVME"]`) +
			one("name", `candidate_nodes = [`+acctest.Quoted(s.Name("plain"))+`]`) +
			one("uuid", `candidate_nodes = [`+acctest.Quoted(plain)+`, `+acctest.Quoted(listed)+`]`, `traits = ["CUSTOM_SSD"]`) +
			one("owner", `owner = "project-x"`),
		ConfigStateChecks: []statecheck.StateCheck{got("traits", fast), got("name", plain), got("uuid", listed), got("owner", rented)},
	})
}

func TestAccAllocation_noMatchIsExplained(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	site.AddNode(t, s, "plain", nil)
	broken := site.AddNode(t, s, "broken", nil)
	s.Must(http.MethodPut, "nodes/"+broken+"/maintenance", map[string]any{})
	asleep := site.AddNode(t, s, "asleep", nil)
	s.Verb(asleep, "manage", "manageable")
	t.Cleanup(func() { s.Verb(asleep, "provide", "available") })
	trait := s.Trait("NVME") // of no other test: the message says that no node has it
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web")), `traits = [`+
		acctest.Quoted(trait)+`]`))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the apply worked:\n%s", output)
	}
	acctest.Mention(t, output, "Could not allocate a node for "+s.Name("web"), "No node matches: 0 of ", "1 not available (1 manageable)",
		"1 in maintenance", "1 without "+trait,
		"Ironic's last_error: Failed to process allocation",
		"No node has the trait "+trait+".", "Correct the demand, or give a node what it lacks")
	if left := site.AllocationNamed(s, s.Name("web")); left != nil {
		t.Errorf("the failed allocation is still there: %v", left)
	}
	if acctest.InState(t, w, acctest.AllocationAddress) != nil {
		t.Errorf("an allocation that failed is in state:\n%s", w.State())
	}
	site.AddTrait(s, s.Name("plain"), trait)
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
}

func TestAccAllocation_unknownPowerState(t *testing.T) {
	s := site.Start(t, nil)
	id := site.Text(s.Must(http.MethodPost, "nodes", map[string]any{
		"driver": "fake-hardware", "name": s.Name("dark"),
		"resource_class": s.Class(),
	})["uuid"])
	t.Cleanup(func() { site.RemoveNode(t, s, id) })
	s.Verb(id, "manage", "manageable")
	s.Verb(id, "provide", "available")
	acctest.Test(t, resource.TestStep{
		Config: s.Provider() + acctest.Allocation(s),
		ExpectError: regexp.MustCompile(acctest.Wrapped(`1 with unknown power state`) + `[\s\S]*` +
			acctest.Wrapped(`set power_state on their metal_host`)),
	})
}

func TestAccAllocation_nameTaken(t *testing.T) {
	s := site.Start(t, nil)
	site.AddNode(t, s, "n1", nil)
	taken := site.Text(s.Must(http.MethodPost, "allocations", map[string]any{"name": s.Name("web"), "resource_class": s.Class()})["uuid"])
	t.Cleanup(func() { s.Must(http.MethodDelete, "allocations/"+taken, nil) })
	acctest.Test(t, resource.TestStep{
		Config: s.Provider() + acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web"))),
		ExpectError: regexp.MustCompile(acctest.Wrapped(`Import the existing allocation, or choose another name`) + `[\s\S]*` +
			acctest.Wrapped(`An allocation with name `+s.Name("web")+` already exists`)),
	})
}

func TestAccAllocation_releasedOutsideIsRecreated(t *testing.T) {
	s := site.Start(t, nil)
	site.AddNode(t, s, "n1", nil)
	config := s.Provider() + acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web")))
	differs := statecheck.CompareValue(compare.ValuesDiffer())
	acctest.Test(t,
		resource.TestStep{Config: config, ConfigStateChecks: []statecheck.StateCheck{differs.AddStateValue(acctest.AllocationAddress,
			tfjsonpath.New("id"))}},
		resource.TestStep{
			PreConfig:         func() { s.Must(http.MethodDelete, "allocations/"+s.Name("web"), nil) },
			Config:            config,
			ConfigPlanChecks:  allocationPlan(plancheck.ResourceActionCreate),
			ConfigStateChecks: []statecheck.StateCheck{differs.AddStateValue(acctest.AllocationAddress, tfjsonpath.New("id"))},
		},
	)
}

func TestAccAllocation_changedOutsideIsShown(t *testing.T) {
	s := site.Start(t, nil)
	site.AddNode(t, s, "n1", nil)
	config := s.Provider() + acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web")), `extra = { team = "web" }`)
	edit := func(path string, value any) {
		s.Must(http.MethodPatch, "allocations/"+s.Name("web"), []any{map[string]any{"op": "add", "path": path, "value": value}})
	}
	acctest.Test(t,
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() { edit("/extra/note", "of another client") },
			Config:    config, PlanOnly: true,
		},
		resource.TestStep{
			PreConfig: func() { edit("/extra/team", "shop"); edit("/name", s.Name("shop")) },
			Config:    config, ConfigPlanChecks: allocationPlan(plancheck.ResourceActionUpdate),
			Check: func(*terraform.State) error {
				if got, want := fmt.Sprint(site.AllocationNamed(s, s.Name("web"))["extra"]),
					"map[note:of another client team:web]"; got != want {
					return fmt.Errorf("extra in Ironic is %s, want %s", got, want)
				}
				return nil
			},
		},
	)
}

func TestAccAllocation_notReleasedWhileDeployed(t *testing.T) {
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := s.Provider() + acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web")))
	acctest.Test(t,
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() { s.Verb(node, "active", "active") },
			Config:    config, Destroy: true,
			ExpectError: regexp.MustCompile(acctest.Wrapped(`Could not release node `+s.Name("n1")) + `[\s\S]*` +
				acctest.Wrapped(`is in state "active": something is deployed on it`) + `[\s\S]*` +
				acctest.Wrapped(`Destroy its metal_deployment first, or undeploy it with`)),
		},
		resource.TestStep{Config: config, PlanOnly: true},
		resource.TestStep{PreConfig: func() { s.Verb(node, "deleted", "available") }, Config: s.Provider(), ExpectNonEmptyPlan: false},
	)
}

func TestAccAllocation_fulfilledDemandsChangeInPlace(t *testing.T) {
	s := site.Start(t, nil)
	first := site.AddNode(t, s, "first", nil)
	second := site.AddNode(t, s, "second", nil)
	site.AddTrait(s, first, "CUSTOM_A")
	site.AddTrait(s, first, "CUSTOM_B")
	site.AddTrait(s, second, "CUSTOM_C")
	stays := statecheck.CompareValue(compare.ValuesSame())
	same := func() statecheck.StateCheck {
		return stays.AddStateValue(acctest.AllocationAddress, tfjsonpath.New("id"))
	}
	inPlace := func(config string) resource.TestStep {
		return resource.TestStep{
			Config: s.Provider() + config, ConfigPlanChecks: allocationPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{same(), allocationIs("node_id", knownvalue.StringExact(first))},
		}
	}
	candidates := func(nodes ...string) string { return "candidate_nodes = [" + strings.Join(nodes, ", ") + "]" }
	acctest.Test(t,
		resource.TestStep{
			Config:            s.Provider() + acctest.Allocation(s, candidates(acctest.Quoted(first)), `traits = ["CUSTOM_A", "CUSTOM_B"]`),
			ConfigStateChecks: []statecheck.StateCheck{same()},
		},
		inPlace(acctest.Allocation(s, candidates(acctest.Quoted(first)), `traits = ["CUSTOM_A"]`)),
		inPlace(acctest.Allocation(s, candidates(acctest.Quoted(first)))),
		resource.TestStep{
			Config:            s.Provider() + acctest.Allocation(s, candidates(acctest.Quoted(second)), `traits = ["CUSTOM_C"]`),
			ConfigPlanChecks:  allocationPlan(plancheck.ResourceActionDestroyBeforeCreate),
			ConfigStateChecks: []statecheck.StateCheck{allocationIs("node_id", knownvalue.StringExact(second))},
		},
		resource.TestStep{
			Config:      s.Provider() + acctest.Allocation(s, candidates(acctest.Quoted(second)), `traits = ["CUSTOM_A"]`),
			ExpectError: regexp.MustCompile(acctest.Wrapped(`0 of 1 candidate: 1 without CUSTOM_A`)),
		},
	)
}

func TestAccAllocation_backfill(t *testing.T) {
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	s.Verb(node, "active", "active")
	backfill := `resource "metal_allocation" "a" { backfill_node = ` + acctest.Quoted(s.Name("n1")) + ` }` + "\n"
	acctest.Test(t,
		resource.TestStep{
			Config: s.Provider() + backfill,
			ConfigStateChecks: []statecheck.StateCheck{
				allocationIs("node_id", knownvalue.StringExact(node)), allocationIs("node_name", knownvalue.StringExact(s.Name("n1"))),
				allocationIs("state", knownvalue.StringExact("active")),
			},
		},
		resource.TestStep{PreConfig: func() {
			s.Verb(node, "deleted", "available")
		}, Config: s.Provider() + backfill, PlanOnly: true, ExpectNonEmptyPlan: true},
		resource.TestStep{
			Config:      s.Provider() + backfill,
			ExpectError: regexp.MustCompile(acctest.Wrapped(`Node must be in the "active" state, but the current state is "available"`)),
		},
	)
	status, answer := s.Call(http.MethodGet, "allocations?resource_class="+s.Class(), nil)
	if left, _ := answer["allocations"].([]any); status != http.StatusOK || len(left) > 0 {
		t.Errorf("left in Ironic: %v", answer)
	}
}

func TestAccAllocation_needsClassOrNode(t *testing.T) {
	s := site.Start(t, nil)
	acctest.Test(t,
		resource.TestStep{
			Config: s.Provider() + `resource "metal_allocation" "a" { name = "web" }`, PlanOnly: true,
			ExpectError: regexp.MustCompile(acctest.Wrapped(`Set resource_class to let Ironic choose a node, or backfill_node`)),
		},
		resource.TestStep{
			Config: s.Provider() + acctest.Allocation(s, `candidate_nodes = ["unknown-`+s.Class()+`"]`),
			ExpectError: regexp.MustCompile(acctest.Wrapped(`each must be the name or UUID of an existing node`) + `[\s\S]*` +
				acctest.Wrapped(`Nodes cannot be found: unknown-`+s.Class())),
		},
		resource.TestStep{
			Config: s.Provider(`microversion = "1.51"`) + acctest.Allocation(s), PlanOnly: true,
			ExpectError: regexp.MustCompile(acctest.Wrapped(`needs API 1.52 of Ironic, but 1.51 is in use`)),
		},
	)
}

// stalledAllocations answers for the allocations of a slow Ironic: they stay in state allocating until over is closed.
type stalledAllocations struct {
	asked chan struct{} // gets a value when the provider has read an allocation
	over  atomic.Bool
}

// answer answers a request for an allocation instead of the fake.
func (a *stalledAllocations) answer(r *http.Request) *fakeironic.Rejection {
	id, one := strings.CutPrefix(r.URL.Path, "/v1/allocations/")
	if !one || r.Method != http.MethodGet || a.over.Load() {
		return nil
	}
	a.asked <- struct{}{}
	return &fakeironic.Rejection{Status: http.StatusOK, Body: fmt.Sprintf(`{"uuid": %q, "state": "allocating"}`, id)}
}

// interrupt interrupts an apply that waits for its allocation, checks that the allocation is in state, and ends the stall.
func (a *stalledAllocations) interrupt(t *testing.T, w *acctest.Workspace) *acctest.Object {
	t.Helper()
	running := w.Start("apply", "-auto-approve")
	<-a.asked
	acctest.Mention(t, acctest.Interrupt(t, running), "Interrupted: allocate a node")
	made := acctest.InState(t, w, acctest.AllocationAddress)
	if made == nil || made.Tainted || made.Values["state"] != "allocating" {
		t.Fatalf("in state is %+v", made)
	}
	a.over.Store(true)
	return made
}

func TestFakeAllocation_interruptedIsContinued(t *testing.T) {
	t.Parallel()
	stalled := &stalledAllocations{asked: make(chan struct{}, 1000)}
	s := site.StartFake(t, &fakeironic.Server{Reject: stalled.answer})
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s)+acctest.Allocated(acctest.Image("v1")))
	made := stalled.interrupt(t, w)
	w.Must("apply", "-auto-approve")
	now := acctest.InState(t, w, acctest.AllocationAddress)
	if now.Values["id"] != made.Values["id"] || now.Values["node_id"] != node || now.Values["state"] != "active" {
		t.Errorf("in state is %+v", now)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// The allocation of an interrupted apply fails after the interruption. Ironic keeps it, and never tries it again.
func TestFakeAllocation_interruptedAndFailedIsRecreated(t *testing.T) {
	t.Parallel()
	stalled := &stalledAllocations{asked: make(chan struct{}, 1000)}
	s := site.StartFake(t, &fakeironic.Server{Reject: stalled.answer})
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web"))))
	made := stalled.interrupt(t, w)
	output, _ := w.Plan()
	acctest.Mention(t, output, "Failed allocation is replaced", "Ironic's last_error: Failed to process allocation",
		"1 to add, 0 to change, 1 to destroy")
	node := site.AddNode(t, s, "n1", nil)
	w.Must("apply", "-auto-approve")
	now := acctest.InState(t, w, acctest.AllocationAddress)
	if now.Values["id"] == made.Values["id"] || now.Values["node_id"] != node || now.Values["state"] != "active" {
		t.Errorf("in state is %+v", now)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
	if left := s.Left(); len(left) != 1 { // the node
		t.Errorf("left in Ironic: %v", left)
	}
}

// When Ironic deletes an allocation with its instance, the node keeps a note of it, and the provider creates it again. While the
// node cannot be read, the provider does not know whether the allocation is gone for good.
func TestFakeAllocation_staysInStateWhileNodeIsUnreadable(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	var node string
	s := site.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		if broken.Load() && r.Method == http.MethodGet && r.URL.Path == "/v1/nodes/"+node {
			return &fakeironic.Rejection{Status: http.StatusInternalServerError}
		}
		return nil
	}})
	node = site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s))
	w.Must("apply", "-auto-approve")
	id := acctest.InState(t, w, acctest.AllocationAddress).Values["id"]
	s.Patch(node, "add", "/extra/terraform_metal_allocation", map[string]any{"uuid": id, "resource_class": s.Class()})
	s.Must(http.MethodDelete, "allocations/"+site.Text(id), nil)

	broken.Store(true)
	acctest.Fails(t, w, []string{"apply", "-refresh-only", "-auto-approve"}, "Could not find out whether allocation "+site.Text(id)+
		" is gone for good")
	if a := acctest.InState(t, w, acctest.AllocationAddress); a == nil || a.Values["id"] != id {
		t.Errorf("in state is %+v", a)
	}
	broken.Store(false)
	acctest.NoChanges(t, w)
	s.Patch(node, "remove", "/extra/terraform_metal_allocation", nil)
	if output, _ := w.Plan(); !strings.Contains(output, "1 to add") {
		t.Errorf("the allocation is gone, and not to be made again:\n%s", output)
	}
}

// In maintenance, Ironic deletes the allocation of a deployed node: the machine would run on for other users to take.
func TestAccAllocation_deployedNodeInMaintenanceIsNotReleased(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web"))))
	w.Must("apply", "-auto-approve")
	s.Verb(node, "active", "active")
	s.Must(http.MethodPut, "nodes/"+node+"/maintenance", map[string]any{"reason": "fan"})
	acctest.Fails(t, w, []string{"destroy", "-auto-approve"}, "Could not release node", s.Name("n1"), "something is deployed on it",
		"Destroy its metal_deployment first")
	if site.AllocationNamed(s, s.Name("web")) == nil {
		t.Error("the allocation of a running machine was deleted")
	}
	s.Must(http.MethodDelete, "nodes/"+node+"/maintenance", nil)
	s.Verb(node, "deleted", "available")
	w.Must("destroy", "-auto-approve")
}
