package host_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// eraser returns the HCL of the runbook "wipe" that erases disks, for nodes with a trait.
func eraser(s *site.Site) string {
	return fmt.Sprintf("resource \"metal_runbook\" \"wipe\" {\n  name = %q\n  traits = [%q]\n  steps = [{ interface = \"deploy\", step "+
		"= \"erase_devices_metadata\" }]\n}\n", s.Name("wipe"), s.Trait("WIPE"))
}

// A host may name a runbook that the same apply creates. Ironic is asked for no runbook then, and once in a run for one that exists.
func TestAccHost_cleaningRunbook(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	s.SkipBefore(t, 112)
	traits := fmt.Sprintf("traits = [%q]", s.Trait("WIPE"))
	hosts := func(settings ...string) string {
		return s.Provider() + eraser(s) + acctest.Host(s, 1, settings...) + acctest.Host(s, 2, settings...)
	}
	w := acctest.NewWorkspace(t, hosts(traits, `cleaning_runbook = metal_runbook.wipe.name`))
	output := w.Must("apply", "-auto-approve")
	acctest.Mention(t, output, "Cleaning runbook may have no effect", "automated_cleaning_runbook_from_node")
	acctest.NoChanges(t, w)
	acctest.NoDrift(t, w)
	info := func() any {
		all, _ := s.Node(s.Name("h1"))["driver_info"].(map[string]any)
		return all["cleaning_runbook"]
	}
	if got := info(); got != s.Name("wipe") {
		t.Errorf("the runbook is %v", got)
	}
	if s.Fake != nil {
		s.Fake.ResetRequests()
	}
	w.Configure(hosts(traits, `cleaning_runbook = metal_runbook.wipe.id`))
	w.Must("plan")
	if s.Fake != nil {
		asked := 0
		for _, r := range s.Fake.Requests() {
			if strings.Contains(r.Path, "/runbooks/") {
				asked++
			}
		}
		if asked != 2 { // the refresh of metal_runbook, and the check for both hosts
			t.Errorf("Ironic was asked %d times for runbooks, want 2", asked)
		}
	}
	w.Configure(hosts(traits))
	w.Must("apply", "-auto-approve")
	if got := info(); got != nil {
		t.Errorf("the runbook is still %v", got)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// What a wrong cleaning runbook would do to a node is refused at plan.
func TestAccHost_cleaningRunbookIsChecked(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	s.SkipBefore(t, 112)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Host(s, 1, `cleaning_runbook = "none"`))
	acctest.Fails(t, w, []string{"plan"}, "Cleaning runbook does not exist", "Ironic has no runbook none", "deleting")
	w.Configure(s.Provider() + eraser(s) + acctest.Host(s, 1, `cleaning_runbook = metal_runbook.wipe.name`))
	acctest.Fails(t, w, []string{"plan"}, "Cleaning runbook does not fit the host", s.Trait("WIPE"))
	w.Configure(s.Provider() + acctest.Host(s, 1, `driver_info = { cleaning_runbook = "none" }`))
	acctest.Fails(t, w, []string{"plan"}, "Setting has an attribute of its own")
	w.Configure(s.Provider(`microversion = "1.82"`) + acctest.Host(s, 1, `cleaning_runbook = "none"`))
	acctest.Fails(t, w, []string{"plan"}, "cleaning_runbook needs API 1.92")
}

// A plan that undeploys a machine says that Ironic would not get on without the runbook.
func TestFakeHost_cleaningRunbookIsMissingAtTheEnd(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	w := acctest.NewWorkspace(t, hostConfig(s, acctest.Target("available"))+eraser(s)+acctest.Deployment("metal_host.h.id",
		acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	for name, why := range map[string]string{"none": "does not exist", s.Name("wipe"): "has none of the node's traits"} {
		info, _ := s.Node(s.Name("h"))["driver_info"].(map[string]any)
		info["cleaning_runbook"] = name
		s.Fake.Set(s.Name("h"), "driver_info", info)
		acctest.Mention(t, w.Must("plan", "-destroy"), "Cleaning runbook cannot be used", "by runbook "+name, why, "in state deleting")
	}
	info, _ := s.Node(s.Name("h"))["driver_info"].(map[string]any)
	delete(info, "cleaning_runbook")
	s.Fake.Set(s.Name("h"), "driver_info", info)
	acctest.NeverMention(t, w.Must("destroy", "-auto-approve"), "Cleaning runbook cannot be used")
}
