package deploy_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakekeystone"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// A Keystone that stays away while Ironic deploys ends the wait at the time-out, and is no failure of the deployment. If it comes back
// before, the deployment ends as if nothing had been.
func TestTenant_keystoneStaysAway(t *testing.T) { //nolint:paralleltest // the variables of Keystone are those of the process
	const limit = time.Hour
	for name, tt := range map[string]struct { //nolint:paralleltest // see above
		away      time.Duration
		unwatched bool
	}{"for good": {away: 24 * time.Hour, unwatched: true}, "for ten minutes": {away: 10 * time.Minute}} {
		t.Run(name, func(t *testing.T) {
			ironictest.InVirtualTime(t, func(t *testing.T) {
				keystone := fakekeystone.NewSite("http://ironic.test")
				keystone.TokenLife = time.Minute
				fake, id := leased("1.82", fakeironic.PolicyDefault)
				fake.StepTime = 10 * time.Minute
				fake.Set(id, "owner", "tenant-a-id")
				fake.Identify = func(token string) (fakeironic.Caller, bool) {
					who, valid := keystone.Identify(token)
					return fakeironic.Caller{Project: who.ProjectID, Roles: who.Roles}, valid
				}
				l := &tenantLife{fake: fake, id: id, run: asMember(t, keystone,
					ironictest.Transport(func(r *http.Request) (*http.Response, error) {
						answer, err := fake.RoundTrip(r)
						if strings.HasSuffix(r.URL.Path, "/states/provision") {
							keystone.SetDown(true)
							time.AfterFunc(tt.away, func() { keystone.SetDown(false) })
						}
						return answer, err
					}))}
				start := time.Now()
				err := l.deploy(t.Context(), "")
				took := time.Since(start)
				if failure.IsUnwatched(err) != tt.unwatched || !tt.unwatched && err != nil {
					t.Errorf("%v", err)
				}
				if tt.unwatched && (took < limit || took > limit+5*time.Minute) {
					t.Errorf("the wait took %s", took)
				}
				if node := ironictest.NodeOf(t, fake, id); node.ProvisionState != "active" {
					t.Errorf("the machine is %s", node.ProvisionState)
				}
			})
		})
	}
}

// asMember returns a run of the user a-member, whose requests to Ironic go the given way.
func asMember(t *testing.T, keystone *fakekeystone.Server, way http.RoundTripper) *sitetest.Client {
	t.Helper()
	for name, value := range map[string]string{
		"OS_AUTH_URL": "http://keystone.test/v3", "OS_USERNAME": "a-member", "OS_PASSWORD": fakekeystone.Password,
		"OS_PROJECT_NAME":     "tenant-a",
		"OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_DOMAIN_NAME": "Default",
	} {
		t.Setenv(name, value)
	}
	return sitetest.NewClient(nil, func(cfg *machine.Config) {
		cfg.Auth = api.AuthKeystone
		cfg.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "keystone.test" {
				return keystone.RoundTrip(r)
			}
			return way.RoundTrip(r)
		})
	})
}
