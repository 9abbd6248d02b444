package deployment_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

const quarantine = `on_failure = "quarantine"`

// rack is the HCL of two hosts with further settings, and of an allocation of one of them with a name.
func rack(s *site.Site, settings ...string) string { return rackBut(s, "", "", settings...) }

// rackBut is rack with another setting of one of the hosts.
func rackBut(s *site.Site, base, setting string, settings ...string) string {
	config := s.Provider() + named(s, "depends_on = [metal_host.h1, metal_host.h2]")
	for n, name := range []string{"h1", "h2"} {
		if name == base {
			config += acctest.Host(s, n+1, append([]string{setting}, settings...)...)
			continue
		}
		config += acctest.Host(s, n+1, settings...)
	}
	return config
}

// named is the HCL of the allocation "a" with a name.
func named(s *site.Site, settings ...string) string {
	return acctest.Allocation(s, append(settings, "name = "+acctest.Quoted(s.Name("web")))...)
}

// retired returns the nodes that are in quarantine, by name without the site's suffix.
func retired(s *site.Site, bases ...string) (found []string) {
	for _, base := range bases {
		if s.Node(s.Name(base))["retired"] == true {
			found = append(found, base)
		}
	}
	return found
}

// giveBack returns nodes to use without Terraform, as an operator does, and removes the notes that the next deployment would remove.
func giveBack(s *site.Site, bases ...string) {
	for _, base := range bases {
		node := s.Node(s.Name(base))
		if node["retired"] == true {
			s.Await(s.Name(base), "provision_state", "manageable")
			s.Patch(s.Name(base), "replace", "/retired", false)
			s.Verb(s.Name(base), "provide", "available")
		}
		extra, _ := node["extra"].(map[string]any)
		for _, key := range []string{"terraform_metal_quarantine", "terraform_metal_reservation", "terraform_metal_failures"} {
			if extra[key] != nil {
				s.Patch(s.Name(base), "remove", "/extra/"+key, nil)
			}
		}
	}
}

// A machine that cannot be deployed is put into quarantine, the next apply deploys another one, and the first returns as the warning says.
func TestAccDeployment_quarantine(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w := acctest.NewWorkspace(t, rack(s)+acctest.Allocated(acctest.Image("v1"), quarantine, acctest.FailingStep))
	output := acctest.Fails(t, w, acctest.Apply(), `is in state "deploy failed"`, "Ironic's last_error: "+acctest.LastErrorOfFailingStep,
		`The node is in quarantine: it is undeployed, retired and in state "manageable"`,
		"This was node 1 of at most 3 (max_nodes)", "Apply again")
	failed := retired(s, "h1", "h2")
	if len(failed) != 1 {
		t.Fatalf("in quarantine are %v:\n%s", failed, output)
	}
	bad, good := failed[0], map[string]string{"h1": "h2", "h2": "h1"}[failed[0]]
	node := s.Node(s.Name(bad))
	if reason := site.Text(node["retired_reason"]); node["provision_state"] != "manageable" || node["instance_uuid"] != nil ||
		node["maintenance"] != false ||
		!strings.HasPrefix(reason, "quarantine: the deployment for allocation "+s.Name("web")+" failed") {
		t.Errorf("the node in quarantine is %v, %q", node["provision_state"], reason)
	}
	if d := acctest.InState(t, w, acctest.DeploymentAddress); d != nil {
		t.Errorf("in state is %+v", d)
	}

	w.Configure(rack(s) + acctest.Allocated(acctest.Image("v1"), quarantine))
	output, _ = w.Plan()
	acctest.Mention(t, output, "Host is in quarantine", "Host "+s.Name(bad)+" is in quarantine: the deployment for allocation "+
		s.Name("web")+" failed on it",
		"To return it, repair it and set retired = false.", "2 to add, 0 to change, 0 to destroy")
	w.Must(acctest.Apply()...)
	if d := acctest.Deployed(t, w); d.Values["id"] != s.Node(s.Name(good))["uuid"] || d.Tainted {
		t.Errorf("in state is %+v", d)
	}
	acctest.NoChanges(t, w)
	if now := retired(s, "h1", "h2"); len(now) != 1 || now[0] != bad {
		t.Errorf("in quarantine are %v", now)
	}

	w.Configure(rackBut(s, bad, "retired = false") + acctest.Allocated(acctest.Image("v1"), quarantine))
	acctest.Mention(t, w.Must(acctest.Apply()...), "Host leaves its quarantine", "Cleaning erases data", "0 added, 1 changed, 0 destroyed")
	node = s.Node(s.Name(bad))
	if extra, _ := node["extra"].(map[string]any); node["provision_state"] != "available" || node["retired"] != false ||
		extra["terraform_metal_quarantine"] != nil {
		t.Errorf("the returned node is %v", node)
	}
	acctest.NoChanges(t, w)
	acctest.NoDrift(t, w)
	w.Must("destroy", "-auto-approve")
}

