package acctest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
)

// Test is resource.ParallelTest with the provider in this process, and without a CLI, as in a Workspace. It has the fields of steps that
// the tests use.
func Test(t *testing.T, steps ...resource.TestStep) {
	t.Helper()
	if os.Getenv(cliVariable) == "all" {
		resource.ParallelTest(t, resource.TestCase{ProtoV6ProviderFactories: Factories(), Steps: steps})
		return
	}
	w := OpenWorkspace(t, t.TempDir())
	t.Parallel()
	r := &stepRunner{t: t, w: w}
	defer func() {
		if !w.hasResources() {
			return // and the configuration may be wrong
		}
		if output, code := w.Run("destroy", "-auto-approve", "-refresh=false"); code != 0 {
			t.Errorf("destroy after the steps: %s", output)
		}
	}()
	for n, step := range steps {
		if step.PreConfig != nil {
			step.PreConfig()
		}
		err := r.run(step)
		switch {
		case step.ExpectError != nil && (err == nil || !step.ExpectError.MatchString(reason(err))):
			t.Fatalf("step %d: the error is %v, want one that matches %v", n+1, err, step.ExpectError)
		case step.ExpectError == nil && err != nil:
			t.Fatalf("step %d: %v", n+1, err)
		}
	}
}

// stepRunner runs steps in a workspace.
type stepRunner struct {
	t      *testing.T
	w      *Workspace
	config string // of the last step that had one
}

// hasResources reports whether there is something in state.
func (w *Workspace) hasResources() bool {
	var state struct{ Resources []any }
	content, err := os.ReadFile(filepath.Join(w.Dir, "terraform.tfstate"))
	return err == nil && json.Unmarshal(content, &state) == nil && len(state.Resources) > 0
}

// failure is an error that shows an output, and the part of it that ExpectError may match.
type failure struct{ output, reason string }

func (f failure) Error() string { return f.output }

// reason is what ExpectError matches.
func reason(err error) string {
	if f := (failure{}); errors.As(err, &f) {
		return f.reason
	}
	return err.Error()
}

// command runs a command, whose output is the error if it fails.
func (r *stepRunner) command(w *Workspace, args ...string) (output string, err error) {
	r.t.Helper()
	output, code := w.Run(args...)
	if code != 0 {
		return output, failure{output, errorsIn(output)}
	}
	return output, nil
}

func (r *stepRunner) run(step resource.TestStep) error {
	r.t.Helper()
	known := resource.TestStep{
		PreConfig: step.PreConfig, Config: step.Config, Check: step.Check, ConfigStateChecks: step.ConfigStateChecks,
		ConfigPlanChecks: step.ConfigPlanChecks,
		ExpectError:      step.ExpectError, ImportState: step.ImportState, ImportStateId: step.ImportStateId,
		ImportStateKind: step.ImportStateKind, ImportStateVerify: step.ImportStateVerify,
		ImportStateVerifyIgnore: step.ImportStateVerifyIgnore, ImportPlanChecks: step.ImportPlanChecks, ResourceName: step.ResourceName,
		Destroy: step.Destroy, PlanOnly: step.PlanOnly,
		RefreshState: step.RefreshState, ExpectNonEmptyPlan: step.ExpectNonEmptyPlan,
	}
	if fmt.Sprintf("%+v", known) != fmt.Sprintf("%+v", step) {
		r.t.Fatal("a field of this step needs resource.ParallelTest")
	}
	if step.Config != "" {
		r.config = step.Config
	}
	switch {
	case step.ImportState:
		return r.importStep(step)
	case step.RefreshState:
		if _, err := r.command(r.w, "apply", "-refresh-only", "-auto-approve"); err != nil {
			return err
		}
		return r.wantEmpty(step, nil)
	}
	r.w.Configure(r.config)
	if !step.PlanOnly {
		if err := r.apply(step); err != nil {
			return err
		}
	}
	if err := r.wantEmpty(step, step.ConfigPlanChecks.PostApplyPreRefresh, "-refresh=false"); err != nil {
		return err
	}
	return r.wantEmpty(step, step.ConfigPlanChecks.PostApplyPostRefresh)
}

