// Package acctest runs a configuration for an acceptance test, in the test process or with a CLI, and says what it printed and stored. The
// site on which it runs is in acctest/site, the BMCs are in acctest/bmc. Only tests import it.
package acctest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/core"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/schema"
)

// Workspace is a directory with a configuration and its state. Run, Must and Plan do in the test process what Terraform does, which takes a
// twentieth of the time (internal/test/terraformtest). What that cannot do, such as provisioners, "test" and "state mv", a real CLI does,
// with the provider in the test process. Start does the same in the background, so that a test can interrupt or kill it. After RealCLI, it
// runs a CLI and the provider's binary, and so do all calls after OwnProcess, and after Setenv of a variable that a CLI reads: working
// directory and log belong to a process.
type Workspace struct {
	Dir      string
	Patience time.Duration // after which a CLI is killed; zero means five minutes

	t          *testing.T
	core       *terraformtest.Workspace
	env        []string // of the CLI
	realCLI    bool     // Run, Must and Plan run a CLI, too
	ownProcess bool
	standsFor  []string
	getsFirst  bool // a CLI has not got the modules yet
}

// cliVariable with the value "all" makes all workspaces run a CLI, so that the tests prove that internal/test/terraformtest agrees with it.
const cliVariable = "METAL_ACC_CLI"

// metal is the provider for internal/test/terraformtest.
var metal = &schema.Provider{Name: "metal", Source: provider.Address, Start: func(environ []string, over http.RoundTripper) schema.Server {
	return provider.NewServerIn("test", environ, over)
}}

// build returns the directory of the provider's binary. It builds it once for a test process, unless METAL_ACC_BINARY is such a directory.
var build = sync.OnceValues(func() (string, error) {
	if built := os.Getenv("METAL_ACC_BINARY"); built != "" {
		return built, nil
	}
	dir, err := os.MkdirTemp("", "metal-acc-")
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-o",
		filepath.Join(dir, "terraform-provider-metal"), //nolint:noctx // part of the test binary's start
		"github.com/terraform-provider-metal/terraform-provider-metal").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the provider: %w\n%s", err, out)
	}
	return dir, nil
})

// NewWorkspace returns a workspace with a configuration, to which it adds the terraform block. A CLI, where one runs, is
// TF_ACC_TERRAFORM_PATH or terraform in PATH. NewWorkspace skips the test unless TF_ACC is set.
func NewWorkspace(t *testing.T, config string) *Workspace {
	t.Helper()
	w := OpenWorkspace(t, t.TempDir())
	w.Configure(config)
	return w
}

// OpenWorkspace is NewWorkspace for a directory that has a configuration.
func OpenWorkspace(t *testing.T, dir string) *Workspace {
	t.Helper()
	site.SkipUnlessAsked(t)
	w := &Workspace{Dir: dir, t: t, realCLI: os.Getenv(cliVariable) == "all"}
	w.core = &terraformtest.Workspace{Dir: dir, Providers: schema.Providers{metal, schema.Builtin}, Variables: map[string]string{}}
	for _, variable := range os.Environ() {
		owned := func(prefix string) bool { return strings.HasPrefix(variable, prefix) }
		if !slices.ContainsFunc([]string{"TF_", "METAL_", "OS_", "ONEVIEW_"}, owned) {
			w.env = append(w.env, variable)
		}
	}
	w.env = append(w.env, "TF_CLI_ARGS=-no-color", "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")
	return w
}

// cliPath returns the path of the CLI.
func cliPath(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("TF_ACC_TERRAFORM_PATH"); path != "" {
		return path
	}
	path, err := exec.LookPath("terraform")
	if err != nil {
		t.Fatal("no CLI: set TF_ACC_TERRAFORM_PATH")
	}
	return path
}

