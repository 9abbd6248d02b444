// Package internal_test checks the import rules: which package may import which.
package internal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module    = "github.com/terraform-provider-metal/terraform-provider-metal"
	terraform = "github.com/hashicorp/terraform-"
)

// rule says what a package may import besides the standard library.
type rule struct {
	own      []string // packages of this module, relative to it
	foreign  []string // beginnings of the paths of other modules
	testOnly bool     // imported by tests only, and may import testing
}

// nouns are the packages of the domain, from those that know least to those that know most. The resources, the data sources and the actions
// may use all of them.
var nouns = []string{
	"internal/decide", "internal/states", "internal/failure", "internal/marks", "internal/ramdisk", "internal/readiness", "internal/machine", "internal/expect",
	"internal/procedure", "internal/allocate", "internal/images", "internal/instance", "internal/turns", "internal/hardware", "internal/deployinterface", "internal/cabling", "internal/discovered", "internal/admission", "internal/enroll", "internal/deploy", "internal/commission",
}

// with returns the nouns and other packages.
func with(others ...string) []string { return slices.Concat(nouns, others) }

// rules has a rule for each package of this module. A new package needs a line here, and a reason for each import.
func rules() map[string]rule {
	const (
		nodes       = "github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes" // the names of states and verbs
		gophercloud = "github.com/gophercloud/gophercloud/v2"
		cty         = "github.com/zclconf/go-cty" // to encode as Terraform does
		ironic      = "internal/ironic"
		api         = "internal/ironic/api"
		rest        = "internal/rest"
		throttle    = "internal/throttle"
		fakeAPI     = "internal/fakeironic/api"
		core        = "internal/terraformtest/core"
		kinds       = "internal/terraformtest/schema"
		tracing     = "internal/tracing"
		spans       = "go.opentelemetry.io/otel/trace" // the API of OpenTelemetry, as below
		attributes  = "go.opentelemetry.io/otel/attribute"
		semantics   = "go.opentelemetry.io/otel/semconv/"
	)
	rules := map[string]rule{
		"":                     {own: []string{"internal/provider", "internal/tracing/export"}, foreign: []string{terraform}},
		"cmd/fakebmc":          {own: []string{"internal/fakebmc", "internal/fakebmc/ipmi", "internal/fakebmc/qemu", "internal/fakehttp"}},
		"cmd/fakeironic":       {own: []string{"internal/fakeironic", "internal/fakeironic/seed", "internal/fakehttp"}},
		"cmd/fakeoneview":      {own: []string{"internal/fakeoneview", "internal/fakehttp"}},
		"cmd/metal":            {own: []string{"cmd/metal/cli", "cmd/metal/observe", "cmd/metal/oneview", "cmd/metal/operate", rest, tracing, "internal/tracing/export", "cmd/metal/manual"}, foreign: []string{"github.com/spf13/"}},
		"cmd/metal/cli":        {own: []string{"internal/machine", "internal/failure", "internal/selection", "internal/states", "internal/sharing", ironic, api, throttle, "internal/oneview", rest}, foreign: []string{"github.com/spf13/", "golang.org/x/term", "golang.org/x/sys/unix"}}, // is there somebody who can answer, how wide is the line, and does the terminal show it?
		"cmd/metal/observe":    {own: []string{"cmd/metal/cli", "internal/watch", "internal/describe", "internal/failure", "internal/selection", ironic, api, rest, "internal/timeline", "internal/metrics", throttle, "internal/forecast", "internal/forecast/planned", "internal/forecast/survey", "internal/machine", "internal/doctor"}, foreign: []string{"github.com/spf13/"}},
		"cmd/metal/manual":     {own: []string{"cmd/metal/cli"}, foreign: []string{"github.com/spf13/"}},
		"cmd/metal/oneview":    {own: []string{"cmd/metal/cli", "internal/sharing", ironic, throttle, rest}, foreign: []string{"github.com/spf13/"}},
		"cmd/metal/operate":    {own: []string{"cmd/metal/cli", "internal/operate", "internal/selection", "internal/sharing", "internal/failure", "internal/machine", throttle, ironic, api, rest}, foreign: []string{"github.com/spf13/"}},
		"internal":             {},
		"internal/provider":    {own: with("internal/framework", "internal/datasources", "internal/actions", "internal/functions", ironic, api, "internal/sharing", "internal/oneview", throttle, "internal/discovery", "internal/rollout", rest, tracing), foreign: []string{terraform, cty, attributes, spans}},
		"internal/actions":     {own: with("internal/framework", ironic, api), foreign: []string{terraform}},
		"internal/functions":   {own: []string{"internal/ironic/driverinfo", "internal/ironic/networkdata"}, foreign: []string{terraform}},
		"internal/datasources": {own: with("internal/framework", ironic, api, "internal/ironic/driverinfo", "internal/discovery", "internal/bootiso", "internal/rollout", "internal/sharing", "internal/oneview"), foreign: []string{terraform}},
		"internal/framework":   {own: with(ironic, api, "internal/ironic/driverinfo", "internal/ironic/networkdata", "internal/discovery", "internal/bootiso", "internal/rollout", "internal/sharing", "internal/oneview"), foreign: []string{terraform, "github.com/vmihailenco/msgpack/v5", cty}}, // msgpack: to compare configurations without decoding them into values
		"internal/doctor":      {own: []string{"internal/advice", "internal/states", "internal/failure", "internal/marks", "internal/machine", "internal/slots", "internal/sharing", "internal/oneview", ironic, api, throttle, rest}},                                                              // sharing: the reasons of its maintenance
		"internal/operate":     {own: with(ironic, api, "internal/sharing", "internal/slots", "internal/tracing/operation"), foreign: []string{nodes}},
		"internal/advice":      {own: []string{"internal/states", "internal/failure", "internal/marks", "internal/ramdisk", "internal/machine", "internal/sharing", ironic, api}, foreign: []string{nodes}},
		"internal/describe":    {own: []string{"internal/advice", "internal/states", "internal/marks", "internal/instance", "internal/sharing", ironic, "internal/ironic/driverinfo", rest}},
		"internal/selection":   {own: []string{ironic, api}},
		"internal/timeline":    {own: []string{"internal/describe", "internal/states", "internal/marks", "internal/ramdisk", "internal/machine", "internal/instance", "internal/watch", ironic, api, rest}},
		"internal/watch":       {own: []string{"internal/states", "internal/selection", "internal/marks", "internal/machine", ironic, api, rest, "internal/slots", throttle}},
		"internal/metrics":     {own: []string{"internal/watch"}, foreign: []string{"github.com/prometheus/client_golang/"}},
		"internal/sharing":     {own: []string{"internal/decide", "internal/states", "internal/failure", "internal/marks", "internal/machine", "internal/oneview", ironic, api, throttle, rest}, foreign: []string{nodes}},

		"internal/turns":           {own: []string{"internal/states", "internal/failure", "internal/marks", "internal/machine", "internal/instance", ironic, api, throttle, "internal/rollout"}},
		"internal/deploy":          {own: []string{"internal/rollout", "internal/decide", "internal/states", "internal/failure", "internal/marks", "internal/ramdisk", "internal/machine", "internal/expect", "internal/allocate", "internal/images", "internal/instance", "internal/deployinterface", "internal/bootiso", ironic, api, "internal/ironic/networkdata", throttle}, foreign: []string{nodes}},
		"internal/deployinterface": {},
		"internal/discovered":      {own: []string{"internal/decide", "internal/failure", "internal/marks", "internal/machine", "internal/discovery", ironic, api, "internal/ironic/driverinfo", throttle}, foreign: []string{nodes}},
		"internal/cabling":         {own: []string{"internal/decide", "internal/states", "internal/failure", "internal/marks", "internal/ramdisk", "internal/machine", ironic, api}},
		"internal/enroll":          {own: []string{"internal/decide", "internal/states", "internal/marks", "internal/ramdisk", "internal/machine", "internal/expect", "internal/cabling", "internal/hardware", "internal/discovered", ironic, api, "internal/ironic/driverinfo", "internal/ironic/networkdata"}},
		"internal/admission":       {own: []string{"internal/decide", "internal/failure", "internal/marks", "internal/machine", "internal/expect", "internal/discovered", "internal/cabling", ironic, api, "internal/ironic/driverinfo"}},
		"internal/commission":      {own: []string{"internal/decide", "internal/states", "internal/failure", "internal/marks", "internal/machine", "internal/cabling", "internal/hardware", "internal/admission", "internal/enroll", "internal/sharing", "internal/turns", "internal/rollout", ironic, api, "internal/ironic/driverinfo"}},
		"internal/instance":        {own: []string{"internal/states", "internal/failure", "internal/marks", "internal/ramdisk", "internal/machine", "internal/images", "internal/bootiso", "internal/readiness", ironic, api, rest}, foreign: []string{nodes}},
		"internal/images":          {own: []string{"internal/failure", "internal/machine", rest}},
		"internal/allocate":        {own: []string{"internal/cabling", "internal/decide", "internal/states", "internal/failure", "internal/marks", "internal/machine", "internal/expect", ironic, api, throttle, rest}, foreign: []string{nodes}},
		"internal/hardware":        {own: []string{"internal/states", "internal/failure", "internal/marks", "internal/machine", "internal/expect", "internal/turns", "internal/rollout", ironic, api}},
		"internal/procedure":       {own: []string{"internal/decide", "internal/marks", "internal/machine", ironic, api}},
		"internal/expect":          {own: []string{"internal/states", "internal/failure", "internal/ramdisk", "internal/machine", ironic, api}},
		"internal/machine":         {own: []string{"internal/decide", "internal/states", "internal/failure", "internal/marks", "internal/ramdisk", "internal/readiness", "internal/slots", ironic, api, "internal/ironic/driverinfo", throttle, rest, tracing, "internal/tracing/operation"}, foreign: []string{nodes}},
		"internal/slots":           {own: []string{"internal/states", ironic, api, throttle}, foreign: []string{nodes}},
		"internal/marks":           {own: []string{"internal/states", "internal/failure", ironic, api, throttle, rest}, foreign: []string{nodes}},
		"internal/failure":         {own: []string{"internal/states", ironic, api, rest}},
		"internal/ramdisk":         {own: []string{"internal/states", ironic}},
		"internal/readiness":       {own: []string{rest, tracing}, foreign: []string{spans}},
		"internal/states":          {own: []string{ironic, api}, foreign: []string{nodes}},
		"internal/decide":          {},

		"internal/cloudconfig":        {foreign: []string{"go.yaml.in/yaml/v2"}}, // as gophercloud, which does not read all that the openstack command reads
		"internal/ironic":             {own: []string{api, "internal/ironic/driverinfo", "internal/ironic/polling", rest}, foreign: []string{gophercloud}},
		"internal/ironic/api":         {own: []string{"internal/cloudconfig", rest, tracing}, foreign: []string{gophercloud, spans, attributes, semantics}},
		"internal/ironic/driverinfo":  {},
		"internal/ironic/networkdata": {own: []string{api}},
		"internal/ironic/polling":     {own: []string{api, rest}},
		"internal/oneview":            {own: []string{rest}},
		"internal/throttle":           {own: []string{rest, tracing}, foreign: []string{spans}},
		tracing:                       {foreign: []string{spans, attributes, semantics, "go.opentelemetry.io/otel/codes"}},
		"internal/tracing/export":     {own: []string{tracing}, foreign: []string{"go.opentelemetry.io/otel", "github.com/go-logr/logr"}},
		"internal/tracing/operation":  {own: []string{"internal/states", ironic, tracing}, foreign: []string{spans, attributes}},
		"internal/rest":               {},
		"internal/discovery":          {},
		"internal/bootiso":            {},
		"internal/rollout":            {},

		"internal/forecast":         {own: []string{throttle, "internal/rollout", rest}},
		"internal/forecast/planned": {own: []string{"internal/forecast", throttle, "internal/rollout", "internal/bootiso"}, foreign: []string{"github.com/hashicorp/terraform-json"}},
		"internal/forecast/survey":  {own: []string{"internal/forecast", "internal/states", "internal/marks", "internal/machine", "internal/slots", "internal/turns", ironic, api, throttle, "internal/rollout"}},

		"internal/fakeironic":           {own: []string{fakeAPI, "internal/fakeironic/policy", "internal/fakeironic/machine", "internal/fakeironic/switches", "internal/fakeironic/conductor", "internal/fakeironic/procedure", "internal/fakeironic/neutron", "internal/fakeironic/seed"}},
		"internal/fakeironic/conductor": {own: []string{fakeAPI, "internal/fakeironic/machine", "internal/fakeironic/switches", "internal/fakeironic/neutron"}},
		"internal/fakeironic/machine":   {own: []string{fakeAPI}},
		"internal/fakeironic/neutron":   {own: []string{fakeAPI}},
		"internal/fakeironic/policy":    {own: []string{fakeAPI}},
		"internal/fakeironic/switches":  {own: []string{fakeAPI}},
		"internal/fakeironic/procedure": {own: []string{fakeAPI}},
		"internal/fakeironic/seed":      {own: []string{fakeAPI, "internal/fakeironic/conductor"}},
		fakeAPI:                         {},

		"internal/fakebmc":                {},
		"internal/fakebmc/ipmi":           {own: []string{"internal/fakebmc"}},
		"internal/fakebmc/qemu":           {own: []string{"internal/fakebmc"}},
		"internal/fakehttp":               {},
		"internal/fakekeystone":           {},
		"internal/fakeoneview":            {},
		"internal/ironictest":             {own: []string{"internal/fakeironic"}, testOnly: true},
		"internal/tracingtest":            {foreign: []string{"go.opentelemetry.io/otel", "go.opentelemetry.io/proto/otlp", "google.golang.org/grpc", "google.golang.org/protobuf"}, testOnly: true}, // the others: to receive spans
		"internal/sitetest":               {own: with(ironic, api, throttle, "internal/bootiso", "internal/fakeironic", "internal/ironictest"), testOnly: true},
		"internal/guides":                 {own: []string{"internal/acctest", "internal/acctest/site", "internal/fakeironic", "internal/fakeironic/seed", "internal/fakeoneview", "internal/oneview", "internal/operate", "internal/machine", "internal/sharing", ironic, api}, foreign: []string{"github.com/hashicorp/hcl/v2"}, testOnly: true}, // hcl: to read the examples as a CLI does
		"internal/keystonetest":           {own: []string{"internal/acctest", "internal/acctest/site", "internal/doctor", "internal/machine", api}, testOnly: true},
		"internal/neutrontest":            {own: []string{"internal/acctest", "internal/acctest/bmc", "internal/acctest/site", "internal/fakeironic"}, testOnly: true},
		"internal/machinetest":            {own: []string{"internal/acctest", "internal/acctest/bmc", "internal/acctest/site", "internal/fakebmc", "internal/fakebmc/ipmi", "internal/fakebmc/qemu"}, testOnly: true},
		"internal/simulate":               {own: []string{"internal/provider", core, kinds, "internal/terraformtest", "internal/fakeironic", "internal/ironictest", "internal/forecast", "internal/forecast/planned", "internal/forecast/survey", "internal/machine", api}, foreign: []string{terraform, cty}, testOnly: true},
		"internal/terraformtest":          {own: []string{core, kinds, "internal/terraformtest/language", "internal/terraformtest/state"}, foreign: []string{terraform, "github.com/hashicorp/hcl/v2", cty}, testOnly: true}, // as Terraform's core
		core:                              {foreign: []string{terraform, "github.com/hashicorp/hcl/v2", cty}, testOnly: true},                                                                                                // hcl: its tests write values in it
		kinds:                             {foreign: []string{terraform, "github.com/hashicorp/hcl/v2", cty}, testOnly: true},
		"internal/terraformtest/language": {own: []string{core, kinds}, foreign: []string{terraform, "github.com/hashicorp/hcl/v2", cty}, testOnly: true},
		"internal/terraformtest/state":    {own: []string{core, kinds}, foreign: []string{terraform, cty, "github.com/vmihailenco/msgpack/v5"}, testOnly: true},
		"internal/acctest":                {own: []string{"internal/provider", "internal/terraformtest", core, kinds, "internal/acctest/site"}, foreign: []string{terraform, "github.com/hashicorp/go-plugin", "github.com/hashicorp/go-hclog", "golang.org/x/sys/unix"}, testOnly: true}, // go-plugin: as terraform-plugin-go's server demands; unix: to keep a port on which nothing listens
		"internal/acctest/site":           {own: []string{"internal/fakeironic", "internal/fakeoneview", "internal/fakehttp"}, testOnly: true},
		"internal/acctest/bmc":            {own: []string{"internal/acctest/site", "internal/fakebmc", "internal/fakebmc/ipmi", "internal/fakeironic", "internal/fakehttp"}, testOnly: true},
	}
	provider := rules["internal/provider"]
	for _, name := range []string{"allocation", "allocationgroup", "deployment", "deploytemplate", "discoveryimport", "host", "inspectionrule", "oneviewprofile", "runbook"} {
		rules["internal/resources/"+name] = rule{own: with("internal/framework", ironic, api, "internal/ironic/driverinfo", "internal/ironic/networkdata", "internal/discovery", "internal/bootiso", "internal/rollout", "internal/sharing", "internal/oneview"), foreign: []string{terraform}}
		provider.own = append(provider.own, "internal/resources/"+name)
	}
	rules["internal/provider"] = provider
	return rules
}

