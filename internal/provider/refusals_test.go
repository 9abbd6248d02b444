package provider_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakekeystone"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
)

// tenants is a session behind Keystone. Tenant a owns the node r1, tenant b leases it.
type tenants struct {
	*session
	test     *testing.T
	keystone string
	id       string
}

func startTenants(t *testing.T, version string, policy fakeironic.Policy) *tenants {
	t.Helper()
	keystone := fakekeystone.NewSite("")
	fake := &fakeironic.Server{MaxMicroversion: version, Policy: policy, Identify: func(token string) (fakeironic.Caller, bool) {
		who, known := keystone.Identify(token)
		return fakeironic.Caller{Project: who.ProjectID, System: who.System, Roles: who.Roles}, known
	}}
	server := httptest.NewServer(keystone)
	t.Cleanup(server.Close)
	fake.AddFleet(1, "baremetal")
	s := &tenants{test: t, keystone: server.URL + "/v3", id: fake.Nodes()[0].UUID}
	for field, value := range map[string]any{"name": "r1", "owner": "tenant-a-id", "lessee": "tenant-b-id"} {
		fake.Set(s.id, field, value)
	}
	s.session = startSessionOn(t, fake, nil)
	return s
}

// as starts another process of the provider for a user.
func (s *tenants) as(user string) {
	s.Helper()
	variables := map[string]string{"OS_SYSTEM_SCOPE": "all", "OS_PROJECT_NAME": "", "OS_PROJECT_DOMAIN_NAME": ""}
	if tenant, _, _ := strings.Cut(user, "-"); tenant != "sys" {
		variables = map[string]string{"OS_SYSTEM_SCOPE": "", "OS_PROJECT_NAME": "tenant-" + tenant, "OS_PROJECT_DOMAIN_NAME": "Default"}
	}
	variables["OS_AUTH_URL"], variables["OS_USERNAME"], variables["OS_PASSWORD"], variables["OS_USER_DOMAIN_NAME"] = s.keystone, user,
		fakekeystone.Password, "Default"
	for name, value := range variables {
		s.test.Setenv(name, value)
	}
	s.again()
}

// told plans a change, and returns what the plan says of rights: error or warning, attribute, rule.
func (s *tenants) told(kind string, config object, prior *instance) string {
	s.Helper()
	plan, err := s.server.PlanResourceChange(s.Context(), s.planRequest(kind, config, prior))
	if err != nil {
		s.Fatal(err)
	}
	return s.rightsIn(plan.Diagnostics)
}

