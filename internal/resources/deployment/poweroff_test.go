package deployment_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

func TestAccDeployment_gracefulPowerOff(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := acctest.AddNode(t, s, "n1", nil)
	config := func(settings ...string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), append(settings, acctest.Image("v1"))...)
	}
	w := acctest.NewWorkspace(t, config(`power_state = "on"`))
	defer w.Must("destroy", "-auto-approve")
	w.Must(acctest.Apply()...)
	w.Configure(config(`power_state = "on"`, `power_off_mode = "graceful"`))
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
	if s.Fake != nil {
		s.Fake.ResetRequests()
	}
	w.Configure(config(`power_state = "off"`, `power_off_mode = "graceful"`))
	acctest.NeverMention(t, w.Must(acctest.Apply()...), "Power was cut")
	s.Await(node, "power_state", "power off")
	acctest.NoChanges(t, w)
	if s.Fake == nil {
		return
	}
	if sent := powerTargets(s); sent != `{"target":"soft power off","timeout":180}` {
		t.Errorf("sent %s", sent)
	}
}

// powerTargets returns the requests for power changes that the fake has got.
func powerTargets(s *acctest.Site) string {
	var sent []string
	for _, r := range s.Fake.Requests() {
		if r.Method == http.MethodPut && strings.HasSuffix(r.Path, "/states/power") {
			sent = append(sent, r.Body)
		}
	}
	return strings.Join(sent, " ")
}

func TestFakeDeployment_powerIsCutWithoutSoftPower(t *testing.T) {
	t.Parallel()
	s := acctest.StartFake(t, &fakeironic.Server{NoSoftPower: true})
	node := acctest.AddNode(t, s, "n1", nil)
	config := func(mode string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `power_state = "off"`, "power_off_mode = "+acctest.Quoted(mode))
	}
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `power_state = "on"`))
	defer w.Must("destroy", "-auto-approve")
	w.Must(acctest.Apply()...)
	w.Configure(config("graceful"))
	acctest.Mention(t, w.Must(acctest.Apply()...), "Power was cut", "the driver fake-hardware cannot ask an operating system to shut down")
	acctest.NoChanges(t, w)
	s.Must(http.MethodPut, "nodes/"+node+"/states/power", map[string]any{"target": "power on"})
	s.Await(node, "power_state", "power on")
	w.Configure(config("soft"))
	acctest.Fails(t, w, acctest.Apply(), "cannot ask an operating system to shut down", "Set power_off_mode to graceful or hard")
	w.Configure(config("hard"))
	acctest.NeverMention(t, w.Must(acctest.Apply()...), "Power was cut")
	s.Await(node, "power_state", "power off")
}

// A machine that Ironic never switches off is not deployed to be switched off: the failed deployment would be tainted.
func TestAccDeployment_neverOffIsRefusedBeforeDeploying(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	s.SkipBefore("1.95")
	node := acctest.AddNode(t, s, "n1", nil)
	s.PatchAt("1.95", node, "/disable_power_off", true)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `power_state = "off"`))
	acctest.Fails(t, w, acctest.Apply(), "disable_power_off is set on it", `Remove power_state = "off", or set disable_power_off = false on its metal_host first`)
	if state := s.Node(node)["provision_state"]; state != "available" {
		t.Errorf("the node is %v", state)
	}
	if acctest.InState(t, w, acctest.DeploymentAddress) != nil {
		t.Error("the state has a deployment")
	}
}