// listed is a package as go list prints it.
type listed struct {
	ImportPath, Dir                    string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
}

func TestPackagesKeepToTheImportRules(t *testing.T) {
	t.Parallel()
	gone := rules()
	for _, p := range listPackages(t) {
		delete(gone, relative(p.ImportPath))
		for _, fault := range faults(rules(), p) {
			t.Error(fault)
		}
	}
	for name := range gone {
		t.Errorf("there is no package %q any more: remove its line", name)
	}
}

func TestForbiddenImportsAreFound(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		p    listed
		want string
	}{
		{"resources import data sources", listed{ImportPath: "internal/resources/host", Imports: []string{module + "/internal/datasources"}}, "must not import"},
		{"the domain imports Terraform", listed{ImportPath: "internal/machine", Imports: []string{terraform + "plugin-framework/types"}}, "must not import"},
		{"the domain's tests import Terraform", listed{ImportPath: "internal/machine", XTestImports: []string{terraform + "testing/helper/resource"}}, "must not import"},
		{"the domain's tests import acctest", listed{ImportPath: "internal/machine", XTestImports: []string{module + "/internal/acctest"}}, "must not import"},
		{"throttle imports ironic", listed{ImportPath: "internal/throttle", Imports: []string{module + "/internal/ironic"}}, "must not import"},
		{"the fake has a dependency", listed{ImportPath: "internal/fakeironic", Imports: []string{"golang.org/x/sync/semaphore"}}, "must not import"},
		{"the fake imports testing", listed{ImportPath: "internal/fakeironic", Imports: []string{"testing"}}, "must not import testing"},
		{"the fake imports httptest", listed{ImportPath: "internal/fakeironic", Imports: []string{"net/http/httptest"}}, "must not import net/http/httptest"},
		{"the product imports acctest", listed{ImportPath: "internal/provider", Imports: []string{module + "/internal/acctest"}}, "must not import"},
		{"a package without a rule", listed{ImportPath: "internal/volumes"}, "no line"},
		{"a package with a vague name", listed{ImportPath: "internal/resources/utils"}, "says nothing"},
		{"the domain's tests import the site of acceptance tests", listed{ImportPath: "internal/machine", XTestImports: []string{module + "/internal/acctest/site"}}, "must not import"},
		{"a site knows no workspace", listed{ImportPath: "internal/acctest/site", Imports: []string{module + "/internal/acctest"}}, "must not import"},
		{"tests use acctest", listed{ImportPath: "internal/resources/host", XTestImports: []string{module + "/internal/acctest", terraform + "testing/helper/resource"}}, ""},
		{"the domain's tests use the fake", listed{ImportPath: "internal/machine", XTestImports: []string{module + "/internal/fakeironic", module + "/internal/ironic"}}, ""},
		{"pure tests need no server", listed{ImportPath: "internal/discovery", XTestImports: []string{module + "/internal/fakeironic"}}, "must not import"},
		{"the tests of a client need only its own server", listed{ImportPath: "internal/oneview", XTestImports: []string{module + "/internal/fakeironic"}}, "must not import"},
		{"tests of one noun use another", listed{ImportPath: "internal/machine", XTestImports: []string{module + "/internal/deploy", module + "/internal/sitetest"}}, ""},
		{"the tests of the operator's tool start servers", listed{ImportPath: "cmd/metal/cli", XTestImports: []string{module + "/internal/fakeironic"}}, ""},
		{"the tests of the operator's tool know no Terraform", listed{ImportPath: "cmd/metal/cli", XTestImports: []string{module + "/internal/acctest"}}, "must not import"},
		{"tests of states know no noun", listed{ImportPath: "internal/states", XTestImports: []string{module + "/internal/deploy"}}, "must not import"},
		{"acctest imports testing", listed{ImportPath: "internal/acctest", Imports: []string{"testing"}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.p.ImportPath = module + "/" + tt.p.ImportPath
			got := strings.Join(faults(rules(), tt.p), "; ")
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("faults = %q, want %q", got, tt.want)
			}
		})
	}
}

