package guides_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// oneViewGuide returns a workspace with the configuration of the guide OneView, its site and its appliance, and a function that runs the
// script of a OneView user.
func oneViewGuide(
	t *testing.T,
) (w *acctest.Workspace, s *site.Site, appliance *site.OneView, user func(args ...string) (output string, err error)) {
	t.Helper()
	skipWithout(t, "curl", "jq")
	appliance = site.StartOneView(t, nil, 2)
	appliance.Fake.AddTemplate(fakeoneview.Template{
		Name: "Ironic BL460c Gen10", TypeURI: appliance.Blades.TypeURI,
		GroupURI: appliance.Blades.GroupURI,
	})
	s = site.StartFake(t, nil)
	w, _ = guideWorkspace(t, s, "oneview")
	appliance.Setenv(w.Setenv)
	environment := os.Environ()
	appliance.Setenv(func(name, value string) { environment = append(environment, name+"="+value) })
	return w, s, appliance, func(args ...string) (string, error) {
		script := exec.CommandContext(t.Context(), "sh", append([]string{guides + "/oneview/oneview-user.sh"}, args...)...)
		script.Env = environment
		output, err := script.CombinedOutput()
		return string(output), err
	}
}

// mustDo lets the OneView user do something with the server of the guide.
func mustDo(t *testing.T, user func(args ...string) (string, error), what string) {
	t.Helper()
	if output, err := user(what, "Encl1, bay 1"); err != nil {
		t.Fatalf("%s: %v\n%s", what, err, output)
	}
}

// syncPass makes one pass, as metal oneview sync --once does.
func syncPass(t *testing.T, s *site.Site, appliance *site.OneView) {
	t.Helper()
	client, err := oneview.New(oneview.Config{
		Endpoint: appliance.Endpoint, Username: appliance.Username, Password: appliance.Password,
		CACertFile: appliance.CACertFile,
	})
	if err != nil {
		t.Fatal(err)
	}
	_, pool := sharing.New(machine.Config{Config: api.Config{Endpoint: s.Endpoint, Auth: api.AuthNone, PollInterval: time.Second}}, client)
	if _, err := pool.Sync(t.Context(), sharing.SyncOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestFakeGuide_oneViewSync follows the section of the reference about the fake appliance.
func TestFakeGuide_oneViewSync(t *testing.T) {
	t.Parallel()
	w, s, appliance, user := oneViewGuide(t)
	w.Must("apply", "-auto-approve", "-target=metal_host.web")
	mustDo(t, user, "take")
	syncPass(t, s, appliance)
	if node := s.Node("blade-1"); node["provision_state"] != "manageable" || node["maintenance_reason"] != sharing.ReasonInUse {
		t.Errorf("after the first pass, the host is %v", node)
	}
	mustDo(t, user, "free")
	syncPass(t, s, appliance)
	s.Await("blade-1", "provision_state", "available")
	syncPass(t, s, appliance) // removes the temporary profile
	destroy(t, w)
}

// TestFakeGuide_oneViewUserTakesTheServer: the apply of the guide's configuration enrolls the host, and fails for profile and deployment as
// long as a OneView user has the server.
func TestFakeGuide_oneViewUserTakesTheServer(t *testing.T) {
	t.Parallel()
	w, s, _, user := oneViewGuide(t)
	mustDo(t, user, "take")
	if output, err := user("take", "Encl1, bay 1"); err == nil {
		t.Errorf("the user takes the server again:\n%s", output)
	}
	acctest.Fails(t, w, []string{"apply", "-auto-approve"}, "Warning: Host is used by OneView", "Could not give node")
	if node := s.Node("blade-1"); node["maintenance_reason"] != "node in use by OneView" {
		t.Errorf("the host of a taken server is %v", node)
	}
	destroy(t, w)
	mustDo(t, user, "free")
	if output, err := user("free", "Encl1, bay 1"); err == nil {
		t.Errorf("the user frees a free server:\n%s", output)
	}
}

// TestFakeGuide_oneViewUserDeletesTheProfile: after a OneView user has deleted the profile of a deployed machine, the plan says so, and
// replacing the deployment works.
func TestFakeGuide_oneViewUserDeletesTheProfile(t *testing.T) {
	t.Parallel()
	w, _, _, user := oneViewGuide(t)
	w.Must("apply", "-auto-approve")
	mustDo(t, user, "free")
	output, _ := w.Plan()
	acctest.Mention(t, output, "Server profile is gone")
	w.Must("apply", "-auto-approve", "-replace=metal_deployment.web")
	acctest.NoChanges(t, w)
	destroy(t, w)
}
