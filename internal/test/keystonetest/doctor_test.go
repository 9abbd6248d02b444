package keystonetest_test

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/doctor"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// metal doctor finds out the rights that each role really has, and changes nothing.
func TestKeystone_doctor(t *testing.T) {
	t.Parallel()
	s := start(t, ironicVariable)
	about := map[string]string{
		"system-": "rights on machines", "a-": "rights on machines that the project owns", "b-": "rights on machines that the project leases",
	}
	for _, g := range groups[:3] {
		for _, role := range g.roles {
			user := g.prefix + role
			t.Run(user, func(t *testing.T) {
				t.Parallel()
				may, _ := s.try(t, user)
				own := &openstack{site.StartAt(t, s.Endpoint, tokenOf(t, "system-admin")), t}
				scene := own.scene(t, user) // a machine that nothing else changes
				before := s.Node(scene.Replace("{node}"))
				report := diagnose(t, user)
				seen := 0
				for _, c := range report.Checks {
					if c.Name != "rights at the site" && c.Name != about[g.prefix] {
						continue // of a machine of another test
					}
					for feature, said := range features(c.Fact) {
						if really, known := may[feature]; known {
							seen++
							if really != (said == "Allowed") && said != "Not known" {
								t.Errorf("%s: the doctor says %s, but to do it is allowed: %t", feature, said, really)
							}
						}
					}
				}
				if seen < 12 {
					t.Errorf("the doctor says something about %d rights only: %+v", seen, report.Checks)
				}
				after := s.Node(scene.Replace("{node}"))
				for _, field := range []string{
					"extra", "driver_info", "instance_info", "instance_uuid", "owner", "lessee", "retired",
					"conductor_group", "automated_clean", "boot_interface", "provision_state", "target_provision_state",
				} {
					if !reflect.DeepEqual(before[field], after[field]) {
						t.Errorf("%s is %v, and was %v", field, after[field], before[field])
					}
				}
			})
		}
	}
}

// diagnose makes all checks as a user.
func diagnose(t *testing.T, user string) *doctor.Report {
	t.Helper()
	cfg := api.Config{Auth: api.AuthKeystone, RequestTimeout: time.Minute, Environ: []string{"HOME=" + os.Getenv("HOME")}}
	for name, value := range openrc(user) {
		cfg.Environ = append(cfg.Environ, name+"="+value)
	}
	return doctor.Run(t.Context(), doctor.Options{Site: machine.Config{Config: cfg}, Budget: 5 * time.Minute, StuckAfter: time.Hour})
}

// features returns what a check says of each feature.
func features(fact string) map[string]string {
	all := map[string]string{}
	for _, said := range []string{"Allowed", "Refused", "Not known"} {
		_, list, _ := strings.Cut(fact, said+": ")
		list, _, _ = strings.Cut(list, ".")
		for feature := range strings.SplitSeq(list, "; ") {
			all[feature] = said
		}
	}
	return all
}
