package simulate_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/forecast"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/forecast/planned"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/forecast/survey"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/schema"
)

// foreseen is a site whose applies are forecast.
type foreseen struct {
	fake      *fakeironic.Server
	terraform *terraformtest.Workspace
	random    *rand.Rand
	limit     int
	places    int
	stuck     time.Duration // stuck_after
	rollout   string        // HCL of the first deployments; "": none

	one  sync.Mutex // of requests at a time
	dead string     // the UUID of a node whose operations fail at once; "": none
}

// sizes are how many instances the blocks of a configuration have.
type sizes struct {
	changed  int    // deployments that run
	how      string // change of them: rebuild, replace or restart
	removed  int    // deployments that are destroyed
	made     int    // hosts that are made, each with a deployment
	deployed int    // deployments on nodes that exist
	started  int    // hosts that are switched on
}

func newForeseen(t *testing.T, seed uint64, nodes int) *foreseen {
	t.Helper()
	f := &foreseen{fake: &fakeironic.Server{}, random: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // a test wants to repeat it
	f.fake.AddFleet(nodes, "baremetal")
	for i := range nodes {
		f.fake.Set(fleetNode(i), "deploy_interface", "direct")
	}
	transport := ironictest.Transport(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host == imageHost {
			return (&fault{with: &fakeironic.Rejection{Status: http.StatusOK}}).answer(r)
		}
		return f.answer(r)
	})
	metal := &schema.Provider{Name: "metal", Source: provider.Address, Start: func([]string, http.RoundTripper) schema.Server {
		return provider.NewServerOver("test", transport)
	}}
	f.terraform = &terraformtest.Workspace{
		Dir: t.TempDir(), Providers: schema.Providers{metal, schema.Builtin},
		Variables: map[string]string{}, Environ: []string{},
	}
	f.limit, f.places = 1+f.below(5), 1+f.below(9)
	f.fake.StepTime, f.stuck = time.Duration(40+f.below(120))*time.Second, 45*time.Minute
	return f
}

// answer answers a request to Ironic.
func (f *foreseen) answer(r *http.Request) (*http.Response, error) {
	f.one.Lock()
	defer f.one.Unlock()
	if f.dead != "" && r.Method == http.MethodPut && strings.Contains(r.URL.Path, f.dead) {
		usual := f.fake.StepTime
		f.fake.StepTime = 0
		defer func() { f.fake.StepTime = usual }()
	}
	return f.fake.RoundTrip(r)
}

func (f *foreseen) below(n int) int { return f.random.IntN(n) }

func fleetNode(i int) string { return fmt.Sprintf("node-%03d", i) }