// SkipBelow skips a test of a feature that the CLI lacks. terraform and tofu are the minor versions that have it; 0: none has.
func SkipBelow(t *testing.T, feature string, terraform, tofu int) {
	t.Helper()
	site.SkipUnlessAsked(t)
	name, minor := cliVersion(t)
	if since := map[bool]int{false: terraform, true: tofu}[name == "OpenTofu"]; since == 0 || minor < since {
		t.Skipf("%s 1.%d has no %s", name, minor, feature)
	}
}

// IsOpenTofu reports whether the CLI is OpenTofu.
func IsOpenTofu(t *testing.T) bool {
	t.Helper()
	name, _ := cliVersion(t)
	return name == "OpenTofu"
}

// cliVersion returns the name and the minor version of the CLI.
func cliVersion(t *testing.T) (name string, minor int) {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), cliPath(t), "version").Output()
	if err == nil {
		_, err = fmt.Sscanf(string(text), "%s v1.%d", &name, &minor)
	}
	if err != nil {
		t.Fatal(err)
	}
	return name, minor
}

// Configure replaces the configuration.
func (w *Workspace) Configure(config string) {
	w.t.Helper()
	w.write(w.main(),
		"terraform {\n  required_providers {\n    metal = {\n      source = \"terraform-provider-metal/metal\"\n    }\n  }\n}\n"+config)
}

// main is the file of the configuration.
func (w *Workspace) main() string { return filepath.Join(w.Dir, "main.tf") }

// GenerateConfig makes the CLI generate the configuration of the resources in import blocks, and returns it. It fails the test if
// that configuration plans a change. While the CLI generates, the import blocks name the provider: Terraform 1.16.0 to 1.16.2 do not
// read its source in required_providers otherwise (hashicorp/terraform#39144). A CLI refuses such a block once the resource is
// configured.
func GenerateConfig(t *testing.T, w *Workspace) string {
	t.Helper()
	config, err := os.ReadFile(w.main())
	if err != nil {
		t.Fatal(err)
	}
	w.write(w.main(), strings.ReplaceAll(string(config), "import {\n", "import {\n  provider = metal\n"))
	output, code := w.Run("plan", "-generate-config-out=generated.tf")
	w.write(w.main(), string(config))
	generated, err := os.ReadFile(filepath.Join(w.Dir, "generated.tf"))
	if code != 0 || err != nil {
		t.Fatalf("plan -generate-config-out: exit code %d, %v\n%s\n%s", code, err, output, generated)
	}
	if output := w.Must("plan"); !strings.Contains(output, "0 to add, 0 to change, 0 to destroy") {
		t.Fatalf("the generated configuration plans changes:\n%s\n%s", output, generated)
	}
	return string(generated)
}

