package guides_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// These tests follow what the guide about rollouts says.

// rolloutGuide returns a workspace with a configuration of the guide, whose machines answer, and its site.
func rolloutGuide(t *testing.T, name string, fake *fakeironic.Server) (w *acctest.Workspace, main string, s *site.Site) {
	t.Helper()
	s = site.StartFake(t, fake)
	name = "roll-out/" + name
	guideSites[name](t, s)
	w, main = guideWorkspace(t, s, name)
	write(t, main, answer(t, read(t, main)))
	return w, main, s
}

// withBadImage returns an Ironic that cannot write the image debian-13.
func withBadImage() *fakeironic.Server {
	return &fakeironic.Server{Fail: func(n fakeironic.Node, _ string) string {
		if hasImage(n, "debian-13") {
			return "Deploy step deploy.write_image failed: No space left on device"
		}
		return ""
	}}
}

func hasImage(n fakeironic.Node, image string) bool {
	info, _ := n.Raw["instance_info"].(map[string]any)
	return info["image_source"] == "http://images.example.com/"+image+".qcow2"
}

// running returns how many machines have an image of the site in Ironic.
func running(s *site.Site, image string) (n int) {
	for _, node := range s.Fake.Nodes() {
		if hasImage(node, image) {
			n++
		}
	}
	return n
}

// notStarted returns how many machines an apply has not started, by its output.
func notStarted(output string) int { return strings.Count(output, "Error: Machine was not started") }

// A bad image reaches the canary only. The former image needs nothing on the others, and the next image begins with another canary.
func TestFakeGuide_badImageReachesTheCanaryOnly(t *testing.T) {
	t.Parallel()
	w, _, s := rolloutGuide(t, "web", withBadImage())
	defer destroy(t, w)
	w.Must(acctest.Apply()...)
	output := acctest.Fails(t, w, append(acctest.Apply(), "-var=image=debian-13"), "was not started: the canary rack1-0",
		"Nothing was sent to the machine, which is as before.")
	if n := notStarted(output); n != 5 || running(s, "debian-12") != 5 {
		t.Errorf("%d machines were not started, %d run what they ran:\n%s", n, running(s, "debian-12"), output)
	}
	acctest.Mention(t, w.Must("plan"), "0 to add, 1 to change, 0 to destroy")
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
	w.Must(append(acctest.Apply(), "-var=image=debian-14")...)
	if n := running(s, "debian-14"); n != 6 {
		t.Errorf("%d of 6 machines run the mended image", n)
	}
}

// A first apply begins with a canary, too.
func TestFakeGuide_firstApplyBeginsWithACanary(t *testing.T) {
	t.Parallel()
	w, _, s := rolloutGuide(t, "web", withBadImage())
	defer destroy(t, w)
	output := acctest.Fails(t, w, append(acctest.Apply(), "-var=image=debian-13"), "was not started: the canary rack1-0")
	if n := notStarted(output); n != 5 || running(s, "debian-13") != 1 {
		t.Errorf("%d machines were not started, %d got the image:\n%s", n, running(s, "debian-13"), output)
	}
}

// Three machines fail, and the others keep what they run.
func TestFakeGuide_badImageReachesThreeMachines(t *testing.T) {
	t.Parallel()
	w, main, s := rolloutGuide(t, "web", withBadImage())
	write(t, main, strings.Replace(read(t, main), "  rollout     = { canary = 1 }\n", "", 1))
	defer destroy(t, w)
	w.Must(acctest.Apply()...)
	output := acctest.Fails(t, w, append(acctest.Apply(), "-var=image=debian-13"),
		"3 of 3 machines that this run has changed in the same way have failed (rack1-0")
	if n := notStarted(output); n != 3 || running(s, "debian-12") != 3 {
		t.Errorf("%d machines were not started, %d run what they ran:\n%s", n, running(s, "debian-12"), output)
	}
	acctest.Mention(t, w.Must("plan"), "0 to add, 3 to change, 0 to destroy")
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
}

// A database that does not answer after its restart keeps the others from restarting. The next apply only checks it, and goes on.
func TestFakeGuide_databaseThatDoesNotAnswerStopsTheOthers(t *testing.T) {
	t.Parallel()
	w, main, s := rolloutGuide(t, "databases", nil)
	service := acctest.NewPort(t)
	service.Open()
	text := serviceAddress.ReplaceAllString(read(t, guides+"/roll-out/databases/main.tf"), service.Address)
	text = strings.Replace(text, `timeout = "15m"`, `timeout = "1s"`, 1)
	write(t, main, strings.Replace(text, `pause = "1m"`, `pause = "0s"`, 1))
	defer destroy(t, w)
	w.Must(acctest.Apply()...)
	before := powerCycles(s)
	service.Close()
	restart := append(acctest.Apply(), "-var=kernel=6.12.9")
	output := acctest.Fails(t, w, restart, "and is not ready", `was not started: rollout group "databases" lacks db-`,
		"and no run works on that")
	if n := notStarted(output); n != 2 || powerCycles(s) != before+1 {
		t.Errorf("%d machines were not started, %d restarted:\n%s", n, powerCycles(s)-before, output)
	}
	service.Open()
	acctest.Mention(t, w.Must(restart...), "~ ready = false -> true", "0 added, 3 changed, 0 destroyed")
	if n := powerCycles(s) - before; n != 3 {
		t.Errorf("%d restarts of three machines", n)
	}
	acctest.Mention(t, w.Must("plan", "-var=kernel=6.12.9"), "No changes.")
}

func powerCycles(s *site.Site) (n int) {
	for i := range 3 {
		n += s.Fake.PowerCycles(fmt.Sprintf("db-%d", i+1))
	}
	return n
}

// One apply changes the first half, and another one the rest.
func TestFakeGuide_firstHalfChangesFirst(t *testing.T) {
	t.Parallel()
	w, _, s := rolloutGuide(t, "halves", nil)
	defer destroy(t, w)
	w.Must(acctest.Apply()...)
	acctest.Mention(t, w.Must(append(acctest.Apply(), "-var=image_of_first=debian-13")...), "0 added, 2 changed, 0 destroyed")
	if running(s, "debian-12") != 2 || running(s, "debian-13") != 2 {
		t.Errorf("%d machines run the former image, %d the new one", running(s, "debian-12"), running(s, "debian-13"))
	}
	acctest.Mention(t, w.Must(append(acctest.Apply(), "-var=image=debian-13")...), "0 added, 2 changed, 0 destroyed")
	if n := running(s, "debian-13"); n != 4 {
		t.Errorf("%d of 4 machines run the new image", n)
	}
}
