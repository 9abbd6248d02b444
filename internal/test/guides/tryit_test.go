package guides_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/seed"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

const root = "../../.."

var (
	shellBlock = regexp.MustCompile("(?s)```shell\n(.*?)```")
	stepTime   = regexp.MustCompile(`-step-time \w+`)
	untilIdle  = regexp.MustCompile(`--until-idle \w+`)
)

// seedRack adds the machines of the guide Try it.
func seedRack(t *testing.T, s *site.Site) {
	t.Helper()
	var records seed.Seed
	for _, file := range []string{"nodes.json", "ports.json"} {
		if err := records.Read(file, []byte(read(t, guides+"/try-it/rack/"+file))); err != nil {
			t.Fatal(err)
		}
	}
	if err := records.Settle(); err != nil {
		t.Fatal(err)
	}
	s.Fake.AddSeed(&records)
	if len(records.Notes) > 0 {
		t.Errorf("the fake changes %q", records.Notes)
	}
}

// runAgents lets the agents of all machines run, as fakeironic -agents does.
func runAgents(_ *testing.T, s *site.Site) {
	s.Fake.FastTrack = true
	for _, node := range s.Fake.Nodes() {
		s.Fake.RunAgent(node.UUID, true)
	}
}

// ran is a command of the page that has run.
type ran struct {
	command, output string
	code            int
}

// tried says what commands of the page say, in its order. Commands that are not here must only succeed.
var tried = []struct {
	begins string
	code   int
	says   string
}{
	{"terraform plan", 0, "Plan: 1 to import, 4 to add, 1 to change, 0 to destroy."},
	{"metal watch", 0, "deploy failed"},
	{"terraform apply", 1, "Could not deploy node rack1-02"},
	{"metal show rack1-02", 0, "Input/output error"},
	{"metal history rack1-02", 0, "deploy.write_image failed"},
	{"terraform apply", 0, "0 added, 1 changed, 0 destroyed"},
	{"terraform plan -var image=debian-13", 0, "Plan: 0 to add, 2 to change, 0 to destroy."},
	{"terraform destroy", 0, "5 destroyed"},
	{"metal show rack1-04", 0, "active, since"},
	{"terraform apply", 1, "The conductor cannot reach the BMC."},
	{"terraform apply", 0, "1 added, 0 changed, 1 destroyed"},
	{"terraform destroy", 0, "1 destroyed"},
	{"terraform apply", 0, "3 imported, 4 added, 3 changed, 0 destroyed"},
	{"terraform plan", 0, "No changes."},
	{"terraform destroy", 0, "7 destroyed"},
}

// TestFakeExamples_tryIt runs all commands of the guide Try it, in its order and in one shell, with the programs that they name.
func TestFakeExamples_tryIt(t *testing.T) {
	t.Parallel()
	site.SkipUnlessAsked(t)
	var commands []string
	for _, block := range shellBlock.FindAllStringSubmatch(read(t, root+"/templates/guides/try-it.md.tmpl"), -1) {
		commands = append(commands, strings.Split(strings.TrimSpace(block[1]), "\n")...)
	}
	next := 0
	for _, r := range runPage(t, commands) {
		want := 0
		if next < len(tried) && strings.HasPrefix(r.command, tried[next].begins) {
			want = tried[next].code
			acctest.Mention(t, r.output, tried[next].says)
			next++
		}
		if r.code != want {
			t.Errorf("%s: exit code %d, want %d\n%s", r.command, r.code, want, r.output)
		}
	}
	if next < len(tried) {
		t.Errorf("the page has no further command %q, which says %q", tried[next].begins, tried[next].says)
	}
}

