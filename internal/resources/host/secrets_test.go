package host_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// isSecret fails a test if the CLI's output, the state, a saved plan or the log contains a secret. It does not search the
// configuration.
func isSecret(t *testing.T, w *acctest.Workspace, printed, secret string) {
	t.Helper()
	if strings.Contains(printed, secret) {
		t.Errorf("the secret is in the output:\n%s", printed)
	}
	err := filepath.WalkDir(w.Dir, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) == ".tf" || filepath.Ext(name) == ".tfvars" {
			return err
		}
		content, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(content), secret) {
			t.Errorf("the secret is in %s: %s", filepath.Base(name), around(string(content), secret))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// around returns the part of a text where another occurs in it.
func around(text, what string) string {
	at := strings.Index(text, what)
	return text[max(0, at-200):min(len(text), at+200)]
}

// sends checks by which HTTP methods a text has been sent to Ironic. Only the fake records that.
type sends struct {
	site *site.Site
	text string
	want []string
}

// CheckState compares the methods, and forgets the requests so far.
func (x sends) CheckState(_ context.Context, _ statecheck.CheckStateRequest, resp *statecheck.CheckStateResponse) {
	if x.site.Fake == nil {
		return
	}
	var got []string
	for _, r := range x.site.Fake.Requests() {
		if strings.Contains(r.Body, x.text) {
			got = append(got, r.Method)
		}
	}
	if !slices.Equal(got, x.want) {
		resp.Error = fmt.Errorf("%q was sent by %v, want %v", x.text, got, x.want)
	}
	x.site.Fake.ResetRequests()
}

func TestAccHost_secretsDoNotLeak(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	secret := s.Name("tell-nobody")
	config := func(version int) string {
		return s.Provider(`request_timeout = "30s"`) + fmt.Sprintf(`
variable "secret" {
  type      = string
  ephemeral = true
}
resource "metal_host" "h" {
  name                   = %q
  driver                 = "fake-hardware"
  driver_info            = { deploy_kernel = "http://images/k" }
  driver_info_wo         = { redfish_password = var.secret }
  driver_info_wo_version = %d
}
resource "metal_host" "b" {
  name         = %q
  target_state = "enroll"
  bmc          = { address = "redfish://192.0.2.31/redfish/v1/Systems/1", username = "root", password_wo = var.secret, password_wo_version = %d }
}
`, s.Name("h"), version, s.Name("b"), version)
	}
	w := acctest.NewWorkspace(t, config(1))
	log := filepath.Join(w.Dir, "trace.log")
	w.Setenv("TF_LOG", "TRACE")
	w.Setenv("TF_LOG_PATH", log)
	w.Setenv("TF_VAR_secret", secret)
	var printed strings.Builder
	printed.WriteString(w.Must("plan", "-out", "tfplan"))
	printed.WriteString(w.Must("show", "-json", "tfplan"))
	printed.WriteString(w.Must("apply", "tfplan"))
	w.Configure(config(2))
	printed.WriteString(w.Must("plan", "-out", "tfplan"))
	printed.WriteString(w.Must("apply", "tfplan"))
	printed.WriteString(w.Must("show", "-json"))
	printed.WriteString(w.Must("destroy", "-auto-approve"))
	isSecret(t, w, printed.String(), secret)
	if content, err := os.ReadFile(log); err != nil || !strings.Contains(string(content), "request to Ironic") {
		t.Errorf("the log does not show the provider's requests (%v), so it proves nothing", err)
	}
}

func TestAccHost_secretsAreSentWhenTheirVersionChanges(t *testing.T) {
	s := site.Start(t, nil)
	const masked = "******"
	config := func(secret, version string, more ...string) string {
		return enrolled(s, append([]string{
			"driver = \"redfish\"", fmt.Sprintf("driver_info_wo = { redfish_password = %q }\n  driver_info_wo_version = %s",
				secret, version),
		}, more...)...)
	}
	sent := func(secret string, want ...string) statecheck.StateCheck { return sends{s, secret, want} }
	has := nodeHas(s, map[string]any{"driver_info": map[string]any{"redfish_password": masked}})
	version := func(want string) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("metal_host.h", tfjsonpath.New("driver_info_wo_version"), knownvalue.StringExact(want))
	}
	acctest.Test(t,
		resource.TestStep{Config: config("first-secret", "1"), ConfigStateChecks: []statecheck.StateCheck{
			has,
			sent("first-secret", http.MethodPost),
		}},
		resource.TestStep{ // the same version: another secret changes nothing
			Config:            config("second-secret", "1"),
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionNoop),
			ConfigStateChecks: []statecheck.StateCheck{has, sent("second-secret")},
		},
		resource.TestStep{ // a number is the text of its digits
			Config:            config("second-secret", `"1"`),
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionNoop),
			ConfigStateChecks: []statecheck.StateCheck{has, sent("second-secret"), version("1")},
		},
		resource.TestStep{ // another attribute changes: the secret is not sent
			Config:            config("third-secret", "1", `description = "changed"`),
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{has, sent("third-secret")},
		},
		resource.TestStep{
			Config:            config("fourth-secret", `"2026-11-26"`),
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{has, sent("fourth-secret", http.MethodPatch), version("2026-11-26")},
		},
		resource.TestStep{ // removed from the configuration: removed from Ironic
			Config:            enrolled(s, `driver = "redfish"`),
			ConfigStateChecks: []statecheck.StateCheck{nodeHas(s, map[string]any{"driver_info": map[string]any{"redfish_password": nil}})},
		},
	)
}

