package deployment_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// What a message advises against the loss of a machine is done to the letter, and the machine runs on.
func TestFakeDeployment_adviceKeepsTheMachine(t *testing.T) {
	t.Parallel()
	month := func(n string) string { return "rebuild_triggers = { month = \"" + n + "\" }" }
	for name, tt := range map[string]struct {
		before, change []string // settings; those of before are applied
		do             []string // what else frightens: a command before the plan
		says           string
		advice         string
		then           []string // settings as advised; nil: those of change
		run            []string // a command as advised
	}{
		"another image": {
			change: []string{acctest.Image("v2")}, says: "Rebuild wipes the root disk",
			advice: `Set on_change = "ignore" to leave the machine as it is`,
			then:   []string{acctest.Image("v2"), `on_change = "ignore"`},
		},
		"another trigger": {
			before: []string{acctest.Image("v1"), month("1")}, change: []string{acctest.Image("v1"), month("2")},
			says: "Rebuild wipes the root disk", advice: "Keep the value of rebuild_triggers to leave the machine as it is",
			then: []string{acctest.Image("v1"), month("1")},
		},
		"another image and another trigger": {
			before: []string{acctest.Image("v1"), month("1")}, change: []string{acctest.Image("v2"), month("2")},
			says: "Rebuild wipes the root disk", advice: `Keep the value of rebuild_triggers, and set on_change = "ignore", to leave`,
			then: []string{acctest.Image("v2"), month("1"), `on_change = "ignore"`},
		},
		"tainted": {
			change: []string{acctest.Image("v1")}, do: []string{"taint", acctest.DeploymentAddress},
			says: "Destroying undeploys the machine", advice: "run terraform untaint with its address",
			run: []string{"untaint", acctest.DeploymentAddress},
		},
		"lost from the state": {
			change: []string{acctest.Image("v2")}, do: []string{"state", "rm", acctest.DeploymentAddress},
			says: "Node is deployed already", advice: "To manage what runs, import it",
			then: []string{acctest.Image("v1")}, run: []string{"import", acctest.DeploymentAddress, "NODE"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.StartFake(t, nil)
			node := site.AddNode(t, s, "n1", nil)
			config := func(settings []string) string {
				return s.Provider() + acctest.Deployment(acctest.Quoted(s.Name("n1")), settings...)
			}
			if tt.before == nil {
				tt.before = []string{acctest.Image("v1")}
			}
			w := acctest.NewWorkspace(t, config(tt.before))
			w.Must(acctest.Apply()...)
			defer w.Must("destroy", "-auto-approve")
			if tt.do != nil {
				w.Must(tt.do...)
			}
			w.Configure(config(tt.change))
			output, _ := w.Plan()
			acctest.Mention(t, output, tt.says, tt.advice)

			if tt.run != nil {
				w.Must(strings.Split(strings.ReplaceAll(strings.Join(tt.run, " "), "NODE", s.Name("n1")), " ")...)
			}
			if tt.then != nil {
				w.Configure(config(tt.then))
			}
			acctest.NeverMention(t, w.Must(acctest.Apply()...), tt.says)
			acctest.NoChanges(t, w)
			site.WantVerbs(t, s, node, "active")
			if images(s, []string{node}, "v1") != 1 {
				t.Error("the machine was deployed anew")
			}
		})
	}
}

// After a creation that Ironic failed, untaint skips the cleaning, and the next apply deploys the machine, as the error says.
func TestFakeDeployment_adviceSkipsTheCleaning(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(settings ...string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), append(settings, acctest.Image("v1"))...)
	}
	w := acctest.NewWorkspace(t, config(acctest.FailingStep))
	acctest.Fails(t, w, acctest.Apply(), "Could not deploy node "+s.Name("n1"), acctest.LastErrorOfFailingStep,
		"To skip the cleaning, run terraform untaint with the address of this resource before that.")
	defer w.Must("destroy", "-auto-approve")
	w.Must("untaint", acctest.DeploymentAddress)
	w.Configure(config())
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
	for _, verb := range site.Verbs(s, node) {
		if verb == "deleted" {
			t.Error("the machine was undeployed, which cleans it")
		}
	}
	if is := s.Node(node)["provision_state"]; is != "active" {
		t.Errorf("the node is %v", is)
	}
}