// A host that always says retired = false does not return a broken machine.
func TestAccDeployment_quarantineOfHostThatManagesRetired(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	const deployed, spare = `retired = false`, `description = "spare"`
	w := acctest.NewWorkspace(t, rack(s, deployed)+acctest.Allocated(acctest.Image("v1"), quarantine, acctest.FailingStep))
	acctest.Fails(t, w, acctest.Apply(), "The node is in quarantine")
	bad := retired(s, "h1", "h2")
	if len(bad) != 1 {
		t.Fatalf("in quarantine are %v", bad)
	}
	w.Configure(rack(s, deployed, spare) + acctest.Allocated(acctest.Image("v1"), quarantine)) // also with another change
	acctest.Mention(t, w.Must(acctest.Apply()...), "Host is in quarantine", "repair it and apply retired = true, and then retired = false")
	if now := retired(s, "h1", "h2"); len(now) != 1 || now[0] != bad[0] {
		t.Errorf("in quarantine are %v", now)
	}
	acctest.NoChanges(t, w)
	w.Configure(rack(s, spare) + acctest.Allocated(acctest.Image("v1"), quarantine)) // a removal returns it neither
	acctest.Mention(t, w.Must(acctest.Apply()...), "Host is in quarantine")
	if now := retired(s, "h1", "h2"); len(now) != 1 || now[0] != bad[0] {
		t.Errorf("in quarantine are %v", now)
	}
	acctest.NoChanges(t, w)
	w.Configure(rack(s, spare, deployed) + acctest.Allocated(acctest.Image("v1"), quarantine))
	acctest.Mention(t, w.Must(acctest.Apply()...), "Host is in quarantine")
	w.Configure(rackBut(s, bad[0], "retired = true", spare) + acctest.Allocated(acctest.Image("v1"), quarantine))
	acctest.NeverMention(t, w.Must(acctest.Apply()...), "Host is in quarantine")
	acctest.NoChanges(t, w)
	w.Configure(rack(s, deployed, spare) + acctest.Allocated(acctest.Image("v1"), quarantine))
	acctest.Mention(t, w.Must(acctest.Apply()...), "Cleaning erases data")
	if now := retired(s, "h1", "h2"); len(now) != 0 {
		t.Errorf("in quarantine are %v", now)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// After max_nodes failures, nothing is written to the next node.
func TestAccDeployment_quarantineEndsAtMaxNodes(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	bases := []string{"n1", "n2", "n3"}
	for _, base := range bases {
		site.AddNode(t, s, base, nil)
	}
	config := func(settings ...string) string {
		return s.Provider() + named(s) + acctest.Allocated(append(settings, acctest.Image("v1"), quarantine)...)
	}
	w := acctest.NewWorkspace(t, config(acctest.FailingStep, `max_nodes = 2`))
	acctest.Fails(t, w, acctest.Apply(), "This was node 1 of at most 2 (max_nodes)")
	acctest.Fails(t, w, acctest.Apply(), "No other node is tried, because 2 of at most 2 nodes (max_nodes) have failed within 24 hours")
	failed := retired(s, bases...)
	acctest.Fails(t, w, acctest.Apply(), "Deployments for allocation "+s.Name("web")+" have failed on 2 of at most 2 nodes (max_nodes)",
		s.Name(failed[0]), s.Name(failed[1]), "was not touched")
	if now := retired(s, bases...); len(failed) != 2 || len(now) != 2 {
		t.Errorf("in quarantine are %v, then %v", failed, now)
	}
	output, _ := w.Plan()
	acctest.Mention(t, output, "No other node is tried", "The apply fails for this deployment")

	giveBack(s, failed[0]) // as the message says
	w.Configure(config(`max_nodes = 2`))
	acctest.NeverMention(t, w.Must(acctest.Apply()...), "No other node is tried")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
	giveBack(s, bases...)
}

func TestAccDeployment_quarantineNeedsNamedAllocation(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), quarantine))
	acctest.Fails(t, w, []string{"plan"}, "Missing setting", "set allocation_id to the id of a metal_allocation with a name")
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `max_nodes = 2`))
	acctest.Fails(t, w, []string{"plan"}, "Unused setting", `max_nodes has an effect only with on_failure = "quarantine"`)
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), "adopt = true", quarantine))
	acctest.Fails(t, w, []string{"plan"}, "Unused setting", "on_failure has no effect with adopt = true")

	w.Configure(s.Provider() + acctest.Allocation(s) + acctest.Allocated(acctest.Image("v1"), quarantine))
	for range 2 { // the first plan does not know the allocation
		acctest.Fails(t, w, acctest.Apply(), "needs an allocation with a name")
	}
	if s.Node(node)["provision_state"] != "available" {
		t.Errorf("the node is %v", s.Node(node)["provision_state"])
	}
	w.Configure(s.Provider() + named(s) + acctest.Allocated(acctest.Image("v1"), quarantine))
	acctest.Mention(t, w.Must(acctest.Apply()...), "1 added, 1 changed, 0 destroyed")
	w.Must("destroy", "-auto-approve")
}

