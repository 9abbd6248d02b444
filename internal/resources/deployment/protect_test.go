package deployment_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// wantProtected fails a test unless Ironic says that the node is protected, or not.
func wantProtected(t *testing.T, s *site.Site, node string, want bool) {
	t.Helper()
	if got := s.Node(node)["protected"]; got != want {
		t.Errorf("the node is protected: %v, want %v", got, want)
	}
}

// wantPlanRefused fails a test unless planning fails because the machine is protected.
func wantPlanRefused(t *testing.T, w *acctest.Workspace, args []string, texts ...string) {
	t.Helper()
	acctest.Fails(t, w, append([]string{"plan"}, args...), append(texts, "Machine is protected", "is protected in Ironic")...)
}

// protectedSite starts a site with a deployed machine that its configuration protects.
func protectedSite(
	t *testing.T, settings ...string,
) (s *site.Site, node string, w *acctest.Workspace, config func(settings ...string) string) {
	t.Helper()
	s = site.Start(t, nil)
	node = site.AddNode(t, s, "n1", nil)
	config = func(settings ...string) string {
		return s.Provider() + acctest.Allocation(s) + acctest.Allocated(settings...)
	}
	w = acctest.NewWorkspace(t, config(append(settings, acctest.Image("v1"), `protected = true`)...))
	w.Must("apply", "-auto-approve")
	wantProtected(t, s, node, true)
	return s, node, w, config
}

func TestAccDeployment_protectedIsSetAndCleared(t *testing.T) {
	t.Parallel()
	s, node, w, config := protectedSite(t)
	acctest.NoChanges(t, w)
	if got := s.Node(node)["protected_reason"]; got != "protected by Terraform" {
		t.Errorf("the reason is %v", got)
	}
	s.Patch(node, "replace", "/protected", false) // others
	output, changes := w.Plan()
	if !changes {
		t.Error("the plan does not protect the node again")
	}
	acctest.Mention(t, output, "protected = false -> true")
	w.Must("apply", "-auto-approve")
	wantProtected(t, s, node, true)

	w.Configure(config(acctest.Image("v1"))) // not managed any more
	w.Must("apply", "-auto-approve")
	wantProtected(t, s, node, true)
	w.Configure(config(acctest.Image("v1"), `protected = false`))
	w.Must("apply", "-auto-approve")
	wantProtected(t, s, node, false)
	acctest.NoChanges(t, w)
	site.WantVerbs(t, s, node, "active")
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_protectedIsNotReplacedOrDestroyed(t *testing.T) {
	t.Parallel()
	s, node, w, config := protectedSite(t)
	advice := "If it may be wiped, first apply protected = false, without any other change"
	other := `allocation_id = "` + vif(1) + `"`
	for _, change := range []string{
		acctest.Deployment(acctest.Quoted(node), other, acctest.Image("v1"), `protected = true`),
		acctest.Deployment(acctest.Quoted(node), other, acctest.Image("v1"), `protected = false`),
		acctest.Deployment(acctest.Quoted(node), acctest.Image("v2"), `protected = false`, `on_change = "replace"`),
	} {
		w.Configure(s.Provider() + acctest.Allocation(s) + change)
		wantPlanRefused(t, w, nil, "this plan would replace its deployment", advice)
	}
	w.Configure(config(acctest.Image("v1"), `protected = true`))
	wantPlanRefused(t, w, []string{"-destroy"}, "this plan would destroy its deployment", advice)
	w.Configure(s.Provider())
	wantPlanRefused(t, w, nil, "this plan would destroy its deployment", advice)

	// Without prior state the plan reads the node.
	for _, flag := range []string{`protected = true`, `protected = false`} {
		w.Configure(config(acctest.Image("v1"), flag))
		wantPlanRefused(t, w, []string{"-replace=" + acctest.DeploymentAddress}, "a new deployment would first undeploy it",
			"without -replace")
	}
	w.Must("taint", acctest.DeploymentAddress)
	wantPlanRefused(t, w, nil, "a new deployment would first undeploy it", "run terraform untaint")
	w.Must("untaint", acctest.DeploymentAddress)
	site.WantVerbs(t, s, node, "active")

	w.Must("apply", "-auto-approve") // as the errors advise: protected = false alone
	wantProtected(t, s, node, false)
	w.Must("destroy", "-auto-approve")
	site.WantVerbs(t, s, node, "active", "deleted")
}

// Ironic refuses what no plan could see.
func TestAccDeployment_protectedByOthersAfterPlan(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(image string) string {
		return s.Provider() + acctest.Allocation(s) + acctest.Allocated(acctest.Image(image))
	}
	w := acctest.NewWorkspace(t, config("v1"))
	w.Must("apply", "-auto-approve")
	for _, tc := range []struct {
		config  string
		args    []string
		refused string
	}{
		{config("v2"), nil, "Could not deploy node"},
		{config("v1"), []string{"-destroy"}, "Could not undeploy node"},
	} {
		w.Configure(tc.config)
		w.Save(tc.args...)
		s.Patch(node, "add", "/protected", true)
		acctest.Fails(t, w, []string{"apply", "saved"}, tc.refused, "is protected and cannot be undeployed, rebuilt or deleted",
			"apply protected = false for its metal_deployment")
		wantProtected(t, s, node, true)
		wantInState(t, w, 0, 0)
		w.Configure(config("v1"))
		acctest.NoChanges(t, w)
		s.Patch(node, "replace", "/protected", false)
	}
	site.WantVerbs(t, s, node, "active")
	s.Patch(node, "add", "/protected", true)
	w.Configure(config("v2"))
	wantPlanRefused(t, w, nil, "this plan would rebuild it") // as last refreshed
	w.Configure(s.Provider() + acctest.Allocation(s) + acctest.Allocated(acctest.Image("v1"), `protected = false`))
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
}