// TestFakeExamples_seedOfAManagedSite: on a fake that is seeded with a site that Terraform manages, the plan with a copy of the state is
// empty.
func TestFakeExamples_seedOfAManagedSite(t *testing.T) {
	t.Parallel()
	before, after := site.StartFake(t, nil), site.StartFake(t, nil)
	w := acctest.NewWorkspace(t, "")
	write(t, w.Dir+"/main.tf", strings.Replace(read(t, guides+"/index/main.tf"), defaultEndpoint, before.Endpoint, 1))
	w.Setenv("TF_VAR_bmc_password", "x")
	w.Must("apply", "-auto-approve")
	var records seed.Seed
	for _, path := range []string{"nodes/detail", "ports/detail", "allocations"} {
		document, err := json.Marshal(before.Must(http.MethodGet, path, nil))
		if err == nil {
			err = records.Read(path, document)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := records.Settle(); err != nil {
		t.Fatal(err)
	}
	after.Fake.AddSeed(&records)
	write(t, w.Dir+"/main.tf", strings.Replace(read(t, w.Dir+"/main.tf"), before.Endpoint, after.Endpoint, 1))
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
	if left := after.Fake.Nodes(); len(left) > 0 || len(records.Notes) > 0 {
		t.Errorf("left: %v; the notes are %q", left, records.Notes)
	}
}

// runPage runs commands one after the other in a shell whose programs are those of this repository.
func runPage(t *testing.T, commands []string) (all []ran) {
	t.Helper()
	dir := t.TempDir()
	script := exec.CommandContext(t.Context(), "bash", "-c", scriptOf(t, commands))
	script.Dir, script.Env, script.WaitDelay = dir, newcomer(t, dir), 10*time.Second
	if output, err := script.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	for i, command := range commands {
		r := ran{command: command, code: -1} // if it did not run
		output, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%d.out", i)))
		if err == nil {
			r.output = string(output)
			_, err = fmt.Sscan(read(t, filepath.Join(dir, fmt.Sprintf("%d.code", i))), &r.code)
		}
		if err != nil {
			t.Errorf("%s: %v", command, err)
		}
		all = append(all, r)
	}
	return all
}

// scriptOf returns the script of commands. Each writes its output and its exit code into files. The fake takes a free port and is quicker.
// What the page runs in a second terminal runs in the background, until the script ends: on a busy machine, Terraform may begin too late
// for it.
func scriptOf(t *testing.T, commands []string) string {
	t.Helper()
	const address = "127.0.0.1:6385"
	script := "OUT=$PWD\ntrap 'kill $(jobs -p) $(cat $OUT/watch) 2>/dev/null' EXIT\n"
	for i, command := range commands {
		output := fmt.Sprintf(`$OUT/%d.out`, i)
		switch program, _, _ := strings.Cut(command, " "); {
		case program == "fakeironic":
			if !strings.Contains(command, "-listen "+address) {
				t.Errorf("not at %s: %s", address, command)
			}
			quick := stepTime.ReplaceAllString(strings.Replace(command, address, "127.0.0.1:0", 1), "-step-time 500ms")
			script += fmt.Sprintf("%s >%s 2>&1 &\nuntil grep -q http %[2]s; do kill -0 $! || exit 1; sleep 0.05; done\nexport "+
				"METAL_ENDPOINT=$(cat %[2]s)\ntrue", strings.TrimSuffix(quick, "&"), output)
		case command == "export METAL_ENDPOINT=http://"+address:
			script += "true >" + output
		case strings.HasPrefix(command, "metal watch "):
			script += fmt.Sprintf("( %s >%s 2>&1 & echo $! >$OUT/watch ); true",
				untilIdle.ReplaceAllString(command, "--until-idle 1h"), output)
		case strings.HasPrefix(command, "kill "):
			script += fmt.Sprintf("{ %s && wait; } >%s 2>&1; true", command, output)
		default:
			script += fmt.Sprintf("{ %s\n} >%s 2>&1", command, output)
		}
		script += fmt.Sprintf("\necho $? >$OUT/%d.code\n", i)
	}
	return script
}

// newcomer returns the environment of a user who has nothing but a CLI: the programs of this repository, and stand-ins for what needs a
// network.
func newcomer(t *testing.T, dir string) []string {
	t.Helper()
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	cli, err := exec.LookPath(cmp.Or(os.Getenv("TF_ACC_TERRAFORM_PATH"), "terraform"))
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "programs")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin+"/", ".", "./cmd/metal", "./cmd/fakeironic")
	build.Dir = absolute
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for _, registry := range []string{"registry.terraform.io", "registry.opentofu.org"} {
		mirror := filepath.Join(dir, "mirror", registry, "terraform-provider-metal/metal/0.1.0", runtime.GOOS+"_"+runtime.GOARCH)
		err = errors.Join(err, os.MkdirAll(mirror, 0o700), os.Symlink(bin+"/terraform-provider-metal",
			mirror+"/terraform-provider-metal_v0.1.0"))
	}
	if err := errors.Join(err, os.Symlink(cli, bin+"/terraform")); err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"git": `mkdir -p terraform-provider-metal/examples/guides && cp -r ` + absolute +
			`/examples/guides/try-it terraform-provider-metal/examples/guides`,
		"make": `grep "^$1:" ` + absolute + `/GNUmakefile`,
		"baremetal": `[ "$2 $3 $4 $5 $6 $7" = "list --long --limit 0 -f json" ] && cat ` + absolute +
			`/examples/guides/try-it/rack/$1s.json`,
	} {
		write(t, filepath.Join(bin, name), "#!/bin/sh\n"+script+"\n")
		if err := os.Chmod(filepath.Join(bin, name), 0o700); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}
	write(t, dir+"/cli.rc", fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", dir+"/mirror"))
	return []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + dir, "TF_CLI_CONFIG_FILE=" + dir + "/cli.rc",
		"TF_CLI_ARGS=-no-color", "CHECKPOINT_DISABLE=1",
	}
}