// faults describes what is wrong with the name and the imports of a package.
func faults(rules map[string]rule, p listed) []string {
	name := relative(p.ImportPath)
	for _, vague := range []string{"util", "utils", "common", "helper", "helpers", "misc", "shared"} {
		if slices.Contains(strings.Split(name, "/"), vague) {
			return []string{name + ": the name " + vague + " says nothing; name the package for what it does"}
		}
	}
	r, found := rules[name]
	if !found {
		return []string{name + " has no line in this test: say what it may import"}
	}
	var wrong []string
	for _, path := range p.Imports {
		if (path == "testing" || path == "net/http/httptest") && !r.testOnly {
			wrong = append(wrong, fmt.Sprintf("%s must not import %s", name, path))
		}
		if !r.allows(path) {
			wrong = append(wrong, fmt.Sprintf("%s must not import %s", name, path))
		}
	}
	for _, path := range slices.Concat(p.TestImports, p.XTestImports) {
		if !r.allows(path) && !r.allowsInTests(name, path) {
			wrong = append(wrong, fmt.Sprintf("the tests of %s must not import %s", name, path))
		}
	}
	return wrong
}

// allows reports whether the package may import a path.
func (r rule) allows(path string) bool {
	if isOwn(path) {
		return slices.Contains(r.own, relative(path))
	}
	if !strings.Contains(strings.Split(path, "/")[0], ".") {
		return true // the standard library
	}
	return slices.ContainsFunc(r.foreign, func(begin string) bool { return strings.HasPrefix(path, begin) })
}