// A machine that cannot be undeployed either stays out of the pool, and the next apply deploys another one.
func TestFakeDeployment_quarantineWithoutUndeploy(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{Fail: func(node fakeironic.Node, verb string) string {
		if !strings.HasPrefix(node.Name, "n1") {
			return ""
		}
		return map[string]string{
			"active":  "Deploy step deploy.write_image failed: no space left on device.",
			"deleted": "the switch port was down",
		}[verb]
	}})
	first := site.AddNode(t, s, "n1", nil)
	config := func(candidate string) string {
		return s.Provider() + named(s, "candidate_nodes = ["+acctest.Quoted(s.Name(candidate))+"]") +
			acctest.Allocated(acctest.Image("v1"), quarantine)
	}
	w := acctest.NewWorkspace(t, config("n1"))
	acctest.Fails(t, w, acctest.Apply(), `is in state "deploy failed", because deploy step deploy.write_image failed.`,
		"no space left on device",
		"The node is retired, so that no allocation reserves it, but could not be undeployed, and its disks may still hold data",
		"the switch port was down")
	node := s.Node(first)
	if node["retired"] != true || node["provision_state"] != "error" {
		t.Errorf("the node is %v in state %v", node["retired"], node["provision_state"])
	}
	second := site.AddNode(t, s, "n2", nil)
	w.Configure(config("n2"))
	w.Must(acctest.Apply()...)
	if d := acctest.Deployed(t, w); d.Values["id"] != second {
		t.Errorf("in state is %+v", d)
	}
	w.Must("destroy", "-auto-approve")
	s.Fake.Set(first, "provision_state", "manageable")
	giveBack(s, "n1")
}