func TestAccHost_bmcPasswordIsSentWhenItsVersionChanges(t *testing.T) {
	s := site.Start(t, nil)
	const address = "redfish://192.0.2.32/redfish/v1/Systems/1"
	acctest.Test(t,
		resource.TestStep{
			Config:            enrolled(s, bmc.Block(address, withPassword("first-secret", 1))),
			ConfigStateChecks: []statecheck.StateCheck{sends{s, "first-secret", []string{http.MethodPost}}},
		},
		resource.TestStep{
			Config:            enrolled(s, bmc.Block("redfish://192.0.2.33/redfish/v1/Systems/1", withPassword("second-secret", 1))),
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{sends{s, "second-secret", nil}},
		},
		resource.TestStep{
			Config:            enrolled(s, bmc.Block(address, withPassword("third-secret", 2))),
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{sends{s, "third-secret", []string{http.MethodPatch}}},
		},
	)
}

// The password for CLIs without write-only arguments is in the state. A change of it updates the node.
func TestAccHost_bmcPasswordInTheStateChangesInPlace(t *testing.T) {
	s := site.Start(t, nil)
	config := func(password string) string {
		return enrolled(s, bmc.Block("ipmi://192.0.2.34", `username = "root"`, `password = `+acctest.Quoted(password)))
	}
	acctest.Test(t,
		resource.TestStep{
			Config:            config("first-secret"),
			ConfigStateChecks: []statecheck.StateCheck{sends{s, "first-secret", []string{http.MethodPost}}},
		},
		resource.TestStep{
			Config:            config("second-secret"),
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{sends{s, "second-secret", []string{http.MethodPatch}}},
		},
	)
}

func TestFakeHost_errorsContainNoSecrets(t *testing.T) {
	t.Parallel()
	var refuse, fail atomic.Bool
	secret := "tell-nobody-5e1f"
	s := site.StartFake(t, &fakeironic.Server{
		Fail: func(fakeironic.Node, string) string {
			if fail.Load() {
				return "ipmitool -U root -P " + secret + " power status failed"
			}
			return ""
		},
		Reject: func(r *http.Request) *fakeironic.Rejection {
			if refuse.Load() && (r.Method == http.MethodPost || r.Method == http.MethodPatch) {
				return &fakeironic.Rejection{Status: http.StatusBadRequest, Body: `{"error_message": "{\"faultstring\": \"Bad value: ` +
					secret + `\"}"}`}
			}
			return nil
		},
	})
	w := acctest.NewWorkspace(t, s.Provider()+acctest.HostBlock(s.Name("h"), bmc.Block("ipmi://192.0.2.35", withPassword(secret, 1))))
	w.Setenv("TF_LOG", "TRACE")
	w.Setenv("TF_LOG_PATH", filepath.Join(w.Dir, "trace.log"))
	failing := func(what string) {
		t.Helper()
		output, code := w.Run("apply", "-auto-approve")
		if code == 0 {
			t.Fatalf("the apply succeeded:\n%s", output)
		}
		acctest.Mention(t, output, what, "******")
		isSecret(t, w, output, secret)
	}
	refuse.Store(true)
	failing("Bad value")
	refuse.Store(false)
	fail.Store(true)
	failing("power status failed")
}