// apply plans and applies a step, and makes its checks.
func (r *stepRunner) apply(step resource.TestStep) error {
	args := []string{"-out=saved"}
	if step.Destroy {
		args = append(args, "-destroy")
	}
	if _, err := r.plan(r.w, step.ConfigPlanChecks.PreApply, args...); err != nil {
		return err
	}
	if _, err := r.command(r.w, "apply", "saved"); err != nil {
		return err
	}
	state, err := r.state(r.w)
	if err != nil {
		return err
	}
	if step.Check != nil {
		if err := step.Check(legacy(state)); err != nil {
			return err
		}
	}
	var all []error
	for _, check := range step.ConfigStateChecks {
		resp := statecheck.CheckStateResponse{}
		check.CheckState(r.t.Context(), statecheck.CheckStateRequest{State: state}, &resp)
		all = append(all, resp.Error)
	}
	return errors.Join(all...)
}

// plan saves a plan and makes checks of it.
func (r *stepRunner) plan(w *Workspace, checks []plancheck.PlanCheck, args ...string) (*tfjson.Plan, error) {
	if _, err := r.command(w, append([]string{"plan", "-out=saved"}, args...)...); err != nil {
		return nil, err
	}
	text, err := r.command(w, "show", "-json", "saved")
	if err != nil {
		return nil, err
	}
	plan := &tfjson.Plan{}
	if err := json.Unmarshal([]byte(text), plan); err != nil {
		return nil, err
	}
	var all []error
	for _, check := range checks {
		resp := plancheck.CheckPlanResponse{}
		check.CheckPlan(r.t.Context(), plancheck.CheckPlanRequest{Plan: plan}, &resp)
		all = append(all, resp.Error)
	}
	return plan, errors.Join(all...)
}

// wantEmpty returns an error for a plan that is not empty, unless the step expects that.
func (r *stepRunner) wantEmpty(step resource.TestStep, checks []plancheck.PlanCheck, args ...string) error {
	if step.Destroy {
		args = append(args, "-destroy")
	}
	plan, err := r.plan(r.w, checks, args...)
	if err != nil || step.ExpectNonEmptyPlan {
		return err
	}
	changes := slices.ContainsFunc(plan.ResourceChanges, func(c *tfjson.ResourceChange) bool { return !c.Change.Actions.NoOp() })
	for _, output := range plan.OutputChanges {
		changes = changes || !output.Actions.NoOp()
	}
	if changes {
		output, _ := r.w.Run(append([]string{"plan"}, args...)...)
		why := fmt.Sprintf("the plan %v is not empty", args)
		return failure{why + ":\n" + output, why}
	}
	return nil
}

// state returns the state of a workspace.
func (r *stepRunner) state(w *Workspace) (*tfjson.State, error) {
	text, err := r.command(w, "show", "-json")
	if err != nil {
		return nil, err
	}
	state := &tfjson.State{}
	state.UseJSONNumber(true)
	return state, json.Unmarshal([]byte(text), state)
}

// legacy returns the IDs of a state in the form that a TestCheckFunc reads.
func legacy(state *tfjson.State) *terraform.State {
	made := terraform.NewState() //nolint:staticcheck // a TestCheckFunc takes no other
	for _, of := range state.Values.RootModule.Resources {
		id, _ := of.AttributeValues["id"].(string)
		made.RootModule().Resources[of.Address] = &terraform.ResourceState{Type: of.Type, Primary: &terraform.InstanceState{ID: id}}
	}
	return made
}

