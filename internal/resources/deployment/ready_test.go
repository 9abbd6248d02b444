package deployment_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// checkOf is the HCL of a ready check of a port.
func checkOf(p *acctest.Port, timeout string) string {
	return fmt.Sprintf("ready_check = { tcp = %q, timeout = %q }", p.Address, timeout)
}

// soon is a time-out that a machine which answers does not reach.
const soon = "1s"

// wantReady checks what the state says of the deployment "d".
func wantReady(t *testing.T, w *acctest.Workspace, ready any, tainted bool) {
	t.Helper()
	if d := acctest.Deployed(t, w); d.Values["ready"] != ready || d.Tainted != tainted {
		t.Errorf("ready is %v, tainted: %t; want %v, %t", d.Values["ready"], d.Tainted, ready, tainted)
	}
}

// noteOf returns the note of a ready check on a node; nil if there is none.
func noteOf(s *site.Site, node string) any {
	extra, _ := s.Node(node)["extra"].(map[string]any)
	return extra[notes.KeyReady]
}

// onlyReady fails the test unless a plan changes nothing but ready, from false to true.
func onlyReady(t *testing.T, c acctest.Change) {
	t.Helper()
	if c.Before["ready"] != false || c.After["ready"] != true {
		t.Errorf("the plan shows ready %v -> %v", c.Before["ready"], c.After["ready"])
	}
	for name, after := range c.After {
		if name != "ready" && site.Text(after) != site.Text(c.Before[name]) {
			t.Errorf("the plan shows %s %v -> %v, too", name, c.Before[name], after)
		}
	}
	for name, unknown := range c.Unknown {
		if unknown == true {
			t.Errorf("the plan does not know %s", name)
		}
	}
}

func TestAccDeployment_readyCheck(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node, p := site.AddNode(t, s, "n1", nil), acctest.NewPort(t)
	config := func(settings ...string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), append(settings, checkOf(p, soon))...)
	}
	w := acctest.NewWorkspace(t, config(acctest.Image("v1"), "protected = true"))
	acctest.Fails(t, w, acctest.Apply(), "Could not make sure that node "+s.Name("n1")+" ("+node+") is ready", "TCP port "+p.Address+
		" did not answer as wanted within 1s: 1 attempt", "connection refused",
		"because it is off", "terraform untaint") // the driver fake-hardware leaves it off
	wantReady(t, w, false, true)
	if s.Node(node)["protected"] == true {
		t.Error("a machine that is not ready is protected")
	}

	p.Open()
	w.Must("untaint", acctest.DeploymentAddress)
	w.Must("apply", "-auto-approve")
	wantReady(t, w, true, false)
	if s.Node(node)["protected"] != true {
		t.Error("a machine that is ready is not protected")
	}
	acctest.NoChanges(t, w)
	site.WantVerbs(t, s, node, "active")

	p.Close()
	w.Configure(config(acctest.Image("v2"), "protected = false"))
	acctest.Fails(t, w, acctest.Apply(), "connection refused", "The state has what was applied. The next apply only checks again.")
	wantReady(t, w, false, false)
	if d := acctest.Deployed(t, w); acctest.ImageInState(t, w) != acctest.Images+"v2.qcow2" || fmt.Sprint(d.Values["rebuilds"]) != "1" {
		t.Errorf("the state has not what was applied: %v", d.Values)
	}
	onlyReady(t, w.Save()[acctest.DeploymentAddress])
	acctest.Fails(t, w, acctest.Apply(), "connection refused")
	p.Open()
	w.Must("apply", "-auto-approve")
	wantReady(t, w, true, false)
	acctest.NoChanges(t, w)
	site.WantVerbs(t, s, node, "active", "rebuild")
	if noteOf(s, node) != nil {
		t.Errorf("left on the node: %v", noteOf(s, node))
	}
	p.Close()
	w.Configure(config(acctest.Image("v3")))
	acctest.Fails(t, w, acctest.Apply(), "connection refused")
	if noteOf(s, node) == nil {
		t.Error("the node does not show that its machine is not ready")
	}
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v3")))
	w.Must("apply", "-auto-approve")
	wantReady(t, w, nil, false)
	acctest.NoChanges(t, w)
	if noteOf(s, node) != nil {
		t.Errorf("without a check, left on the node: %v", noteOf(s, node))
	}
	w.Must("destroy", "-auto-approve")
}

// A machine that somebody has switched off is not ready. Each plan says so, with and without a rollout group, until the advice is taken.
func TestFakeDeployment_readyCheckOfAMachineThatIsOff(t *testing.T) {
	t.Parallel()
	for _, group := range []string{"", "rollout = { group = \"g\", max_unavailable = 1 }"} {
		for _, advice := range []string{"by hand", "power_state"} {
			t.Run(group+" "+advice, func(t *testing.T) {
				t.Parallel()
				s := site.StartFake(t, nil)
				node, p := site.AddNode(t, s, "n1", nil), acctest.NewPort(t)
				config := func(more string) string {
					return s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), checkOf(p, soon), group, more)
				}
				w := acctest.NewWorkspace(t, config(""))
				p.Open()
				w.Must("apply", "-auto-approve")
				s.Fake.Set(node, "power_state", "power on")
				w.Must("apply", "-auto-approve")
				acctest.NoChanges(t, w)
				p.Close()
				s.Fake.Set(node, "power_state", "power off")
				for range 2 {
					output, _ := w.Plan()
					acctest.Mention(t, output, "Ready check of a machine that is off")
					acctest.NeverMention(t, output, "No changes")
					acctest.Fails(t, w, acctest.Apply(), "because it is off", "metal power on "+s.Name("n1"))
				}
				p.Open()
				if advice == "power_state" {
					w.Configure(config(`power_state = "on"`))
				} else {
					s.Fake.Set(node, "power_state", "power on")
				}
				w.Must("apply", "-auto-approve")
				wantReady(t, w, true, false)
				acctest.NoChanges(t, w)
				w.Must("destroy", "-auto-approve")
			})
		}
	}
}

