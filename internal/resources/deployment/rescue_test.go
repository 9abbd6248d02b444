package deployment_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// rescuePassword is a password that tests look for where it must not be.
const rescuePassword = "hunter2-and-rescue"

// rescue is the setting of rescue mode, with a version of its password.
func rescue(version int) string {
	return fmt.Sprintf("rescue = {\n    password_wo = var.password\n    password_wo_version = %d\n  }", version)
}

// rescueVariable declares the variable of the password.
const rescueVariable = "variable \"password\" {\n  type = string\n  ephemeral = true\n  sensitive = true\n}\n"

// newRescue returns a workspace with a deployment of an image on a node, and the password in its environment.
func newRescue(t *testing.T, s *site.Site, node string, settings ...string) *acctest.Workspace {
	t.Helper()
	w := acctest.NewWorkspace(t, rescueConfig(s, node, settings...))
	w.Setenv("TF_VAR_password", rescuePassword)
	return w
}

// rescueConfig is a configuration with a deployment of an image on a node.
func rescueConfig(s *site.Site, node string, settings ...string) string {
	return rescueVariable + s.Provider() + acctest.Deployment(acctest.Quoted(node), append([]string{acctest.Image("v1")}, settings...)...)
}

// wantState fails a test unless a node is in a state and the state of the deployment says so.
func wantState(t *testing.T, s *site.Site, w *acctest.Workspace, node, want string) {
	t.Helper()
	if is := s.Node(node)["provision_state"]; is != want {
		t.Errorf("the node is in state %v, want %s", is, want)
	}
	if is := acctest.Deployed(t, w).Values["provision_state"]; is != want {
		t.Errorf("in state is provision_state %v, want %s", is, want)
	}
}

func TestAccDeployment_rescueAndBack(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := newRescue(t, s, node)
	w.Must("apply", "-auto-approve")
	var said strings.Builder
	for i, step := range []struct {
		settings       []string
		warning, state string
	}{
		{[]string{rescue(1)}, "Machine enters rescue mode", "rescue"},
		{[]string{rescue(2), `power_state = "on"`}, "Machine enters rescue mode", "rescue"},
		{[]string{`rebuild_triggers = { month = "10" }`}, "Machine leaves rescue mode", "active"},
		{[]string{rescue(2), `rebuild_triggers = { month = "10" }`}, "Machine enters rescue mode", "rescue"},
	} {
		w.Configure(rescueConfig(s, node, step.settings...))
		wantRaised(t, w.Save()[acctest.DeploymentAddress], 0, 1)
		said.WriteString(w.Must("show", "-json", "saved"))
		output, _ := w.Plan()
		acctest.Mention(t, output, step.warning)
		said.WriteString(output + w.Must("apply", "saved"))
		wantState(t, s, w, node, step.state)
		wantInState(t, w, 0, i+1)
		acctest.NoChanges(t, w)
	}
	s.Verb(node, "unrescue", "active") // by another client
	output, _ := w.Plan()
	acctest.Mention(t, output, "Machine enters rescue mode", "0 to add, 1 to change, 0 to destroy")
	w.Must("apply", "-auto-approve")
	wantState(t, s, w, node, "rescue")
	said.WriteString(w.Must("show", "-json") + w.Must("destroy", "-auto-approve"))
	site.WantVerbs(t, s, node, "active", "rescue", "rescue", "unrescue", "rescue", "unrescue", "rescue", "deleted")
	if password := site.InstanceInfo(s, node)["rescue_password"]; password != nil {
		t.Errorf("the password is left on the node: %v", password)
	}
	for where, content := range map[string]string{"output": said.String(), "state": w.State()} {
		if at := strings.Index(content, rescuePassword); at >= 0 {
			t.Errorf("the password is in the %s: %q", where, content[max(0, at-200):at])
		}
	}
}

