package deployment_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// A restart with another image deploys what the plan shows: an ignored config drive stays as it was.
func TestFakeLiveISO_ignoredContentStaysAtRestart(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n", bootsISOs())
	config := func(image, hostname string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), `on_change = "ignore"`,
			`config_drive = { hostname = "`+hostname+`" }`,
			liveISO("http://images.invalid/"+image+".iso", `host_content = { a = "`+image+`" }`, `quiet_period = "0s"`))
	}
	w := acctest.NewWorkspace(t, config("a", "one"))
	w.Must("apply", "-auto-approve")
	w.Configure(config("b", "two"))
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 0, 1)
	site.ForgetVerbs(s)
	w.Must("apply", "saved")
	var drives []string
	for _, r := range s.Fake.Requests() {
		if strings.HasSuffix(r.Path, "/states/provision") && strings.Contains(r.Body, "hostname") {
			drives = append(drives, r.Body)
		}
	}
	if len(drives) != 1 || !strings.Contains(drives[0], `"one"`) || strings.Contains(drives[0], `"two"`) {
		t.Errorf("deployed is %v, want the host name one", drives)
	}
	acctest.NoDrift(t, w)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}