func (w *Workspace) write(name, content string) {
	w.t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// RealCLI makes Run, Must and Plan run a CLI, for what only a CLI shows, such as how it prints a plan.
func (w *Workspace) RealCLI() { w.realCLI = true }

// OwnProcess makes all calls run the provider's binary, in the working directory of the CLI.
func (w *Workspace) OwnProcess() { w.ownProcess = true }

// StandFor makes the provider of Run, Must and Plan answer for another provider, too, such as "namespace/type". A CLI asks the providers
// that a state names for their schemas, even if it moves their resources away.
func (w *Workspace) StandFor(provider string) {
	w.standsFor = append(w.standsFor, "registry.terraform.io/"+provider, "registry.opentofu.org/"+provider)
}

// SetState writes the state file.
func (w *Workspace) SetState(content string) {
	w.t.Helper()
	w.write(filepath.Join(w.Dir, "terraform.tfstate"), content)
}

// Setenv adds a variable for the CLI and the provider. Values of input variables (TF_VAR_NAME), and variables that only the provider reads,
// need no process of its own.
func (w *Workspace) Setenv(name, value string) {
	w.env = append(w.env, name+"="+value)
	variable, isInput := strings.CutPrefix(name, "TF_VAR_")
	switch {
	case isInput:
		w.core.Variables[variable] = value
	case isProviders(name):
		w.core.Environ = w.env
	default:
		w.OwnProcess()
	}
}

// isProviders reports whether the provider reads a variable, and the CLI does not.
func isProviders(variable string) bool {
	return slices.ContainsFunc([]string{"METAL_", "OS_", "ONEVIEW_", "IRONIC_", "MAX_CONCURRENT_"}, func(prefix string) bool {
		return strings.HasPrefix(variable, prefix)
	})
}

// Trace makes the provider of a CLI log at level TRACE, for InterruptProvider.
func (w *Workspace) Trace() {
	w.env = append(w.env, "TF_LOG_PROVIDER=TRACE", "TF_LOG_PATH="+filepath.Join(w.Dir, "trace.log"))
}

// trace returns the log after Trace.
func (w *Workspace) trace() string {
	content, _ := os.ReadFile(filepath.Join(w.Dir, "trace.log")) // a missing log is an empty one
	return string(content)
}

// Run runs the CLI and returns its output without colours and its exit code. The CLI is killed after Patience.
func (w *Workspace) Run(args ...string) (output string, code int) {
	w.t.Helper()
	if args[0] == "get" && len(args) == 1 {
		w.getsFirst = true // internal/test/terraformtest reads modules where they are
		return "", 0
	}
	if w.ownProcess {
		return w.Start(args...).Wait()
	}
	if !w.realCLI {
		output, code, err := w.inProcess(args)
		if err == nil {
			return output, code
		}
		if !errors.Is(err, core.ErrUnsupported) {
			w.t.Fatalf("%s: %v", strings.Join(args, " "), err)
		}
		w.t.Logf("%s: %v", strings.Join(args, " "), err)
	}
	attach, end := serve(w.t, w.core.Environ, w.standsFor)
	defer end()
	return w.start(args, "TF_CLI_CONFIG_FILE="+os.DevNull, "TF_REATTACH_PROVIDERS="+attach).Wait()
}

// inProcess does in this process what Terraform does.
func (w *Workspace) inProcess(args []string) (output string, code int, err error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), cmp.Or(w.Patience, 5*time.Minute))
	defer cancel()
	return w.core.Run(ctx, args...)
}

// Must is Run, and fails the test on any exit code but 0.
func (w *Workspace) Must(args ...string) string {
	w.t.Helper()
	output, code := w.Run(args...)
	if code != 0 {
		w.t.Fatalf("%s: exit code %d\n%s", strings.Join(args, " "), code, output)
	}
	return output
}

// Plan runs a plan and reports whether it proposes changes.
func (w *Workspace) Plan() (output string, changes bool) {
	w.t.Helper()
	output, code := w.Run("plan", "-detailed-exitcode")
	if code == 1 {
		w.t.Fatalf("plan failed\n%s", output)
	}
	return output, code == 2
}

// Change is the planned change of a resource, as in the JSON form of a saved plan.
type Change struct {
	Actions       []string
	Before, After map[string]any
	Unknown       map[string]any `json:"after_unknown"`
}

// Save saves a plan in the file "saved", and returns its changes by address, as "show -json" prints them.
func (w *Workspace) Save(args ...string) map[string]Change {
	w.t.Helper()
	w.Must(append([]string{"plan", "-out=saved"}, args...)...)
	var shown struct {
		Changes []struct {
			Address string
			Change  Change
		} `json:"resource_changes"`
	}
	text := w.Must("show", "-json", "saved")
	if err := json.Unmarshal([]byte(text), &shown); err != nil {
		w.t.Fatalf("show -json: %v\n%s", err, text)
	}
	changes := map[string]Change{}
	for _, c := range shown.Changes {
		changes[c.Address] = c.Change
	}
	return changes
}

// Running is a command at work: a CLI, which has a process group with its provider, or what stands for one in the test process.
type Running struct {
	w      *Workspace
	cmd    *exec.Cmd // nil: in the test process
	output bytes.Buffer

	process *terraformtest.Process
	stop    context.CancelFunc
	ended   chan struct{}
	code    int
}