// While a machine is in rescue mode, its plan leaves a new image and new triggers for later, so that a change of the whole fleet does not
// fail because of one machine in repair. Other settings change meanwhile.
func TestAccDeployment_changeWaitsForEndOfRescue(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(image string, month int, settings ...string) string {
		triggers := fmt.Sprintf("rebuild_triggers = { month = %d }\n  restart_triggers = { kernel = %d }", month, month)
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), append(settings, acctest.Image(image), triggers)...)
	}
	w := acctest.NewWorkspace(t, config("v1", 1))
	w.Must("apply", "-auto-approve")
	s.Must(http.MethodPut, "nodes/"+node+"/states/provision", map[string]any{"target": "rescue", "rescue_password": "others"})
	s.Await(node, "provision_state", "rescue")
	w.Configure(config("v2", 2))
	output, changes := w.Plan()
	if acctest.Mention(t, output, "Machine is in rescue mode", "Change waits for the end of the rescue", "metal unrescue "+node); changes {
		t.Errorf("the plan changes the machine:\n%s", output)
	}
	w.Configure(config("v1", 1)) // put back
	acctest.NoChanges(t, w)
	w.Configure(config("v2", 2, "max_attempts = 2"))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "Change waits for the end of the rescue", "0 added, 1 changed")
	output, _ = w.Plan()
	acctest.Mention(t, output, "Change waits for the end of the rescue")
	wantState(t, s, w, node, "rescue")
	s.Verb(node, "unrescue", "active")
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "Rebuild wipes the root disk")
	if got := acctest.ImageInState(t, w); !strings.HasSuffix(got, "v2.qcow2") {
		t.Errorf("in state is image %s", got)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
	site.WantVerbs(t, s, node, "active", "rescue", "unrescue", "rebuild", "deleted")
}

func TestFakeDeployment_failedRescue(t *testing.T) {
	t.Parallel()
	var broken atomic.Value
	broken.Store("rescue")
	s := site.StartFake(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
		if verb == broken.Load() {
			return "the ramdisk did not boot"
		}
		return ""
	}})
	node := site.AddNode(t, s, "n1", nil)
	w := newRescue(t, s, node)
	w.Must("apply", "-auto-approve")
	w.Configure(rescueConfig(s, node, rescue(1)))
	acctest.Fails(t, w, acctest.Apply(), "Could not rescue node "+s.Name("n1"), "the ramdisk did not boot", "To give up, remove rescue")
	wantState(t, s, w, node, "rescue failed")
	wantInState(t, w, 0, 0)
	broken.Store("")
	w.Must("apply", "-auto-approve")
	wantState(t, s, w, node, "rescue")
	acctest.NoChanges(t, w)

	broken.Store("rescue")
	w.Configure(rescueConfig(s, node, rescue(2)))
	acctest.Fails(t, w, acctest.Apply(), "the ramdisk did not boot")
	w.Configure(rescueConfig(s, node)) // gives up
	broken.Store("unrescue")
	acctest.Fails(t, w, acctest.Apply(), "Could not end the rescue of node "+s.Name("n1"), "tries again to start what is deployed")
	wantState(t, s, w, node, "unrescue failed")
	broken.Store("")
	w.Must("apply", "-auto-approve")
	wantState(t, s, w, node, "active")
	acctest.NoChanges(t, w)
	site.WantVerbs(t, s, node, "active", "rescue", "rescue", "rescue", "unrescue", "unrescue")
	w.Must("destroy", "-auto-approve")
}