// No later apply checks a machine that leaves the state.
func TestAccDeployment_readyCheckOfAForgottenMachine(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node, p := site.AddNode(t, s, "n1", nil), acctest.NewPort(t)
	config := func(image string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image(image), checkOf(p, soon), `on_destroy = "forget"`)
	}
	w := acctest.NewWorkspace(t, config("v1"))
	p.Open()
	w.Must("apply", "-auto-approve")
	p.Close()
	w.Configure(config("v2"))
	acctest.Fails(t, w, acctest.Apply(), "connection refused")
	if noteOf(s, node) == nil {
		t.Error("the node does not show that its machine is not ready")
	}
	w.Must("destroy", "-auto-approve")
	if noteOf(s, node) != nil || s.Node(node)["provision_state"] != "active" {
		t.Errorf("left on the node: %v", s.Node(node))
	}
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v2")))
	w.Must("import", acctest.DeploymentAddress, node)
	w.Must("destroy", "-auto-approve")
}

// The machine keeps its slot until it is ready.
func TestFakeDeployment_readyCheckKeepsTheSlot(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	nodes, p := []string{site.AddNode(t, s, "n1", nil), site.AddNode(t, s, "n2", nil)}, acctest.NewPort(t)
	w := acctest.NewWorkspace(t, s.Provider("provisioning_limit = { max_concurrent = 1 }")+
		fmt.Sprintf("resource \"metal_deployment\" \"d\" {\n  count = 2\n  node_id = [%q, %q][count.index]\n  %s\n  %s\n}\n",
			nodes[0], nodes[1], acctest.Image("v1"), checkOf(p, "5m")))
	ended := make(chan string)
	go func() {
		output, _ := w.Run("apply", "-auto-approve")
		ended <- output
	}()
	first := func() string {
		i := slices.IndexFunc(nodes, func(node string) bool { return noteOf(s, node) != nil })
		if i < 0 {
			return ""
		}
		return nodes[i]
	}
	site.Until(t, "a check", func() bool { return first() != "" })
	checked := first()
	lists := func() (n int) {
		for _, r := range s.Fake.Requests() {
			if r.Method == http.MethodGet && strings.HasPrefix(r.Path, "/v1/nodes?") || r.Path == "/v1/nodes" ||
				r.Path == "/v1/nodes/detail" {
				n++
			}
		}
		return n
	}
	before := lists()
	site.Until(t, "polls", func() bool { return lists() >= before+5 })
	for _, node := range nodes {
		if verbs := site.Verbs(s, node); node != checked && len(verbs) > 0 {
			t.Errorf("the second machine was %v while the first one was checked", verbs)
		}
	}
	p.Open()
	if output := <-ended; !strings.Contains(output, "2 added") {
		t.Error(output)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestFakeDeployment_readyCheckOverHTTP(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "u" || password != "s3cret" || r.URL.RawQuery != "token=hunter2" {
			w.WriteHeader(http.StatusForbidden)
		}
		fmt.Fprint(w, "all is ok")
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that fail
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	url := strings.Replace(server.URL, "https://", "https://u:s3cret@", 1) + "/health?token=hunter2"
	config := func(settings string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"),
			fmt.Sprintf("ready_check = {\n    timeout = %q\n    http = {\n      url = %q\n      %s\n    }\n  }", soon, url, settings))
	}
	trusted := fmt.Sprintf("cacert_file = %q\n", ca)
	w := acctest.NewWorkspace(t, config(trusted))
	acctest.Fails(t, w, []string{"plan"}, "Certificates cannot be read", "no such file")
	if err := os.WriteFile(ca, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	acctest.Fails(t, w, []string{"plan"}, "has no certificate in PEM format")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	for settings, want := range map[string]string{
		"":                                  "its certificate is signed by an unknown authority",
		trusted + "status_codes = [204]":    "HTTP status 200, wanted: 204",
		trusted + `contains = "everything"`: "the answer does not contain the text in ready_check.http.contains",
	} {
		w.Configure(config(settings))
		// the plan shows the configuration
		_, said, _ := strings.Cut(acctest.Fails(t, w, acctest.Apply(), want, server.URL+" did not answer as wanted"), "Error:")
		acctest.NeverMention(t, said, "hunter2", "s3cret", "/health", "everything")
		_, read := s.Call(http.MethodGet, "nodes/"+node, nil)
		if note := fmt.Sprint(read["extra"]); !strings.Contains(note, server.URL) || strings.Contains(note, "health") {
			t.Errorf("the note is %s", note)
		}
	}
	w.Configure(config(trusted + "status_codes = [200, 204]\ncontains = \"ok\""))
	w.Must("apply", "-auto-approve")
	wantReady(t, w, true, false)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}