// configure writes the configuration before or after the change.
func (f *foreseen) configure(t *testing.T, n sizes, after bool) {
	t.Helper()
	version, trigger, onChange := "v1", "a", "rebuild"
	if after {
		trigger = "b"
		if n.how != "restart" {
			version = "v2"
		}
		if n.how == "replace" {
			onChange = "replace"
		}
	}
	image := func(version string) string {
		return fmt.Sprintf("image = {\n url = \"http://%s/%s.qcow2\"\n checksum = %q\n disk_format = \"qcow2\"\n }\n", imageHost, version,
			acctest.Checksum(version))
	}
	block := func(name string, from, count int, settings string) string {
		return fmt.Sprintf("resource \"metal_deployment\" %q {\n count = %d\n node_id = format(\"node-%%03d\", %d + count.index)\n %s\n}\n",
			name, count, from, settings)
	}
	text := fmt.Sprintf("terraform {\n required_providers {\n metal = {\n source = \"terraform-provider-metal/metal\"\n }\n "+
		"}\n}\nprovider \"metal\" {\n endpoint = \"http://%s\"\n poll_interval = \"10s\"\n provisioning_limit = { max_concurrent = %d, "+
		"stuck_after = %q }\n}\n",
		siteHost, f.limit, f.stuck)
	power := map[bool]string{false: "off", true: "on"}[after]
	text += fmt.Sprintf("resource \"metal_host\" \"started\" {\n count = %d\n name = \"started-${count.index}\"\n driver = "+
		"\"fake-hardware\"\n resource_class = \"baremetal\"\n power_state = %q\n}\n", n.started, power)
	text += block("changed", 0, n.changed, image(version)+fmt.Sprintf("on_change = %q\n restart_triggers = { x = %q }\n %s", onChange,
		trigger, f.rollout))
	if !after {
		text += block("removed", n.changed, n.removed, image("v1"))
	} else {
		text += block("deployed", n.changed+n.removed, n.deployed, image("v3"))
		text += fmt.Sprintf("resource \"metal_host\" \"made\" {\n count = %d\n name = \"made-${count.index}\"\n driver "+
			"= \"fake-hardware\"\n resource_class = \"baremetal\"\n hardware_interfaces = { deploy = \"direct\" }\n target_state = "+
			"\"available\"\n}\n", n.made)
		text += fmt.Sprintf("resource \"metal_deployment\" \"made\" {\n count = %d\n node_id = metal_host.made[count.index].id\n %s\n}\n",
			n.made, image("v3"))
	}
	if err := os.WriteFile(filepath.Join(f.terraform.Dir, "main.tf"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// configuration is what "show -json" says of the configuration, and terraformtest does not print.
func (f *foreseen) configuration(n sizes) object {
	block := func(name, node string) object {
		return object{
			"address": "metal_deployment." + name, "mode": "managed", "type": "metal_deployment", "name": name,
			"provider_config_key": "metal",
			"expressions":         object{"node_id": object{"references": []string{node, "count.index"}}},
			"count_expression":    object{"constant_value": n.made},
		}
	}
	host := block("made", "count.index")
	host["address"], host["type"] = "metal_host.made", "metal_host"
	started := block("started", "count.index")
	started["address"], started["type"] = "metal_host.started", "metal_host"
	return object{
		"provider_config": object{"metal": object{"name": "metal", "expressions": object{
			"provisioning_limit": object{"constant_value": object{"max_concurrent": f.limit, "stuck_after": f.stuck.String()}},
		}}},
		"root_module": object{"resources": []any{
			block("changed", "count.index"), block("deployed", "count.index"),
			block("made", "metal_host.made"), host, started,
		}},
	}
}

// terraformOK runs a command that must succeed.
func (f *foreseen) terraformOK(t *testing.T, args ...string) string {
	t.Helper()
	output, code, err := f.terraform.Run(t.Context(), args...)
	if err != nil || code != 0 {
		t.Fatalf("%v: %v %s", args, err, output)
	}
	return output
}

// times measures how long operations take, on one machine of a site of its own.
func (f *foreseen) times(t *testing.T) forecast.Times {
	t.Helper()
	lab := newForeseen(t, 1, 1)
	lab.fake.StepTime = f.fake.StepTime
	in := map[string]time.Duration{}
	measure := func(do func()) {
		done := make(chan struct{})
		go func() { defer close(done); do() }()
		for ticks := time.NewTicker(time.Second); ; {
			select {
			case <-ticks.C:
				node, _ := lab.fake.Node(fleetNode(0))
				in[node.ProvisionState] += time.Second
			case <-done:
				ticks.Stop()
				return
			}
		}
	}
	lab.configure(t, sizes{changed: 1}, false)
	measure(func() { lab.terraformOK(t, "apply", "-auto-approve") })
	measure(func() { lab.terraformOK(t, "destroy", "-auto-approve") })
	return forecast.Times{
		forecast.Deploy: {"": in["deploying"] + in["wait call-back"]}, forecast.Undeploy: {"": in["deleting"]},
		forecast.Clean:  {"": in["cleaning"] + in["clean wait"]},
		forecast.Verify: {"": f.fake.StepTime}, forecast.Restart: {"": f.fake.StepTime}, forecast.PowerOn: {"": f.fake.StepTime},
	}
}

// begin applies the configuration before the change, and measures how long operations take.
func (f *foreseen) begin(t *testing.T, n sizes) forecast.Times {
	t.Helper()
	times := f.times(t)
	f.configure(t, n, false)
	f.terraformOK(t, "apply", "-auto-approve")
	<-time.After(2 * time.Hour)
	return times
}

// foresee plans the change, and returns what a forecast of it depends on.
func (f *foreseen) foresee(t *testing.T, n sizes, times forecast.Times) forecast.Input {
	t.Helper()
	f.configure(t, n, true)
	f.terraformOK(t, "plan", "-out=saved", fmt.Sprintf("-parallelism=%d", f.places))
	var shown object
	if err := json.Unmarshal([]byte(f.terraformOK(t, "show", "-json", "saved")), &shown); err != nil {
		t.Fatal(err)
	}
	shown["configuration"] = f.configuration(n)
	text, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	work, err := planned.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	found, err := survey.Read(t.Context(), machine.New(machine.Config{Config: api.Config{
		Endpoint: "http://" + siteHost, Auth: api.AuthNone,
		Transport: f.fake,
	}}))
	if err == nil {
		err = found.Complete(work.Steps)
	}
	if err != nil {
		t.Fatal(err)
	}
	return forecast.Input{
		Steps: work.Steps, Site: found.Site, Settings: forecast.Settings{Limit: work.Provider.Limit, Parallelism: f.places}, Times: times,
		Poll: 10 * time.Second,
	}
}

// apply applies the saved plan, and returns the exit code, how long it took, and the order in which Terraform began with the steps.
func (f *foreseen) apply(t *testing.T) (code int, took time.Duration, order []string) {
	t.Helper()
	begun := time.Now()
	output, code, err := f.terraform.Run(t.Context(), "apply", "saved")
	took = time.Since(begun)
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, line := range regexp.MustCompile(`(?m)^(\S+): (Creating|Modifying|Destroying)\.\.\.`).FindAllStringSubmatch(output, -1) {
		if line[2] == "Destroying" {
			line[1] = "-" + line[1]
		}
		order = append(order, line[1])
	}
	return code, took, order
}

// identify fills in the UUIDs of machines that the apply has made: of two that begin to wait at the same moment, that of the lower one gets
// a slot first.
func (f *foreseen) identify(steps []forecast.Step) {
	for i := range steps {
		if m := steps[i].Machine; m != nil && m.New {
			node, _ := f.fake.Node(m.Name)
			m.ID = node.UUID
		}
	}
}

// choose chooses a limit, a rollout and a change.
func (f *foreseen) choose() (n sizes) {
	f.chooseRollout()
	n = sizes{
		changed: 1 + f.below(8), how: []string{"rebuild", "restart", "replace"}[f.below(3)], removed: f.below(4), made: f.below(4),
		deployed: f.below(4), started: f.below(4),
	}
	if f.below(3) == 0 {
		f.stuck = f.fake.StepTime / 2
	}
	if n.how == "replace" {
		f.places = 20 // with fewer, it is chance which machines give up their places
	}
	return n
}

// isWithin reports whether an apply took as long as a forecast says, give or take 10 %.
func isWithin(took time.Duration, r *forecast.Result) bool {
	return took >= r.Fastest*9/10 && took <= r.Slowest*11/10
}

// made makes a forecast.
func made(t *testing.T, in forecast.Input) *forecast.Result {
	t.Helper()
	result, err := forecast.Make(in)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// chooseRollout chooses the rollout of the deployments that change.
func (f *foreseen) chooseRollout() {
	switch f.below(4) {
	case 0:
		f.rollout = fmt.Sprintf("rollout = { group = \"g\", max_unavailable = %d }", 1+f.below(3))
	case 1:
		f.rollout = fmt.Sprintf("rollout = { group = \"g\", max_unavailable = %d, canary = 1, pause = \"%ds\" }", 1+f.below(3),
			30+f.below(120))
	case 2:
		f.rollout = fmt.Sprintf("rollout = { canary = %d, max_failures = %d }", 1+f.below(2), 1+f.below(3))
	}
}

func tableOf(r *forecast.Result) string {
	var text strings.Builder
	r.Write(&text, nil)
	return text.String()
}