// importStep imports a resource of the workspace in another one, and compares them.
func (r *stepRunner) importStep(step resource.TestStep) error {
	state, err := r.state(r.w)
	if err != nil {
		return err
	}
	before := inState(state, step.ResourceName)
	id := step.ImportStateId
	if id == "" {
		if before == nil {
			r.t.Fatalf("%s is not in state", step.ResourceName)
		}
		id, _ = before.AttributeValues["id"].(string)
	}
	other := OpenWorkspace(r.t, r.t.TempDir())
	switch step.ImportStateKind { //nolint:exhaustive // an import by identity follows
	case resource.ImportCommandWithID:
		other.Configure(r.config)
		if _, err := r.command(other, "import", step.ResourceName, id); err != nil || !step.ImportStateVerify {
			return err
		}
		imported, err := r.state(other)
		if err != nil {
			return err
		}
		return sameResource(before, inState(imported, step.ResourceName), step.ImportStateVerifyIgnore)
	case resource.ImportBlockWithID:
		return r.importBlock(other, before != nil, id, step)
	}
	r.t.Fatal("an import by identity needs resource.ParallelTest")
	return nil
}

// importBlock plans an import block for a resource, beside the other resources of the workspace.
func (r *stepRunner) importBlock(other *Workspace, isThere bool, id string, step resource.TestStep) error {
	if content, err := os.ReadFile(filepath.Join(r.w.Dir, "terraform.tfstate")); err == nil {
		other.SetState(string(content))
	}
	if isThere {
		other.Must("state", "rm", step.ResourceName)
	}
	other.Configure(r.config + fmt.Sprintf("\nimport {\n  to = %s\n  id = %q\n}\n", step.ResourceName, id))
	plan, err := r.plan(other, step.ImportPlanChecks.PreApply)
	if err != nil {
		return err
	}
	for _, c := range plan.ResourceChanges {
		if c.Address == step.ResourceName && c.Change.Importing != nil && (step.ExpectNonEmptyPlan || c.Change.Actions.NoOp()) {
			return nil
		}
	}
	return fmt.Errorf("importing resource %s: expected a no-op import operation", step.ResourceName)
}

// inState returns a resource; nil if there is none.
func inState(state *tfjson.State, address string) *tfjson.StateResource {
	for _, of := range state.Values.RootModule.Resources {
		if of.Address == address {
			return of
		}
	}
	return nil
}

// sameResource compares an imported resource with what it was, except the attributes that begin with an ignored path.
func sameResource(before, after *tfjson.StateResource, ignore []string) error {
	if before == nil || after == nil {
		return errors.New("failed state verification, resource not found")
	}
	was, is := map[string]any{}, map[string]any{}
	flatten(was, "", before.AttributeValues)
	flatten(is, "", after.AttributeValues)
	var wrong []string
	names := maps.Clone(was)
	maps.Copy(names, is)
	for name := range names {
		ignored := slices.ContainsFunc(append([]string{"timeouts"}, ignore...), func(begin string) bool {
			return strings.HasPrefix(name, begin)
		})
		if !ignored && !reflect.DeepEqual(was[name], is[name]) {
			wrong = append(wrong, fmt.Sprintf("%s was %v and is %v", name, was[name], is[name]))
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return fmt.Errorf("ImportStateVerify attributes not equivalent: %s", strings.Join(wrong, "; "))
	}
	return nil
}

// flatten lists the simple values of an object by their paths.
func flatten(to map[string]any, path string, value any) {
	switch value := value.(type) {
	case nil:
	case map[string]any:
		for key, element := range value {
			flatten(to, strings.TrimPrefix(path+"."+key, "."), element)
		}
	case []any:
		for i, element := range value {
			flatten(to, fmt.Sprintf("%s.%d", path, i), element)
		}
	default:
		to[path] = value
	}
}

// EmptyImport checks that an import plans no change.
func EmptyImport() resource.ImportPlanChecks {
	return resource.ImportPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
}

// Factories returns the provider for the plugin testing framework.
func Factories() map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){
		"metal": func() (tfprotov6.ProviderServer, error) { return provider.NewServer("test"), nil },
	}
}
