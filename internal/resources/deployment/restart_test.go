package deployment_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// pipeline returns another workspace with the configuration and the state that a workspace has now.
func pipeline(t *testing.T, of *acctest.Workspace) *acctest.Workspace {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"main.tf", stateFile} {
		replace(t, filepath.Join(dir, name), contentOf(t, filepath.Join(of.Dir, name)))
	}
	return acctest.OpenWorkspace(t, dir)
}

const stateFile = "terraform.tfstate"

func contentOf(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func replace(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// wantRestarts fails the test unless the fake was asked for so many power changes since the last call.
func wantRestarts(t *testing.T, s *site.Site, after string, want int) {
	t.Helper()
	if s.Fake == nil {
		return
	}
	if sent := strings.Fields(powerTargets(s)); len(sent) > want*2 || (len(sent) == 0) != (want == 0) {
		t.Errorf("after %s: sent %v, want %d restarts", after, sent, want)
	}
	s.Fake.ResetRequests()
}

// started returns a workspace with a machine that is on.
func started(t *testing.T, settings ...string) (s *site.Site, w *acctest.Workspace, config func(kernel string, more ...string) string) {
	t.Helper()
	s = site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config = func(kernel string, more ...string) string {
		all := append(more, settings...)
		if !strings.Contains(strings.Join(all, " "), "image =") {
			all = append(all, acctest.Image("v1"))
		}
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), append(all, `restart_triggers = { kernel = "`+kernel+`" }`)...)
	}
	w = acctest.NewWorkspace(t, config("1"))
	w.Must(acctest.Apply()...)
	power(s, node, "power on")
	if s.Fake != nil {
		s.Fake.ResetRequests()
	}
	return s, w, config
}

// Two pipelines without a common lock: what the first one has restarted, the second one does not restart again, whenever it has planned.
func TestAccDeployment_restartsOnceForTwoPipelines(t *testing.T) {
	t.Parallel()
	s, w, config := started(t)
	w.Configure(config("2"))
	saved, later := pipeline(t, w), pipeline(t, w)
	saved.Save()
	w.Must(acctest.Apply()...)
	wantRestarts(t, s, "the first pipeline", 1)
	saved.Must("apply", "saved")
	acctest.NoChanges(t, saved)
	wantRestarts(t, s, "the saved plan of the second one", 0)
	acctest.Mention(t, later.Must(acctest.Apply()...), "Restart of an earlier run is recorded")
	acctest.NoChanges(t, later)
	wantRestarts(t, s, "a plan with the old state", 0)

	for _, kernel := range []string{"1", "2", "3"} { // the values come back: each is a restart of its own
		w.Configure(config(kernel))
		acctest.Mention(t, w.Must(acctest.Apply()...), "Machine is restarted")
		wantRestarts(t, s, "kernel "+kernel, 1)
		acctest.NoChanges(t, w)
	}
	w.Must("destroy", "-auto-approve")
}

// A rebuild starts the machine, too.
func TestAccDeployment_rebuildIsARestart(t *testing.T) {
	t.Parallel()
	s, w, config := started(t)
	w.Configure(config("2", acctest.Image("v2")))
	saved, later := pipeline(t, w), pipeline(t, w)
	saved.Save()
	w.Must(acctest.Apply()...)
	wantRestarts(t, s, "the rebuild", 0)
	saved.Must("apply", "saved")
	acctest.Mention(t, later.Must(acctest.Apply()...), "Restart of an earlier run is recorded")
	wantRestarts(t, s, "the second pipeline", 0)
	w.Must("destroy", "-auto-approve")
}

// A killed run leaves its saved plan, which may be applied w.
func TestAccDeployment_savedRestartAfterAKill(t *testing.T) {
	t.Parallel()
	p := acctest.NewPort(t)
	p.Open()
	s, w, config := started(t, checkOf(p, "10m"))
	w.Configure(config("2"))
	w.Save()
	state := contentOf(t, filepath.Join(w.Dir, stateFile))
	p.Close()
	running := w.Start("apply", "saved")
	site.Until(t, "the ready check has begun", func() bool { return noteOf(s, s.Name("n1")) != nil })
	acctest.Kill(t, s, running)
	wantRestarts(t, s, "the killed apply", 1)
	p.Open()
	replace(t, filepath.Join(w.Dir, stateFile), state) // a remote backend has no other
	w.Must("apply", "saved")
	wantRestarts(t, s, "the same plan", 0)
	wantReady(t, w, true, false)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// What an operator does between plan and apply stops a destruction.
func TestAccDeployment_destroyLooksAtWhatThePlanSaw(t *testing.T) {
	t.Parallel()
	s, w, _ := started(t)
	node := s.Name("n1")
	w.Must("plan", "-destroy", "-out=end")
	s.Must("PUT", "nodes/"+node+"/maintenance", map[string]any{"reason": "disk is read out"})
	acctest.Fails(t, w, []string{"apply", "end"}, "was left as it is", "it is in maintenance (disk is read out)", "terraform plan again")
	site.WantVerbs(t, s, node)
	w.Must("destroy", "-auto-approve") // a plan that has seen it
}