func (s *tenants) rightsIn(said []*tfprotov6.Diagnostic) string {
	s.Helper()
	var lines []string
	for _, d := range said {
		if !strings.Contains(d.Summary, "the right") && !strings.Contains(d.Summary, "lack") {
			if d.Severity == tfprotov6.DiagnosticSeverityError {
				s.Errorf("another error: %s: %s", d.Summary, d.Detail)
			}
			continue
		}
		line := "warning"
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			line = "error"
		}
		if d.Attribute != nil {
			line += " " + fmt.Sprint(d.Attribute.Steps()[0])
		}
		lines = append(lines, line+" "+d.Summary[strings.LastIndex(d.Summary, " ")+1:])
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (s *tenants) expect(what, got string, want ...string) {
	s.Helper()
	slices.Sort(want)
	if got != strings.Join(want, "\n") {
		s.Errorf("%s: the plan says\n%s\nwant\n%s", what, got, strings.Join(want, "\n"))
	}
}

// A plan says what Ironic will refuse to the user.
func TestPlan_foreseesRefusals(t *testing.T) { //nolint:paralleltest // sets the environment
	for _, version := range []string{"1.82", ""} {
		s := startTenants(t, version, fakeironic.PolicyDefault)
		image := object{"url": "http://images.example.com/a.qcow2", "checksum": strings.Repeat("0", 64)}
		deployment, allocated := object{"node_id": s.id, "image": image}, object{
			"node_id": notKnown, "allocation_id": notKnown,
			"image": image,
		}
		host := object{"name": "r1", "driver": "fake-hardware", "target_state": "available"}
		change := withAll(host, object{
			"ports": object{"52:54:00:00:99:01": object{}}, "traits": []any{"CUSTOM_X"}, "conductor_group": "x", "automated_clean": false,
			"description": "x",
			"owner":       "tenant-b-id", "lessee": "tenant-a-id",
		})
		at := func(attribute, rule string) string {
			return "warning " + attribute + " baremetal:" + rule
		}
		verbs, instance := "error node_id provision", at("node_id", "node:update:instance_uuid")
		allocatedVerbs := []string{at("node_id", "node:set_provision_state")}
		const enrol, allocate = "warning baremetal:node:create", "warning baremetal:allocation:create"
		ofProject := []string{
			at("automated_clean", "node:disable_cleaning"), at("conductor_group", "node:update:conductor_group"),
			at("owner", "node:update:owner"),
		}
		ofMember := append([]string{at("ports", "port:create"), at("traits", "node:traits:set")}, ofProject...)
		ofLessee := append([]string{at("lessee", "node:update:lessee")}, ofMember...)
		ofReader := append([]string{at("description", "node:update")}, ofLessee...)
		for user, want := range map[string]struct{ deploys, allocatedDeploys, allocates, changes, enrols []string }{
			"sys-admin": {},
			"sys-member": {
				changes: []string{at("automated_clean", "node:disable_cleaning"), at("ports", "port:create")},
				enrols:  []string{enrol},
			},
			"sys-reader": {[]string{verbs}, allocatedVerbs, []string{allocate}, ofReader, []string{enrol}},
			"a-admin":    {changes: ofProject},
			"a-manager":  {changes: ofProject, enrols: []string{enrol}},
			"a-member":   {changes: ofMember, enrols: []string{enrol}},
			"a-reader":   {[]string{verbs}, allocatedVerbs, []string{allocate}, ofReader, []string{enrol}},
			"b-admin":    {deploys: []string{instance}, changes: ofLessee},
			"b-member":   {[]string{verbs}, allocatedVerbs, nil, ofLessee, []string{enrol}},
		} {
			s.as(user)
			prior := s.imported("metal_host", s.id)
			what := user + " on " + version
			s.expect(what+" deploys", s.told("metal_deployment", deployment, nil), want.deploys...)
			reserved := withAll(deployment, object{"allocation_id": "0f3c1d5e-5f0f-4b43-8a2d-3e1f1d7d8f11"})
			// so that the allocation can be destroyed
			mentions(t, what+" deploys what it has allocated", s.told("metal_deployment", reserved, nil), "error", false)
			s.expect(what+" deploys what it allocates", s.told("metal_deployment", allocated, nil), want.allocatedDeploys...)
			s.expect(what+" allocates", s.told("metal_allocation", object{"resource_class": "baremetal"}, nil), want.allocates...)
			s.expect(what+" changes a host", s.told("metal_host", change, prior), want.changes...)
			s.expect(what+" changes nothing", s.told("metal_host", host, prior))
			s.expect(what+" enrols a host", s.told("metal_host", object{"name": "r2", "driver": "fake-hardware"}, nil), want.enrols...)
		}
	}
}

// An undeployment, and the deletion of a host, are foreseen, too.
func TestPlan_foreseesRefusalsOfTheEnd(t *testing.T) { //nolint:paralleltest // sets the environment
	s := startTenants(t, "1.82", fakeironic.PolicyDefault)
	s.as("a-member")
	image := object{"url": "http://images.example.com/a.qcow2", "checksum": strings.Repeat("0", 64)}
	made, said := s.apply("metal_deployment", object{"node_id": s.id, "image": image}, nil)
	if failed(said) {
		t.Fatal(describe(said))
	}
	rebuilt := object{"node_id": s.id, "image": image, "capabilities": object{"boot_mode": "uefi"}}
	s.as("a-member")
	s.expect("an owner undeploys", s.rightsIn(s.planDestroy(s.read(made))))
	s.expect("an owner rebuilds", s.told("metal_deployment", rebuilt, made))
	s.expect("an owner deletes", s.rightsIn(s.planDestroy(s.imported("metal_host", s.id))), "warning baremetal:node:delete")
	s.as("b-member")
	s.expect("a lessee undeploys", s.rightsIn(s.planDestroy(s.read(made))), "warning provision")
	s.expect("a lessee rebuilds", s.told("metal_deployment", rebuilt, made), "error node_id provision")
	s.expect("a lessee restarts", s.told("metal_deployment", object{"node_id": s.id, "image": image, "power_state": "off"}, made))
}

// Nothing is said of rights where the policy is not the default one, and to those who have them; their plans make no further request.
func TestPlan_foreseesNoRefusals(t *testing.T) { //nolint:paralleltest // sets the environment
	image := object{"url": "http://images.example.com/a.qcow2", "checksum": strings.Repeat("0", 64)}
	plan := func(s *tenants) (requests []string) {
		s.Helper()
		prior := s.imported("metal_host", s.id)
		s.fake.ResetRequests()
		sent := func() []fakeironic.Request { // besides those for the freeze, of which a run makes one or two
			return slices.DeleteFunc(s.fake.Requests(), func(r fakeironic.Request) bool {
				return strings.HasPrefix(r.Path, "/v1/chassis/") || strings.HasPrefix(r.Path, "/v1/allocations/")
			})
		}
		host := object{"name": "r1", "driver": "fake-hardware", "target_state": "available"}
		s.expect("no change", s.told("metal_host", host, prior))
		if n := len(sent()); n > 1 { // the versions
			t.Errorf("a plan without changes makes %d requests", n)
		}
		s.expect("a deployment", s.told("metal_deployment", object{"node_id": s.id, "image": image}, nil))
		s.expect("an allocation", s.told("metal_allocation", object{"resource_class": "baremetal"}, nil))
		s.expect("a change", s.told("metal_host", withAll(host, object{"description": "x", "traits": []any{"CUSTOM_X"}}), prior))
		s.expect("the end", s.rightsIn(s.planDestroy(prior)))
		for _, r := range sent() {
			requests = append(requests, r.Method+" "+strings.ReplaceAll(r.Path, s.id, "r1"))
		}
		return requests
	}
	without := startTenants(t, "1.82", fakeironic.PolicyDefault)
	without.fake.Identify = nil
	without.as("a-reader")
	without.server = provider.NewServer("test")
	without.configure(block{"auth_type": "none"})
	usual := plan(without)
	s := startTenants(t, "1.82", fakeironic.PolicyDefault)
	for _, user := range []string{"sys-admin", "a-admin"} {
		s.as(user)
		if got := plan(s); !slices.Equal(got, usual) {
			t.Errorf("the plans of %s request %q, without Keystone %q", user, got, usual)
		}
	}
	legacy := startTenants(t, "1.82", fakeironic.PolicyLegacy)
	legacy.as("b-admin")
	plan(legacy)
	change := object{"name": "r1", "driver": "fake-hardware", "conductor_group": "x", "owner": "y", "automated_clean": false}
	legacy.expect("a mighty user of 21.4", legacy.told("metal_host", change, legacy.imported("metal_host", legacy.id)))
	recent := startTenants(t, "", fakeironic.PolicyLegacy)
	recent.fake.AddFleet(1, "other")
	recent.as("a-admin")
	recent.expect("a mighty user of 39", recent.told("metal_host", change, recent.imported("metal_host", recent.id)))
}

// A plan asks once for each relation, and never waits long for an answer about rights.
func TestPlan_asksOnceForRefusals(t *testing.T) { //nolint:paralleltest // sets the environment
	s := startTenants(t, "1.82", fakeironic.PolicyDefault)
	s.as("b-member")
	image := object{"url": "http://images.example.com/a.qcow2", "checksum": strings.Repeat("0", 64)}
	for range 3 {
		s.expect("a deployment", s.told("metal_deployment", object{"node_id": s.id, "image": image}, nil), "error node_id provision")
	}
	asked := map[string]int{}
	for _, r := range s.fake.Requests() {
		asked[r.Method+" "+strings.TrimPrefix(r.Path, "/v1/")]++
	}
	for _, what := range []string{"GET nodes/" + s.id + "/validate", "GET drivers"} {
		if asked[what] != 1 {
			t.Errorf("%s was asked %d times: %v", what, asked[what], asked)
		}
	}
}
