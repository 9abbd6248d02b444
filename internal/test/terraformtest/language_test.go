package terraformtest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
)

// These tests run with the stand-in and, after METAL_ACC_CLI=all, with a CLI: both must agree.

// open returns a workspace with a configuration and further files.
func open(t *testing.T, config string, files map[string]string) *acctest.Workspace {
	t.Helper()
	w := acctest.NewWorkspace(t, config)
	for name, content := range files {
		name = filepath.Join(w.Dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(config, "module ") {
		w.Must("get")
	}
	return w
}

func TestFakeLanguage_functions(t *testing.T) {
	t.Parallel()
	expressions := map[string]string{ // by their values as JSON
		`cidrhost("192.0.2.0/24", 5)`:               `"192.0.2.5"`,
		`cidrhost("192.0.2.9/24", -2)`:              `"192.0.2.254"`,
		`cidrhost("2001:db8::/64", 256)`:            `"2001:db8::100"`,
		`can(cidrhost("192.0.2.0/30", 4))`:          `false`,
		`can(cidrhost("192.0.2.0/30", -5))`:         `false`,
		`can(cidrhost("192.0.2.0", 1))`:             `false`,
		`cidrsubnet("192.0.2.9/24", 4, 3)`:          `"192.0.2.48/28"`,
		`cidrsubnet("192.0.2.9/24", 0, 0)`:          `"192.0.2.0/24"`,
		`cidrsubnet("2001:db8::/32", 16, 255)`:      `"2001:db8:ff::/48"`,
		`can(cidrsubnet("192.0.2.0/24", 9, 0))`:     `false`,
		`can(cidrsubnet("192.0.2.0/24", 1, 2))`:     `false`,
		`replace("a/b", "/", ".")`:                  `"a.b"`,
		`replace("a1b-2", "/[0-9-]+(b?)/", "<$1>")`: `"a<b><>"`,
		`alltrue([])`:                                    `true`,
		`alltrue([true, "true"])`:                        `true`,
		`alltrue([true, false])`:                         `false`,
		`alltrue([null])`:                                `false`,
		`anytrue([])`:                                    `false`,
		`anytrue([false, true])`:                         `true`,
		`anytrue([null])`:                                `false`,
		`trim("--a-b-", "-")`:                            `"a-b"`,
		`strcontains("rack", "ac")`:                      `true`,
		`strcontains("rack", "x")`:                       `false`,
		`fileset("files", "*.txt")`:                      `["a.txt","b.txt"]`,
		`fileset("files", "*.none")`:                     `[]`,
		`filesha256("files/a.txt")`:                      `"ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"`,
		`yamldecode("a: [1, 2.5, x]")`:                   `{"a":[1,2.5,"x"]}`,
		`yamldecode("{a: ~, b: true}")`:                  `{"a":null,"b":true}`,
		`yamldecode("a: \"1\"\nb: {c: }")`:               `{"a":"1","b":{"c":null}}`,
		`yamldecode("[]")`:                               `[]`,
		`provider::metal::bmc("ipmi://192.0.2.13").host`: `"192.0.2.13"`,
	}
	w, names := outputs(t, expressions, map[string]string{"files/a.txt": "a", "files/b.txt": "b", "files/c.md": "c"})
	var got map[string]struct{ Value any }
	if err := json.Unmarshal([]byte(w.Must("output", "-json")), &got); err != nil {
		t.Fatal(err)
	}
	for expression, want := range expressions {
		var value any
		if err := json.Unmarshal([]byte(want), &value); err != nil {
			t.Fatal(err)
		}
		if is := got[names[expression]].Value; !reflect.DeepEqual(is, value) {
			t.Errorf("%s is %v, want %s", expression, is, want)
		}
	}
}

func TestFakeLanguage_outputs(t *testing.T) {
	t.Parallel()
	values := map[string]string{ // as "output" prints them, with one space between words
		`"x"`:                               `"x"`,
		`"x\ny"`:                            `<<EOT x y EOT`,
		`["x\ny"]`:                          `[ <<-EOT x y EOT, ]`,
		`1.5`:                               `1.5`,
		`[]`:                                `[]`,
		`["x", null]`:                       `[ "x", null, ]`,
		`{ a = 1, b = ["x"], c = {} }`:      `{ "a" = 1 "b" = [ "x", ] "c" = {} }`,
		`tolist([1])`:                       `tolist([ 1, ])`,
		`toset([])`:                         `toset([])`,
		`toset(["b", "a"])`:                 `toset([ "a", "b", ])`,
		`tomap({ "x.y" = true, z = null })`: `tomap({ "x.y" = true "z" = tobool(null) })`,
	}
	w, names := outputs(t, values, nil)
	for expression, want := range values {
		if got := strings.Join(strings.Fields(w.Must("output", names[expression])), " "); got != want {
			t.Errorf("%s prints %s, want %s", expression, got, want)
		}
	}
}

// outputs returns a workspace with an output for each expression, which it has applied, and the names of the outputs.
func outputs(t *testing.T, of, files map[string]string) (w *acctest.Workspace, names map[string]string) {
	t.Helper()
	var config strings.Builder
	names = map[string]string{}
	for expression := range of {
		name := fmt.Sprintf("o%d", len(names))
		names[expression] = name
		fmt.Fprintf(&config, "output %q {\n  value = %s\n}\n", name, expression)
	}
	w = open(t, config.String(), files)
	w.Must("apply", "-auto-approve")
	return w, names
}

// rack is a module with resources, a module below it, and variables and outputs between them.
var rack = map[string]string{
	"rack/main.tf": `
variable "names" {
  type = list(string)
}
variable "suffix" {
  type     = string
  default  = "x"
  nullable = false
}
resource "terraform_data" "machine" {
  for_each = toset(var.names)
  input    = "${each.key}-${var.suffix}"
}
module "switch" {
  source = "./switch"
  ports  = { for name, machine in terraform_data.machine : name => machine.output }
}
output "ports" {
  value = module.switch.ports
}
`,
	"rack/switch/main.tf": `
variable "ports" {}
resource "terraform_data" "ports" {
  input = var.ports
}
output "ports" {
  value = terraform_data.ports.output
}
output "dir" {
  value = path.module
}
`,
}

func TestFakeModules_haveVariablesOutputsAndAddresses(t *testing.T) {
	t.Parallel()
	w := open(t, `
module "rack" {
  source = "./rack"
  names  = ["a", "b.c"]
  suffix = null
}
resource "terraform_data" "after" {
  input = module.rack.ports
}
output "ports" {
  value = module.rack.ports
}
`, rack)
	changes := w.Save()
	for _, address := range []string{
		`module.rack.terraform_data.machine["a"]`, `module.rack.terraform_data.machine["b.c"]`,
		"module.rack.module.switch.terraform_data.ports", "terraform_data.after",
	} {
		if _, is := changes[address]; !is || len(changes) != 4 {
			t.Errorf("the plan has no %s, or more than four changes: %v", address, changes)
		}
	}
	acctest.Mention(t, w.Must("apply", "saved"), "Resources: 4 added, 0 changed, 0 destroyed", `"b.c" = "b.c-x"`)
	acctest.NoChanges(t, w)
	var shown struct {
		Values struct {
			Root module `json:"root_module"`
		}
	}
	if err := json.Unmarshal([]byte(w.Must("show", "-json")), &shown); err != nil {
		t.Fatal(err)
	}
	var got []string
	shown.Values.Root.list(&got)
	want := []string{
		": terraform_data.after", `module.rack: module.rack.terraform_data.machine["a"]`,
		`module.rack: module.rack.terraform_data.machine["b.c"]`,
		"module.rack.module.switch: module.rack.module.switch.terraform_data.ports",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("show -json has %q, want %q", got, want)
	}
	acctest.Mention(t, w.Must("state", "rm", "module.rack.module.switch.terraform_data.ports"),
		"Removed module.rack.module.switch.terraform_data.ports")
	acctest.Mention(t, w.Must("destroy", "-auto-approve", `-target=module.rack.terraform_data.machine["a"]`), "2 destroyed")
	acctest.Mention(t, w.Must("destroy", "-auto-approve"), "1 destroyed")
}

func TestFakeMoved_instancesAndResources(t *testing.T) {
	t.Parallel()
	before := "resource \"terraform_data\" \"one\" {\n  input = 1\n}\n" +
		"resource \"terraform_data\" \"many\" {\n  for_each = toset([\"a\", \"b\"])\n  input = each.key\n}\n"
	w := open(t, before, nil)
	w.Must(acctest.Apply()...)
	after := strings.NewReplacer(`"one"`, `"single"`, `"many"`, `"all"`, `"b"`, `"c"`).Replace(before)
	moved := func(from, to string) string { return "moved {\n  from = " + from + "\n  to   = " + to + "\n}\n" }
	moves := moved("terraform_data.one", "terraform_data.single") + moved("terraform_data.many", "terraform_data.all") +
		moved(`terraform_data.all["b"]`, `terraform_data.all["c"]`)
	w.Configure(before + moves)
	acctest.Fails(t, w, []string{"plan"}, "Moved object still exists")
	w.Configure(after + moves)
	acctest.Mention(t, w.Must("plan", "-out=saved"), "terraform_data.one has moved to terraform_data.single",
		`terraform_data.many["a"] has moved to terraform_data.all["a"]`, `terraform_data.all["c"] will be updated in-place`,
		`(moved from terraform_data.many["b"])`, "0 to add, 1 to change, 0 to destroy")
	acctest.Mention(t, w.Must("apply", "saved"), "0 added, 1 changed, 0 destroyed")
	acctest.NoChanges(t, w)
	w.Configure(after)
	acctest.NoChanges(t, w)
}

func TestFakeTaint_replacesUntilUntaint(t *testing.T) {
	t.Parallel()
	w := open(t, "resource \"terraform_data\" \"one\" {\n  input = 1\n}\n", nil)
	w.Must(acctest.Apply()...)
	acctest.Mention(t, w.Must("taint", "terraform_data.one"), "Resource instance terraform_data.one has been marked as tainted.")
	acctest.Mention(t, w.Must("plan"), "terraform_data.one is tainted, so ")
	acctest.Mention(t, w.Must("untaint", "terraform_data.one"), "Resource instance terraform_data.one has been successfully untainted.")
	acctest.NoChanges(t, w)
}

// module is a module in the JSON of a state.
type module struct {
	Address   string
	Resources []struct{ Address string }
	Children  []module `json:"child_modules"`
}

func (m module) list(to *[]string) {
	for _, one := range m.Resources {
		*to = append(*to, m.Address+": "+one.Address)
	}
	for _, child := range m.Children {
		child.list(to)
	}
}