func TestFakeDeployment_rescueIsRefused(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n1", map[string]any{"rescue_interface": "no-rescue"})
	w := newRescue(t, s, node, rescue(1))
	acctest.Fails(t, w, []string{"plan"}, "Nothing to rescue", "there is nothing to rescue. Remove rescue, apply, and add it afterwards")
	w.Configure(rescueConfig(s, node))
	w.Must("apply", "-auto-approve")
	for _, wrong := range []struct{ config, want string }{
		{rescueConfig(s, node, "rescue = {\n    password_wo = \" \"\n    password_wo_version = 1\n  }"), "must not be blank"},
		{rescueConfig(s, node, "rescue = {\n    password_wo_version = 1\n  }"), `attribute "password_wo" is required`},
		{rescueConfig(s, node, rescue(1), `power_state = "off"`), "A rescue system runs only on a machine that is on"},
		{
			rescueConfig(s, node, rescue(1), `capabilities = { boot_mode = terraform_data.a.id }`) +
				"resource \"terraform_data\" \"a\" {}\n",
			"Not possible in rescue mode",
		},
		{rescueConfig(s, node, strings.Replace(rescue(1), "= 1", "= terraform_data.a.output", 1)) +
			"resource \"terraform_data\" \"a\" {\n  input = 1\n}\n", "Value must be known during plan"},
	} {
		w.Configure(wrong.config)
		acctest.Fails(t, w, []string{"plan"}, wrong.want)
	}
	w.Configure(strings.Replace(rescueConfig(s, node, rescue(1)), "provider \"metal\" {",
		"provider \"metal\" {\n  microversion = \"1.37\"", 1))
	acctest.Fails(t, w, []string{"plan"}, "rescue", "1.38")
	w.Configure(rescueConfig(s, node, rescue(1)))
	acctest.Fails(t, w, []string{"plan"}, "Node has no rescue mode", `"no-rescue". Set hardware_interfaces = { rescue = "agent" } on its`)
	if verbs := site.Verbs(s, node); slices.Contains(verbs, "rescue") {
		t.Errorf("Ironic was sent %v", verbs)
	}
	w.Configure(rescueConfig(s, node))
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// The plan that gives the host a rescue mode is not refused.
func TestFakeDeployment_rescueModeOfTheSamePlan(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	config := func(settings, rescued string) string {
		return rescueVariable + s.Provider() + fmt.Sprintf("resource \"metal_host\" \"h\" {\n  name = %q\n  driver = \"fake-hardware\"\n "+
			" target_state = \"available\"\n  hardware_interfaces = { rescue = %q }\n}\n", s.Name("n1"), settings) +
			acctest.Deployment("metal_host.h.id", acctest.Image("v1"), rescued)
	}
	w := acctest.NewWorkspace(t, config("no-rescue", ""))
	w.Setenv("TF_VAR_password", rescuePassword)
	w.Must("apply", "-auto-approve")
	w.Configure(config("no-rescue", rescue(1)))
	acctest.Fails(t, w, []string{"plan"}, "Node has no rescue mode")
	w.Configure(config("fake", rescue(1)))
	output, _ := w.Plan()
	acctest.NeverMention(t, output, "Node has no rescue mode")
	w.Must("apply", "-auto-approve")
	wantState(t, s, w, s.Name("n1"), "rescue")
	w.Must("destroy", "-auto-approve")
}

// Ctrl-C while Ironic works: the next apply neither repeats it nor deploys the machine again.
func TestFakeDeployment_interruptedRescue(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := newRescue(t, s, node)
	w.Must("apply", "-auto-approve")
	for _, step := range []struct{ settings, during, after string }{{rescue(1), "rescuing", "rescue"}, {"", "unrescuing", "active"}} {
		w.Configure(rescueConfig(s, node, step.settings))
		release := s.Hold(step.during)
		running := w.Start("apply", "-auto-approve")
		site.AwaitState(t, s, node, step.during)
		acctest.Interrupt(t, running)
		if step.after == "rescue" {
			w.Must("apply", "-auto-approve") // leaves a machine that Ironic takes there alone
			release()
		} else {
			acctest.WaitOut(t, s, w, release, "apply", "-auto-approve")
		}
		s.Await(node, "provision_state", step.after)
		acctest.NoChanges(t, w)
	}
	site.WantVerbs(t, s, node, "active", "rescue", "unrescue")
	w.Must("destroy", "-auto-approve")
}
