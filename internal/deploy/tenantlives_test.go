package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// tenants are the projects of the tests: tenant a owns the machine, and tenant b leases it.
var tenants = map[string]string{"a": "aaaaaaaa-0000-4000-8000-000000000000", "b": "bbbbbbbb-0000-4000-8000-000000000000"}

// tenantOf is the Keystone of the fake. Its tokens are users such as "a-member": the tenant and the role in it.
func tenantOf(token string) (fakeironic.Caller, bool) {
	tenant, role, _ := strings.Cut(token, "-")
	return fakeironic.Caller{Project: tenants[tenant], Roles: []string{role}}, tenants[tenant] != ""
}

// leased is a fake of a version with one available machine, which tenant a owns and tenant b leases.
func leased(version string, policy fakeironic.Policy) (fake *fakeironic.Server, id string) {
	fake = &fakeironic.Server{
		MaxMicroversion: version, Identify: tenantOf, Policy: policy, StepTime: 2 * time.Minute,
		UnlockDelay: 2 * time.Second,
	}
	fake.AddFleet(1, "baremetal")
	id = fake.Nodes()[0].UUID
	for field, value := range map[string]any{"owner": tenants["a"], "lessee": tenants["b"], "deploy_interface": "direct", "name": "n1"} {
		fake.Set(id, field, value)
	}
	return fake, id
}

// behindKeystone returns a new run of a user, whose requests go the given way to the fake.
func behindKeystone(t *testing.T, fake *fakeironic.Server, user string, way http.RoundTripper) *sitetest.Client {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "OS_") {
			t.Setenv(name, "")
		}
	}
	for name, value := range map[string]string{
		"OS_AUTH_URL": "http://keystone.test/v3", "OS_USERNAME": user, "OS_PASSWORD": "secret", "OS_PROJECT_NAME": "tenant",
		"OS_DOMAIN_NAME": "Default",
	} {
		t.Setenv(name, value)
	}
	tenant, _, _ := strings.Cut(user, "-")
	return sitetest.NewClient(fake, func(cfg *machine.Config) {
		cfg.Auth = api.AuthKeystone
		cfg.Limit = sitetest.UpTo(2)
		cfg.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host != "keystone.test" {
				return way.RoundTrip(r)
			}
			content, err := json.Marshal(map[string]any{"token": map[string]any{
				"project":    map[string]any{"id": tenants[tenant], "name": "tenant"},
				"expires_at": time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339Nano),
			}})
			return &http.Response{
				StatusCode: http.StatusCreated, Header: http.Header{"X-Subject-Token": {user}},
				Body: io.NopCloser(strings.NewReader(string(content))), Request: r,
			}, err
		})
	})
}

// tenantLife is what a configuration with an allocation and a deployment does with a machine, as far as a user gets.
type tenantLife struct {
	fake *fakeironic.Server
	run  *sitetest.Client
	id   string
	a    *ironic.Allocation
}

func (l *tenantLife) allocate(ctx context.Context) error {
	r := allocate.Request{AllocationSpec: ironic.AllocationSpec{UUID: ironic.NewUUID(), Name: "web", ResourceClass: "baremetal"}}
	made, _, err := allocate.Allocate(ctx, l.run.Site, &r)
	if err != nil {
		return fmt.Errorf("allocate: %w", err)
	}
	l.a = made
	awaited, _, err := allocate.Reserve(ctx, l.run.Site, &r, made, time.Hour)
	if awaited != nil {
		l.a = awaited
	}
	return allocate.EndAllocation(ctx, l.run.Site, l.a, err)
}

