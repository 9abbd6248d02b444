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
	"internal/base/decide", "internal/machine/states", "internal/machine/failure", "internal/machine/marks", "internal/machine/ramdisk", "internal/machine/readiness", "internal/machine", "internal/machine/expect",
	"internal/procedure", "internal/allocate", "internal/deploy/images", "internal/deploy/instance", "internal/rollout/turns", "internal/host/hardware", "internal/deploy/deployinterface", "internal/host/cabling", "internal/host/discovered", "internal/host/admission", "internal/host/enroll", "internal/deploy", "internal/host/commission",
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
		rest        = "internal/base/rest"
		throttle    = "internal/throttle"
		fakeAPI     = "internal/fake/fakeironic/api"
		core        = "internal/test/terraformtest/core"
		kinds       = "internal/test/terraformtest/schema"
		tracing     = "internal/base/tracing"
		spans       = "go.opentelemetry.io/otel/trace" // the API of OpenTelemetry, as below
		attributes  = "go.opentelemetry.io/otel/attribute"
		semantics   = "go.opentelemetry.io/otel/semconv/"
	)
	rules := map[string]rule{
		"":                            {own: []string{"internal/provider", "internal/base/tracing/export"}, foreign: []string{terraform}},
		"cmd/fakebmc":                 {own: []string{"internal/fake/fakebmc", "internal/fake/fakebmc/ipmi", "internal/fake/fakebmc/qemu", "internal/fake/fakehttp"}},
		"cmd/fakeironic":              {own: []string{"internal/fake/fakeironic", "internal/fake/fakeironic/seed", "internal/fake/fakehttp"}},
		"cmd/fakeoneview":             {own: []string{"internal/fake/fakeoneview", "internal/fake/fakehttp"}},
		"cmd/metal":                   {own: []string{"cmd/metal/cli", "cmd/metal/observe", "cmd/metal/oneview", "cmd/metal/operate", rest, tracing, "internal/base/tracing/export", "cmd/metal/manual"}, foreign: []string{"github.com/spf13/"}},
		"cmd/metal/cli":               {own: []string{"internal/machine", "internal/machine/failure", "internal/operator/selection", "internal/machine/states", "internal/oneview/sharing", ironic, api, throttle, "internal/oneview", rest}, foreign: []string{"github.com/spf13/", "golang.org/x/term", "golang.org/x/sys/unix"}}, // is there somebody who can answer, how wide is the line, and does the terminal show it?
		"cmd/metal/observe":           {own: []string{"cmd/metal/cli", "internal/operator/watch", "internal/operator/describe", "internal/machine/failure", "internal/operator/selection", ironic, api, rest, "internal/operator/timeline", "internal/operator/metrics", throttle, "internal/operator/forecast", "internal/operator/forecast/planned", "internal/operator/forecast/survey", "internal/machine", "internal/operator/doctor"}, foreign: []string{"github.com/spf13/"}},
		"cmd/metal/manual":            {own: []string{"cmd/metal/cli"}, foreign: []string{"github.com/spf13/"}},
		"cmd/metal/oneview":           {own: []string{"cmd/metal/cli", "internal/oneview/sharing", ironic, throttle, rest}, foreign: []string{"github.com/spf13/"}},
		"cmd/metal/operate":           {own: []string{"cmd/metal/cli", "internal/operator/operate", "internal/operator/selection", "internal/oneview/sharing", "internal/machine/failure", "internal/machine", throttle, ironic, api, rest}, foreign: []string{"github.com/spf13/"}},
		"internal":                    {},
		"internal/provider":           {own: with("internal/framework", "internal/datasources", "internal/actions", "internal/functions", ironic, api, "internal/oneview/sharing", "internal/oneview", throttle, "internal/host/discovery", "internal/rollout", rest, tracing), foreign: []string{terraform, cty, attributes, spans}},
		"internal/actions":            {own: with("internal/framework", ironic, api), foreign: []string{terraform}},
		"internal/functions":          {own: []string{"internal/ironic/driverinfo", "internal/ironic/networkdata"}, foreign: []string{terraform}},
		"internal/datasources":        {own: with("internal/framework", ironic, api, "internal/ironic/driverinfo", "internal/host/discovery", "internal/deploy/bootiso", "internal/rollout", "internal/oneview/sharing", "internal/oneview"), foreign: []string{terraform}},
		"internal/framework":          {own: with(ironic, api, "internal/ironic/driverinfo", "internal/ironic/networkdata", "internal/host/discovery", "internal/deploy/bootiso", "internal/rollout", "internal/oneview/sharing", "internal/oneview"), foreign: []string{terraform, "github.com/vmihailenco/msgpack/v5", cty}}, // msgpack: to compare configurations without decoding them into values
		"internal/operator/doctor":    {own: []string{"internal/operator/advice", "internal/machine/states", "internal/machine/failure", "internal/machine/marks", "internal/machine", "internal/machine/slots", "internal/oneview/sharing", "internal/oneview", ironic, api, throttle, rest}},                                 // sharing: the reasons of its maintenance
		"internal/operator/operate":   {own: with(ironic, api, "internal/oneview/sharing", "internal/machine/slots", "internal/machine/operation"), foreign: []string{nodes}},
		"internal/operator/advice":    {own: []string{"internal/machine/states", "internal/machine/failure", "internal/machine/marks", "internal/machine/ramdisk", "internal/machine", "internal/oneview/sharing", ironic, api}, foreign: []string{nodes}},
		"internal/operator/describe":  {own: []string{"internal/operator/advice", "internal/machine/states", "internal/machine/marks", "internal/deploy/instance", "internal/oneview/sharing", ironic, "internal/ironic/driverinfo", rest}},
		"internal/operator/selection": {own: []string{ironic, api}},
		"internal/operator/timeline":  {own: []string{"internal/operator/describe", "internal/machine/states", "internal/machine/marks", "internal/machine/ramdisk", "internal/machine", "internal/deploy/instance", "internal/operator/watch", ironic, api, rest}},
		"internal/operator/watch":     {own: []string{"internal/machine/states", "internal/operator/selection", "internal/machine/marks", "internal/machine", ironic, api, rest, "internal/machine/slots", throttle}},
		"internal/operator/metrics":   {own: []string{"internal/operator/watch"}, foreign: []string{"github.com/prometheus/client_golang/"}},
		"internal/oneview/sharing":    {own: []string{"internal/base/decide", "internal/machine/states", "internal/machine/failure", "internal/machine/marks", "internal/machine", "internal/oneview", ironic, api, throttle, rest}, foreign: []string{nodes}},

		"internal/rollout/turns":          {own: []string{"internal/machine/states", "internal/machine/failure", "internal/machine/marks", "internal/machine", "internal/deploy/instance", ironic, api, throttle, "internal/rollout"}},
		"internal/deploy":                 {own: []string{"internal/rollout", "internal/base/decide", "internal/machine/states", "internal/machine/failure", "internal/machine/marks", "internal/machine/ramdisk", "internal/machine", "internal/machine/expect", "internal/allocate", "internal/deploy/images", "internal/deploy/instance", "internal/deploy/deployinterface", "internal/deploy/bootiso", ironic, api, "internal/ironic/networkdata", throttle}, foreign: []string{nodes}},
		"internal/deploy/deployinterface": {},
		"internal/host/discovered":        {own: []string{"internal/base/decide", "internal/machine/failure", "internal/machine/marks", "internal/machine", "internal/host/discovery", ironic, api, "internal/ironic/driverinfo", throttle}, foreign: []string{nodes}},
		"internal/host/cabling":           {own: []string{"internal/base/decide", "internal/machine/states", "internal/machine/failure", "internal/machine/marks", "internal/machine/ramdisk", "internal/machine", ironic, api}},
		"internal/host/enroll":            {own: []string{"internal/base/decide", "internal/machine/states", "internal/machine/marks", "internal/machine/ramdisk", "internal/machine", "internal/machine/expect", "internal/host/cabling", "internal/host/hardware", "internal/host/discovered", ironic, api, "internal/ironic/driverinfo", "internal/ironic/networkdata"}},
		"internal/host/admission":         {own: []string{"internal/base/decide", "internal/machine/failure", "internal/machine/marks", "internal/machine", "internal/machine/expect", "internal/host/discovered", "internal/host/cabling", ironic, api, "internal/ironic/driverinfo"}},
		"internal/host/commission":        {own: []string{"internal/base/decide", "internal/machine/states", "internal/machine/failure", "internal/machine/marks", "internal/machine", "internal/host/cabling", "internal/host/hardware", "internal/host/admission", "internal/host/enroll", "internal/oneview/sharing", "internal/rollout/turns", "internal/rollout", ironic, api, "internal/ironic/driverinfo"}},
		"internal/deploy/instance":        {own: []string{"internal/machine/states", "internal/machine/failure", "internal/machine/marks", "internal/machine/ramdisk", "internal/machine", "internal/deploy/images", "internal/deploy/bootiso", "internal/machine/readiness", ironic, api, rest}, foreign: []string{nodes}},
		"internal/deploy/images":          {own: []string{"internal/machine/failure", "internal/machine", rest}},
		"internal/allocate":               {own: []string{"internal/host/cabling", "internal/base/decide", "internal/machine/states", "internal/machine/failure", "internal/machine/marks", "internal/machine", "internal/machine/expect", ironic, api, throttle, rest}, foreign: []string{nodes}},
		"internal/host/hardware":          {own: []string{"internal/machine/states", "internal/machine/failure", "internal/machine/marks", "internal/machine", "internal/machine/expect", "internal/rollout/turns", "internal/rollout", ironic, api}},
		"internal/procedure":              {own: []string{"internal/base/decide", "internal/machine/marks", "internal/machine", ironic, api}},
		"internal/machine/expect":         {own: []string{"internal/machine/states", "internal/machine/failure", "internal/machine/ramdisk", "internal/machine", ironic, api}},
		"internal/machine":                {own: []string{"internal/base/decide", "internal/machine/states", "internal/machine/failure", "internal/machine/marks", "internal/machine/ramdisk", "internal/machine/readiness", "internal/machine/slots", ironic, api, "internal/ironic/driverinfo", throttle, rest, tracing, "internal/machine/operation"}, foreign: []string{nodes}},
		"internal/machine/slots":          {own: []string{"internal/machine/states", ironic, api, throttle}, foreign: []string{nodes}},
		"internal/machine/marks":          {own: []string{"internal/machine/states", "internal/machine/failure", ironic, api, throttle, rest}, foreign: []string{nodes}},
		"internal/machine/failure":        {own: []string{"internal/machine/states", ironic, api, rest}},
		"internal/machine/ramdisk":        {own: []string{"internal/machine/states", ironic}},
		"internal/machine/readiness":      {own: []string{rest, tracing}, foreign: []string{spans}},
		"internal/machine/states":         {own: []string{ironic, api}, foreign: []string{nodes}},
		"internal/base/decide":            {},

		"internal/ironic/cloudconfig":  {foreign: []string{"go.yaml.in/yaml/v2"}}, // as gophercloud, which does not read all that the openstack command reads
		"internal/ironic":              {own: []string{api, "internal/ironic/driverinfo", "internal/ironic/polling", rest}, foreign: []string{gophercloud}},
		"internal/ironic/api":          {own: []string{"internal/ironic/cloudconfig", rest, tracing}, foreign: []string{gophercloud, spans, attributes, semantics}},
		"internal/ironic/driverinfo":   {},
		"internal/ironic/networkdata":  {own: []string{api}},
		"internal/ironic/polling":      {own: []string{api, rest}},
		"internal/oneview":             {own: []string{rest}},
		"internal/throttle":            {own: []string{rest, tracing}, foreign: []string{spans}},
		tracing:                        {foreign: []string{spans, attributes, semantics, "go.opentelemetry.io/otel/codes"}},
		"internal/base/tracing/export": {own: []string{tracing}, foreign: []string{"go.opentelemetry.io/otel", "github.com/go-logr/logr"}},
		"internal/machine/operation":   {own: []string{"internal/machine/states", ironic, tracing}, foreign: []string{spans, attributes}},
		"internal/base/rest":           {},
		"internal/host/discovery":      {},
		"internal/deploy/bootiso":      {},
		"internal/rollout":             {},

		"internal/operator/forecast":         {own: []string{throttle, "internal/rollout", rest}},
		"internal/operator/forecast/planned": {own: []string{"internal/operator/forecast", throttle, "internal/rollout", "internal/deploy/bootiso"}, foreign: []string{"github.com/hashicorp/terraform-json"}},
		"internal/operator/forecast/survey":  {own: []string{"internal/operator/forecast", "internal/machine/states", "internal/machine/marks", "internal/machine", "internal/machine/slots", "internal/rollout/turns", ironic, api, throttle, "internal/rollout"}},

		"internal/fake/fakeironic":           {own: []string{fakeAPI, "internal/fake/fakeironic/policy", "internal/fake/fakeironic/machine", "internal/fake/fakeironic/switches", "internal/fake/fakeironic/conductor", "internal/fake/fakeironic/procedure", "internal/fake/fakeironic/neutron", "internal/fake/fakeironic/seed"}},
		"internal/fake/fakeironic/conductor": {own: []string{fakeAPI, "internal/fake/fakeironic/machine", "internal/fake/fakeironic/switches", "internal/fake/fakeironic/neutron"}},
		"internal/fake/fakeironic/machine":   {own: []string{fakeAPI}},
		"internal/fake/fakeironic/neutron":   {own: []string{fakeAPI}},
		"internal/fake/fakeironic/policy":    {own: []string{fakeAPI}},
		"internal/fake/fakeironic/switches":  {own: []string{fakeAPI}},
		"internal/fake/fakeironic/procedure": {own: []string{fakeAPI}},
		"internal/fake/fakeironic/seed":      {own: []string{fakeAPI, "internal/fake/fakeironic/conductor"}},
		fakeAPI:                              {},

		"internal/fake/fakebmc":                {},
		"internal/fake/fakebmc/ipmi":           {own: []string{"internal/fake/fakebmc"}},
		"internal/fake/fakebmc/qemu":           {own: []string{"internal/fake/fakebmc"}},
		"internal/fake/fakehttp":               {},
		"internal/fake/fakekeystone":           {},
		"internal/fake/fakeoneview":            {},
		"internal/test/ironictest":             {own: []string{"internal/fake/fakeironic"}, testOnly: true},
		"internal/test/tracingtest":            {foreign: []string{"go.opentelemetry.io/otel", "go.opentelemetry.io/proto/otlp", "google.golang.org/grpc", "google.golang.org/protobuf"}, testOnly: true}, // the others: to receive spans
		"internal/test/sitetest":               {own: with(ironic, api, throttle, "internal/deploy/bootiso", "internal/fake/fakeironic", "internal/test/ironictest"), testOnly: true},
		"internal/test/guides":                 {own: []string{"internal/test/acctest", "internal/test/acctest/site", "internal/fake/fakeironic", "internal/fake/fakeironic/seed", "internal/fake/fakeoneview", "internal/oneview", "internal/operator/operate", "internal/machine", "internal/oneview/sharing", ironic, api}, foreign: []string{"github.com/hashicorp/hcl/v2"}, testOnly: true}, // hcl: to read the examples as a CLI does
		"internal/test/keystonetest":           {own: []string{"internal/test/acctest", "internal/test/acctest/site", "internal/operator/doctor", "internal/machine", api}, testOnly: true},
		"internal/test/neutrontest":            {own: []string{"internal/test/acctest", "internal/test/acctest/bmc", "internal/test/acctest/site", "internal/fake/fakeironic"}, testOnly: true},
		"internal/test/machinetest":            {own: []string{"internal/test/acctest", "internal/test/acctest/bmc", "internal/test/acctest/site", "internal/fake/fakebmc", "internal/fake/fakebmc/ipmi", "internal/fake/fakebmc/qemu"}, testOnly: true},
		"internal/test/simulate":               {own: []string{"internal/provider", core, kinds, "internal/test/terraformtest", "internal/fake/fakeironic", "internal/test/ironictest", "internal/operator/forecast", "internal/operator/forecast/planned", "internal/operator/forecast/survey", "internal/machine", api}, foreign: []string{terraform, cty}, testOnly: true},
		"internal/test/terraformtest":          {own: []string{core, kinds, "internal/test/terraformtest/language", "internal/test/terraformtest/state"}, foreign: []string{terraform, "github.com/hashicorp/hcl/v2", cty}, testOnly: true}, // as Terraform's core
		core:                                   {foreign: []string{terraform, "github.com/hashicorp/hcl/v2", cty}, testOnly: true},                                                                                                          // hcl: its tests write values in it
		kinds:                                  {foreign: []string{terraform, "github.com/hashicorp/hcl/v2", cty}, testOnly: true},
		"internal/test/terraformtest/language": {own: []string{core, kinds}, foreign: []string{terraform, "github.com/hashicorp/hcl/v2", cty}, testOnly: true},
		"internal/test/terraformtest/state":    {own: []string{core, kinds}, foreign: []string{terraform, cty, "github.com/vmihailenco/msgpack/v5"}, testOnly: true},
		"internal/test/acctest":                {own: []string{"internal/provider", "internal/test/terraformtest", core, kinds, "internal/test/acctest/site"}, foreign: []string{terraform, "github.com/hashicorp/go-plugin", "github.com/hashicorp/go-hclog", "golang.org/x/sys/unix"}, testOnly: true}, // go-plugin: as terraform-plugin-go's server demands; unix: to keep a port on which nothing listens
		"internal/test/acctest/site":           {own: []string{"internal/fake/fakeironic", "internal/fake/fakeoneview", "internal/fake/fakehttp"}, testOnly: true},
		"internal/test/acctest/bmc":            {own: []string{"internal/test/acctest/site", "internal/fake/fakebmc", "internal/fake/fakebmc/ipmi", "internal/fake/fakeironic", "internal/fake/fakehttp"}, testOnly: true},
	}
	provider := rules["internal/provider"]
	for _, name := range []string{"allocation", "allocationgroup", "deployment", "deploytemplate", "discoveryimport", "host", "inspectionrule", "oneviewprofile", "runbook"} {
		rules["internal/resources/"+name] = rule{own: with("internal/framework", ironic, api, "internal/ironic/driverinfo", "internal/ironic/networkdata", "internal/host/discovery", "internal/deploy/bootiso", "internal/rollout", "internal/oneview/sharing", "internal/oneview"), foreign: []string{terraform}}
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
		{"the domain's tests import acctest", listed{ImportPath: "internal/machine", XTestImports: []string{module + "/internal/test/acctest"}}, "must not import"},
		{"throttle imports ironic", listed{ImportPath: "internal/throttle", Imports: []string{module + "/internal/ironic"}}, "must not import"},
		{"the fake has a dependency", listed{ImportPath: "internal/fake/fakeironic", Imports: []string{"golang.org/x/sync/semaphore"}}, "must not import"},
		{"the fake imports testing", listed{ImportPath: "internal/fake/fakeironic", Imports: []string{"testing"}}, "must not import testing"},
		{"the fake imports httptest", listed{ImportPath: "internal/fake/fakeironic", Imports: []string{"net/http/httptest"}}, "must not import net/http/httptest"},
		{"the product imports acctest", listed{ImportPath: "internal/provider", Imports: []string{module + "/internal/test/acctest"}}, "must not import"},
		{"a package without a rule", listed{ImportPath: "internal/volumes"}, "no line"},
		{"a package with a vague name", listed{ImportPath: "internal/resources/utils"}, "says nothing"},
		{"the domain's tests import the site of acceptance tests", listed{ImportPath: "internal/machine", XTestImports: []string{module + "/internal/test/acctest/site"}}, "must not import"},
		{"a site knows no workspace", listed{ImportPath: "internal/test/acctest/site", Imports: []string{module + "/internal/test/acctest"}}, "must not import"},
		{"tests use acctest", listed{ImportPath: "internal/resources/host", XTestImports: []string{module + "/internal/test/acctest", terraform + "testing/helper/resource"}}, ""},
		{"the domain's tests use the fake", listed{ImportPath: "internal/machine", XTestImports: []string{module + "/internal/fake/fakeironic", module + "/internal/ironic"}}, ""},
		{"pure tests need no server", listed{ImportPath: "internal/host/discovery", XTestImports: []string{module + "/internal/fake/fakeironic"}}, "must not import"},
		{"the tests of a client need only its own server", listed{ImportPath: "internal/oneview", XTestImports: []string{module + "/internal/fake/fakeironic"}}, "must not import"},
		{"tests of one noun use another", listed{ImportPath: "internal/machine", XTestImports: []string{module + "/internal/deploy", module + "/internal/test/sitetest"}}, ""},
		{"the tests of the operator's tool start servers", listed{ImportPath: "cmd/metal/cli", XTestImports: []string{module + "/internal/fake/fakeironic"}}, ""},
		{"the tests of the operator's tool know no Terraform", listed{ImportPath: "cmd/metal/cli", XTestImports: []string{module + "/internal/test/acctest"}}, "must not import"},
		{"tests of states know no noun", listed{ImportPath: "internal/machine/states", XTestImports: []string{module + "/internal/deploy"}}, "must not import"},
		{"acctest imports testing", listed{ImportPath: "internal/test/acctest", Imports: []string{"testing"}}, ""},
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
	isNoun := slices.Contains(with("internal/oneview/sharing", "internal/operator/operate", "internal/operator/timeline"), name) && (name == machine || slices.Contains(r.own, machine))
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
	case "internal/test/acctest", "internal/test/acctest/bmc", "internal/test/acctest/site", "internal/fake/fakebmc", "internal/fake/fakebmc/ipmi":
		return slices.Contains(r.foreign, terraform)
	case "internal/ironic", "internal/fake/fakeironic", "internal/test/ironictest", "internal/fake/fakekeystone":
		return isNoun || mayUse("internal/ironic/api")
	case "internal/test/tracingtest", "internal/base/tracing/export":
		return isNoun || mayUse("internal/base/tracing")
	case "internal/fake/fakeoneview":
		return mayUse("internal/oneview")
	case "internal/fake/fakehttp":
		return mayUse("internal/oneview") || name == "internal/fake/fakeoneview"
	}
	return isNoun && slices.Contains(with("internal/test/sitetest", "internal/ironic/api", "internal/ironic/driverinfo", "internal/deploy/bootiso", "internal/operator/selection"), path)
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