// Start starts a command.
func (w *Workspace) Start(args ...string) *Running {
	w.t.Helper()
	if !w.realCLI && !w.ownProcess {
		err := w.core.Check(args...)
		if err == nil {
			return w.begin(args)
		}
		w.t.Logf("%s: %v", strings.Join(args, " "), err)
	}
	binary, err := build()
	if err != nil {
		w.t.Fatal(err)
	}
	rc := filepath.Join(w.Dir, "cli.rc")
	w.write(rc, fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"terraform-provider-metal/metal\" = %q\n  }\n "+
		" direct {}\n}\n", binary))
	return w.start(args, "TF_CLI_CONFIG_FILE="+rc)
}

// begin starts a command in the test process.
func (w *Workspace) begin(args []string) *Running {
	ctx, stop := context.WithTimeout(w.t.Context(), cmp.Or(w.Patience, 5*time.Minute))
	r := &Running{w: w, process: terraformtest.NewProcess(), stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		defer stop()
		output, code, err := w.core.RunIn(ctx, r.process, args...)
		if err != nil {
			w.t.Errorf("%s: %v", strings.Join(args, " "), err)
		}
		r.output.WriteString(output)
		r.code = code
	}()
	w.t.Cleanup(func() {
		r.process.Kill()
		<-r.ended
	})
	return r
}

// start starts the CLI with further variables.
func (w *Workspace) start(args []string, env ...string) *Running {
	w.t.Helper()
	if w.getsFirst {
		w.getsFirst = false
		if output, code := w.start([]string{"get"}, env...).Wait(); code != 0 {
			w.t.Fatalf("get: exit code %d\n%s", code, output)
		}
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), cmp.Or(w.Patience, 5*time.Minute))
	w.t.Cleanup(cancel)
	r := &Running{w: w, cmd: exec.CommandContext(ctx, cliPath(w.t), args...)}
	r.cmd.Dir, r.cmd.Env, r.cmd.Stdout, r.cmd.Stderr = w.Dir, slices.Concat(w.env, env), &r.output, &r.output
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := r.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// Wait waits for the CLI to end.
func (r *Running) Wait() (output string, code int) {
	r.w.t.Helper()
	if r.cmd == nil {
		<-r.ended
		return r.output.String(), r.code
	}
	_ = r.cmd.Wait() // the exit code has the result
	return r.output.String(), r.cmd.ProcessState.ExitCode()
}

// Interrupt sends SIGINT to the CLI and its providers, as Ctrl-C does.
func (r *Running) Interrupt() {
	if r.cmd == nil {
		r.stop()
		return
	}
	r.signal(syscall.SIGINT)
}

// InterruptProvider is Interrupt for the hooks of a fake: it waits until the provider has ended its contexts. It reads that in
// the log, so the workspace needs Trace.
func (r *Running) InterruptProvider() {
	r.w.t.Helper()
	before := len(r.w.trace())
	if r.Interrupt(); r.cmd == nil {
		return
	}
	if !site.InTime(func() bool { return strings.Contains(r.w.trace()[before:], "Closed all our contexts") }) {
		r.w.t.Error("waited three minutes for the provider to end its contexts")
	}
}

// Kill sends SIGKILL to the CLI and its providers.
func (r *Running) Kill() {
	if r.cmd == nil {
		r.process.Kill()
		return
	}
	r.signal(syscall.SIGKILL)
}

func (r *Running) signal(s syscall.Signal) {
	r.w.t.Helper()
	if err := syscall.Kill(-r.cmd.Process.Pid, s); err != nil {
		r.w.t.Fatal(err)
	}
}

// State returns the content of the state file and its backups.
func (w *Workspace) State() string {
	w.t.Helper()
	var all strings.Builder
	names, err := filepath.Glob(filepath.Join(w.Dir, "terraform.tfstate*"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			w.t.Fatal(err)
		}
		all.Write(content)
	}
	return all.String()
}