// allowsInTests reports whether its tests may import a path that it may not import itself: the package, what stands in for a server whose
// client it may use, and what runs configurations if it may import Terraform. A test of one noun that works on machines lets another one
// make what it needs, such as a deployed machine.
func (r rule) allowsInTests(name, path string) bool {
	const machine = "internal/machine"
	isNoun := slices.Contains(with("internal/sharing", "internal/operate", "internal/timeline"), name) && (name == machine || slices.Contains(r.own, machine))
	if !isOwn(path) {
		return isNoun && strings.HasSuffix(path, "/baremetal/v1/nodes") || name == "cmd/metal/cli" && path == "github.com/creack/pty" // a terminal to be asked at
	}
	mayUse := func(client string) bool { return name == client || slices.Contains(r.own, client) }
	path = relative(path)
	if name == "cmd/metal" || strings.HasPrefix(name, "cmd/metal/") {
		return !slices.Contains(rules()[path].foreign, terraform)
	}
	switch path {
	case name:
		return true
	case "internal/acctest", "internal/acctest/bmc", "internal/acctest/site", "internal/fakebmc", "internal/fakebmc/ipmi":
		return slices.Contains(r.foreign, terraform)
	case "internal/ironic", "internal/fakeironic", "internal/ironictest", "internal/fakekeystone":
		return isNoun || mayUse("internal/ironic/api")
	case "internal/tracingtest", "internal/tracing/export":
		return isNoun || mayUse("internal/tracing")
	case "internal/fakeoneview":
		return mayUse("internal/oneview")
	case "internal/fakehttp":
		return mayUse("internal/oneview") || name == "internal/fakeoneview"
	}
	return isNoun && slices.Contains(with("internal/sitetest", "internal/ironic/api", "internal/ironic/driverinfo", "internal/bootiso", "internal/selection"), path)
}

func isOwn(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

// relative is the path of one of our packages without the module's.
func relative(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
}

func listPackages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = ".."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var packages []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatal(err)
		}
		p.touch(t)
		packages = append(packages, p)
	}
}

// touch reads the attributes of the package's directories and files, so that go test does not answer from its cache when they have
// changed: go test does not notice what go list reads.
func (p listed) touch(t *testing.T) {
	t.Helper()
	for _, name := range slices.Concat([]string{"", ".."}, p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
		if _, err := os.Stat(filepath.Join(p.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}
