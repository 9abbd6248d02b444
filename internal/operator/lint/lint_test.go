package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/lint"
)

// configuration writes files into a new directory. A text without names of files, which are lines such as "== main.tf", is main.tf.
func configuration(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if !strings.HasPrefix(text, "== ") {
		text = "== main.tf\n" + text
	}
	for part := range strings.SplitSeq("\n"+text, "\n== ") {
		name, content, _ := strings.Cut(part, "\n")
		if name == "" {
			continue
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// found returns what is found in a configuration, such as "image.type>kind", with the key that was meant after a question mark.
func found(t *testing.T, text string) []string {
	t.Helper()
	all, err := lint.Directories(configuration(t, text))
	if err != nil {
		t.Fatal(err)
	}
	var short []string
	for _, f := range all {
		short = append(short, fmt.Sprintf("%s.%s?%s", f.Object, f.Key, f.Meant))
	}
	slices.Sort(short)
	return short
}

func check(t *testing.T, name, text, want string) {
	t.Helper()
	if got := strings.Join(found(t, text), " "); got != want {
		t.Errorf("%s: found %q, want %q, in\n%s", name, got, want, text)
	}
}

func TestLint_keysOfAnObject(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{
		`image = { url = "u", checksumType = "sha512" }`:                                   "image.checksumType?checksum",
		`image = { url = "u", format = "raw" }`:                                            "image.format?disk_format",
		`image = { url = "u", "format" = "raw" }`:                                          "image.format?disk_format",
		`image = { url = "u", ("format") = "raw" }`:                                        "image.format?disk_format",
		`image = { url = "u", (var.key) = "raw" }`:                                         "",
		`config_drive = { userdata = "#cloud-config" }`:                                    "config_drive.userdata?user_data",
		`timeouts = { creation = "5s" }`:                                                   "timeouts.creation?create",
		`rollout = { group = "g", max_unavail = 1 }`:                                       "rollout.max_unavail?max_unavailable",
		`ready_check = { http = { url = "u", status = [200] } }`:                           "ready_check.http.status?status_codes",
		`vifs = [{ id = "a", mac_address = "b" }]`:                                         "vifs[*].mac_address?mac",
		`deploy_steps = [{ args = {} }, { prio = 1 }]`:                                     "deploy_steps[*].prio?priority",
		`deploy_steps = [{ step = "a", args = { anything = { b = 1 } } }]`:                 "",
		`config_drive = { meta_data = { anything = 1 }, vendor_data = { a = { b = 1 } } }`: "",
		`capabilities = { anything = "goes" }`:                                             "",
		`image = null`:                                                                     "",
		`nothing = { of = "ours" }`:                                                        "", // which Terraform refuses
	} {
		check(t, "a deployment", "resource \"metal_deployment\" \"a\" {\n  "+written+"\n}", want)
	}
	for written, want := range map[string]string{
		`bmc = { address = "redfish://h", user = "root", pass = "x" }`:                "bmc.pass?password bmc.user?username",
		`hardware_interfaces = { boot_interface = "ipxe" }`:                           "hardware_interfaces.boot_interface?boot",
		`ports = { "52:54:00:aa:00:01" = { pxe = false } }`:                           "ports[*].pxe?pxe_enabled",
		`ports = { for m in var.macs : m => { pxe = false } }`:                        "ports[*].pxe?pxe_enabled",
		`ports = { "52:54:00:aa:00:01" = {} }`:                                        "",
		`raid = { volumes = [{ level = "1", size_gb = "MAX", rotational = true }] }`:  "raid.volumes[*].rotational?",
		`raid = { volumes = concat([{ level = "1", rotational = true }], var.more) }`: "raid.volumes[*].rotational?",
		`hardware_changes = { rollout = { pauses = "1m" } }`:                          "hardware_changes.rollout.pauses?pause",
		`extra = { anything = { a = 1 } }`:                                            "",
	} {
		check(t, "a host", "resource \"metal_host\" \"a\" {\n  "+written+"\n}", want)
	}
}

func TestLint_blocksOfEveryKind(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"provider": {`provider "metal" {
  provisioning_limit = { max_concurent = 1 }
}`, "provisioning_limit.max_concurent?max_concurrent"},
		"data source": {`data "metal_boot_status" "a" {
  live_iso = { a = { url = "u", contain = {} } }
}`, "live_iso[*].contain?contains"},
		"data source of a check": {`check "a" {
  data "metal_boot_status" "a" {
    live_iso = { a = { url = "u", contain = {} } }
  }
}`, "live_iso[*].contain?contains"},
		"action": {`action "metal_clean" "a" {
  for_each = { a = { invocation = "1h" } }
  config {
    timeouts = each.value
    steps    = [{ interface = "raid", stepp = "x" }]
  }
}`, "steps[*].stepp?step timeouts.invocation?invoke"},
		"another provider": {`resource "aws_instance" "a" {
  timeouts = { creation = "1m" }
}`, ""},
		"JSON": {
			`== main.tf.json
{"//": "a comment", "resource": {"metal_deployment": {"a": {
  "//": "a comment", "image": {"//": "a comment", "url": "u", "format": "raw"},
  "vifs": [{"id": "a", "address": "b"}], "timeouts": "${local.timeouts}", "config_drive": "${merge(local.drive, {})}"
}}}, "locals": {"timeouts": {"creation": "5s"}, "drive": {"userdata": "a"}}}`,
			"config_drive.userdata?user_data image.format?disk_format timeouts.creation?create vifs[*].address?",
		},
		"OpenTofu": {"== main.tofu\n" + `resource "metal_deployment" "a" {
  timeouts = { creation = "1m" }
}`, "timeouts.creation?create"},
		"other files": {"== a.tf.bak\nthis is no HCL\n== .hidden.tf\nnor is this\n== README.md\nnor this", ""},
	} {
		check(t, name, tt.text, tt.want)
	}
}

// A local is checked where an attribute has it, and only then.
func TestLint_expressions(t *testing.T) {
	t.Parallel()
	const locals = `
locals {
  require  = { min_cpu = 64 }
  all      = { web = { require = { min_cpu = 64 }, rack = "r1" }, db = { require = { min_cpus = 2 } } }
  list     = [for name, one in local.all : { name = name, require = one.require, timeouts = { creation = "1m" } }]
  unused   = { min_memory = 1 }
  circle   = merge(local.circle, { min_cpu = 1 })
  far      = { a = local.far.a, b = var.unknown ? local.far.b : local.far.b }
}
variable "wish" {
  default = { min_cpu = 1 }
}
variable "typed" {
  type = object({ min_cpu = optional(number, 1) })
}
variable "map" {
  type = map(object({ require = optional(object({ min_cpu = number })) }))
}
variable "sound" {
  type    = object({ min_cpus = optional(number) })
  default = { min_cpu = 1 }
}
`
	const one, timeouts, none = "require.min_cpu?min_cpus", "timeouts.creation?create", ""
	for written, want := range map[string]string{
		`require = local.require`:                                                     one,
		`require = "${local.require}"`:                                                one,
		`require = (local.require)`:                                                   one,
		`require = local.all.web.require`:                                             one,
		`require = local.all["web"].require`:                                          one,
		`require = local.all.db.require`:                                              none,
		`require = local.all[var.name].require`:                                       one,
		`require = local.list[0].require`:                                             one,
		`require = one([for r in local.list : r.require if r.a])`:                     one,
		`require = element(values(local.all), 0).require`:                             one,
		`require = lookup(local.all, "web", null).require`:                            one,
		`require = try(local.all.web.require, null)`:                                  one,
		`require = var.big ? local.require : null`:                                    one,
		`require = var.big ? null : { min_cpu = 1 }`:                                  one,
		`require = merge(local.require, { min_cpus = 1 })`:                            one,
		`require = merge({ min_cpus = 1 }, { min_cpu = 1 })`:                          one,
		`require = coalesce(var.other, local.require)`:                                one,
		`require = var.wish`:                                                          one,
		`require = var.typed`:                                                         one,
		`require = var.map["a"].require`:                                              one,
		`require = var.sound`:                                                         none,
		`require = local.circle`:                                                      one,
		`require = local.far.a`:                                                       none,
		`require = local.far.b`:                                                       none,
		`require = module.other.require`:                                              none,
		`require = data.x.y.z`:                                                        none,
		"for_each = local.all\nrequire = each.value.require":                          one,
		"for_each = local.all\nrequire = each.value[\"require\"]":                     one,
		"for_each = { for k, v in local.all : k => v }\nrequire = each.value.require": one,
		"for_each = { for k, v in local.all : k => merge(v, {}) if v.a }\nrequire = each.value.require":            one,
		"for_each = { for one in local.list : one.name => one }\nrequire = each.value.require":                     one,
		"for_each = { for one in flatten([local.list, [{}]]) : one.name => one }\nrequire = each.value.require":    one,
		"for_each = { for l in flatten([for x in [local.list] : x]) : l.name => l }\nrequire = each.value.require": one,
		"for_each = toset([\"a\"])\nrequire = each.value":                                                          none,
		"for_each = { for l in local.list : l.name => l }\ntimeouts = each.value[\"timeouts\"]":                    timeouts,
		"count = 2\nrequire = local.list[count.index].require":                                                     one,
	} {
		text := locals + "resource \"metal_allocation\" \"a\" {\n" + written + "\n}"
		const ofSound = "sound.min_cpu?min_cpus" // of the variable sound
		both := []string{ofSound}
		if want != "" {
			both = append(both, want)
		}
		slices.Sort(both)
		check(t, written, text, strings.Join(both, " "))
	}
}

func TestLint_inputsOfModules(t *testing.T) {
	t.Parallel()
	const child = `
== site/main.tf
variable "machines" {
  type = map(object({ name = optional(string), kind = optional(object({ raid = optional(string) })) }))
}
variable "open" {}
resource "metal_allocation" "a" {
  require = var.open
}
`
	for name, tt := range map[string]struct{ text, want string }{
		"a module of ours": {`module "fleet" {
  source   = "github.com/terraform-provider-metal/terraform-provider-metal//modules/fleet?ref=v0.1.0"
  machines = { a = { bmc_addr = "h", macs = ["m"] } }
  hardware = { dell = { hardware_interfaces = { boot_interface = "ipxe" } } }
}`, "hardware[*].hardware_interfaces.boot_interface?boot machines[*].bmc_addr?bmc_address"},
		"by git": {`module "fleet" {
  source   = "git::https://git.example.com/terraform-provider-metal.git//modules/fleet"
  defaults = { target = "available" }
}`, "defaults.target?target_state"},
		"a module of others": {`module "fleet" {
  source   = "example/fleet/metal"
  defaults = { target = "available" }
}`, ""},
		"a local module": {`== main.tf
module "site" {
  for_each = { north = { a = { nam = "x" } } }
  source   = "./site"
  machines = merge(each.value, { b = { kind = { raids = "1" } } })
  open     = { min_cpu = 1 }
}` + child, "machines[*].kind.raids?raid machines[*].nam?name require.min_cpu?min_cpus"},
		"values of variables": {`== terraform.tfvars
machines = { a = { nam = "x" } }
== more.auto.tfvars.json
{"kinds": [{"raids": "1"}]}
== other.tfvars
machines = { a = { names = "x" } }
== main.tf
variable "machines" {
  type = map(object({ name = optional(string) }))
}
variable "kinds" {
  type = list(object({ raid = optional(string) }))
}`, "kinds[*].raids?raid machines[*].nam?name"},
		"a module that calls itself": {`module "a" {
  source = "./."
}`, ""},
	} {
		check(t, name, tt.text, tt.want)
	}
}

func TestLint_namesThePlace(t *testing.T) {
	t.Parallel()
	dir := configuration(t, "locals {\n  wish = {\n    min_cpu = 1\n  }\n}\n"+
		"resource \"metal_allocation\" \"a\" {\n  require = local.wish\n}\n"+
		"resource \"metal_allocation\" \"b\" {\n  require = local.wish\n}\n")
	all, err := lint.Directories(dir, dir)
	if err != nil || len(all) != 1 {
		t.Fatalf("found %v, %v", all, err)
	}
	f := all[0]
	if f.File != filepath.Join(dir, "main.tf") || f.Line != 3 || f.Column != 5 {
		t.Errorf("found at %s:%d:%d", f.File, f.Line, f.Column)
	}
	if want := "require has no key min_cpu, so Terraform drops it; did you mean min_cpus?"; !strings.HasSuffix(f.Text, want) {
		t.Errorf("says %q", f.Text)
	}
}

func TestLint_unreadable(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"HCL":       {"resource {", "main.tf:1"},
		"JSON":      {"== main.tf.json\n{", "main.tf.json:1"},
		"no module": {"module \"a\" {\n  source = \"./nothing\"\n}", "nothing"},
	} {
		if _, err := lint.Directories(configuration(t, tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := lint.Directories(filepath.Join(t.TempDir(), "nothing")); err == nil {
		t.Error("lint reports no error for a directory that does not exist")
	}
}

// A configuration whose names double at each step would take until the end of time.
func TestLint_namesThatDouble(t *testing.T) {
	t.Parallel()
	text := "locals {\n  l0 = { min_cpu = 1 }\n"
	for i := range 60 {
		text += fmt.Sprintf("  l%d = var.x ? local.l%d : local.l%d\n", i+1, i, i)
	}
	check(t, "60 locals", text+"}\nresource \"metal_allocation\" \"a\" {\n  require = local.l60\n}\n", "require.min_cpu?min_cpus")
}
