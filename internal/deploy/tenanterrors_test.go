package deploy_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// Ironic hides last_error of a machine from its lessee. What fails fails for the lessee, too, with Ironic's reason.
func TestTenant_hiddenFailures(t *testing.T) { //nolint:paralleltest // see TestTenant_lives
	for _, version := range []string{"1.82", "1.115"} { //nolint:paralleltest // see TestTenant_lives
		for verb, do := range map[string]func(ctx context.Context, l *tenantLife) error{
			"rebooting": func(ctx context.Context, l *tenantLife) error {
				return l.step(ctx, "restart", func(m *machine.Machine) error { return m.Reboot(ctx, machine.OffHard, time.Hour) })
			},
			"power off": func(ctx context.Context, l *tenantLife) error {
				return l.step(ctx, "switch off", func(m *machine.Machine) error { return m.SetPower(ctx, false, time.Hour) })
			},
			"rebuild": func(ctx context.Context, l *tenantLife) error {
				o := deploy.DeployOptions{Instance: nodeInstance(l), Other: deploy.RebuildOther, Attempts: 1, Timeout: time.Hour}
				return l.step(ctx, "rebuild", func(m *machine.Machine) error {
					_, err := deploy.Deploy(ctx, m, sitetest.Debian("13"), o)
					return err
				})
			},
		} {
			t.Run(version+" "+verb, func(t *testing.T) {
				ironictest.InVirtualTime(t, func(t *testing.T) {
					fake, id := leased(version, fakeironic.PolicyDefault)
					l := &tenantLife{fake: fake, run: behindKeystone(t, fake, "b-manager", fake), id: id}
					err := l.allocate(t.Context())
					if err == nil {
						err = l.deploy(t.Context(), l.a.UUID)
					}
					if err != nil {
						t.Fatal(err)
					}
					fake.Fail = func(_ fakeironic.Node, wanted string) string {
						if wanted == verb {
							return "the BMC is on fire"
						}
						return ""
					}
					if err := do(t.Context(), l); err == nil || !strings.Contains(err.Error(), "the BMC is on fire") {
						t.Errorf("the error is %v", err)
					}
				})
			})
		}
	}
}