// step calls a recipe on the machine, and ends the creation of the deployment if the recipe creates it.
func (l *tenantLife) step(ctx context.Context, doing string, recipe func(m *machine.Machine) error) error {
	if _, err := l.run.Of(ctx, l.id, recipe); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

func (l *tenantLife) deploy(ctx context.Context, allocation string) error {
	return l.step(ctx, "deploy", func(m *machine.Machine) error {
		instance, _, err := deploy.ReserveNew(ctx, m, sitetest.Debian("12"), allocation, time.Now().Add(time.Hour))
		if err != nil {
			return err
		}
		_, err = deploy.Deploy(ctx, m, sitetest.Debian("12"), deploy.DeployOptions{
			Instance: instance, Creates: true, Attempts: 1,
			Timeout: time.Hour,
		})
		return m.EndCreation(ctx, notes.MarkReservation, err)
	})
}

// use changes a deployed machine.
func (l *tenantLife) use(ctx context.Context) error {
	instance := nodeInstance(l)
	for _, s := range []struct {
		doing  string
		recipe func(m *machine.Machine) error
	}{
		{"rebuild", func(m *machine.Machine) error {
			_, err := deploy.Deploy(ctx, m, sitetest.Debian("13"), deploy.DeployOptions{
				Instance: instance, Other: deploy.RebuildOther,
				Attempts: 1, Timeout: time.Hour,
			})
			return err
		}},
		{"protect", func(m *machine.Machine) error { return deploy.Protect(ctx, m, true) }},
		{"unprotect", func(m *machine.Machine) error { return deploy.Protect(ctx, m, false) }},
		{"switch off", func(m *machine.Machine) error { return m.SetPower(ctx, false, time.Hour) }},
		{"switch on", func(m *machine.Machine) error { return m.SetPower(ctx, true, time.Hour) }},
		{"restart", func(m *machine.Machine) error { return m.Reboot(ctx, machine.OffHard, time.Hour) }},
	} {
		if err := l.step(ctx, s.doing, s.recipe); err != nil {
			return err
		}
	}
	return nil
}

// end destroys what a life has made.
func (l *tenantLife) end(ctx context.Context) error {
	node, _ := l.fake.Node(l.id)
	allocation := ""
	if l.a != nil {
		allocation = l.a.UUID
	}
	err := l.step(ctx, "undeploy", func(m *machine.Machine) error {
		if node.InstanceUUID == "" {
			return nil
		}
		_, err := deploy.Undeploy(ctx, m, node.InstanceUUID, allocation, time.Hour)
		return err
	})
	if err == nil && l.a != nil {
		err = allocate.Release(ctx, l.run.Site, l.a.UUID, l.id, deploy.EndLeftQuarantine)
	}
	return err
}

func nodeInstance(l *tenantLife) string {
	node, _ := l.fake.Node(l.id)
	return node.InstanceUUID
}

// leavesNothing fails the test if a machine has a reservation, a note or an operation.
func (l *tenantLife) leavesNothing(t *testing.T) {
	t.Helper()
	node := ironictest.NodeOf(t, l.fake, l.id)
	if node.InstanceUUID != "" || node.ProvisionState != "available" {
		t.Errorf("the machine is %s, reserved by %q", node.ProvisionState, node.InstanceUUID)
	}
	if notes, isMap := node.Raw["extra"].(map[string]any); !isMap || len(notes) > 0 {
		t.Errorf("these notes are left: %v", notes)
	}
}

// Each role completes the life of a machine, or is refused at once with the rule that it lacks.
func TestTenant_lives(t *testing.T) { //nolint:paralleltest // the variables of Keystone are those of the process
	for _, version := range []string{"1.82", "1.115"} { //nolint:paralleltest // see TestTenant_lives
		for _, tt := range []struct{ user, reserves, allocates string }{ // the rule that ends it; empty: it completes
			{"a-admin", "", ""},
			{"a-manager", "", ""},
			{"a-member", "", ""},
			{"a-reader", "update:instance_uuid", "allocation:create_restricted"},
			{"b-admin", "update:instance_uuid", ""},
			{"b-manager", "update:instance_uuid", ""},
			{"b-member", "update:instance_uuid", "node:update_instance_info"},
			{"b-reader", "update:instance_uuid", "allocation:create_restricted"},
		} {
			for _, way := range []struct {
				name, rule string
				allocates  bool
			}{{"with an allocation", tt.allocates, true}, {"with a reservation", tt.reserves, false}} {
				t.Run(fmt.Sprint(version, " ", tt.user, " ", way.name), func(t *testing.T) {
					ironictest.InVirtualTime(t, func(t *testing.T) {
						fake, id := leased(version, fakeironic.PolicyDefault)
						l := &tenantLife{fake: fake, run: behindKeystone(t, fake, tt.user, fake), id: id}
						start := time.Now()
						err := error(nil)
						if way.allocates {
							err = l.allocate(t.Context())
						}
						if err == nil {
							allocation := ""
							if l.a != nil {
								allocation = l.a.UUID
							}
							err = l.deploy(t.Context(), allocation)
						}
						if err == nil {
							err = l.use(t.Context())
						}
						took := time.Since(start)
						if end := l.end(t.Context()); end != nil {
							t.Errorf("the end: %v", end)
						}
						switch {
						case way.rule == "" && err != nil:
							t.Errorf("%v", err)
						case way.rule != "" && (err == nil || !strings.Contains(err.Error(), way.rule) || !api.IsForbidden(err)):
							t.Errorf("%v, want the rule %s", err, way.rule)
						case way.rule != "" && took > 3*ironictest.Poll:
							t.Errorf("the refusal took %s", took)
						case took > 2*time.Hour:
							t.Errorf("it took %s", took)
						}
						l.leavesNothing(t)
					})
				})
			}
		}
	}
}

// The next run of a tenant continues what a killed one has begun, whichever request was its last.
func TestTenant_killedAnywhere(t *testing.T) { //nolint:paralleltest // see TestTenant_lives
	for _, version := range []string{"1.82", "1.115"} { //nolint:paralleltest // see TestTenant_lives
		for _, user := range []string{"a-member", "b-manager"} {
			for last, finished := 1, false; !finished; last++ {
				t.Run(fmt.Sprint(version, " ", user, " after ", last, " requests"), func(t *testing.T) {
					ironictest.InVirtualTime(t, func(t *testing.T) {
						fake, id := leased(version, fakeironic.PolicyDefault)
						ctx, kill := context.WithCancel(t.Context())
						defer kill()
						l := &tenantLife{
							fake: fake, run: behindKeystone(t, fake, user, &mortal{next: fake, kill: kill, left: last}),
							id: id,
						}
						err := l.allocate(ctx)
						if err == nil {
							err = l.deploy(ctx, l.a.UUID)
						}
						finished = err == nil
						start := time.Now()
						<-time.After(2 * time.Minute) // the lease of a lock
						l.run, l.a = behindKeystone(t, fake, user, fake), nil
						if err = l.allocate(t.Context()); err == nil && !finished {
							err = l.deploy(t.Context(), l.a.UUID)
						}
						if took := time.Since(start); err != nil && !finished || took > 2*time.Hour {
							t.Errorf("after %s: %v", took, err)
						}
						if err := l.end(t.Context()); err != nil {
							t.Error(err)
						}
						if !finished {
							l.leavesNothing(t)
						}
					})
				})
			}
		}
	}
}
