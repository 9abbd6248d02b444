package host_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// redfishHost is a configuration with a host whose BMC speaks Redfish.
func redfishHost(s *site.Site, settings ...string) string {
	return s.Provider() + acctest.HostBlock(s.Name("h"),
		append([]string{bmc.Block("redfish://192.0.2.60/redfish/v1/Systems/1", withPassword("secret", 1))}, settings...)...)
}

// bootRequests returns the changes of boot mode and secure boot that the fake has got.
func bootRequests(s *site.Site) (sent []string) {
	for _, r := range s.Fake.Requests() {
		if what := r.Path[strings.LastIndex(r.Path, "/")+1:]; r.Method == http.MethodPut && (what == "boot_mode" || what == "secure_boot") {
			sent = append(sent, what+" "+r.Body)
		}
	}
	return sent
}

func TestFakeHost_bootModeChangesInPlace(t *testing.T) {
	s := site.StartFake(t, nil)
	has := func(mode string, secure bool) []statecheck.StateCheck {
		return []statecheck.StateCheck{nodeHas(s, map[string]any{"boot_mode": mode, "secure_boot": secure})}
	}
	const secured = "boot_mode = \"uefi\"\n  secure_boot = true"
	acctest.Test(t,
		resource.TestStep{Config: redfishHost(s, `boot_mode = "bios"`), ConfigStateChecks: has("bios", false)},
		resource.TestStep{
			Config: redfishHost(s, secured), ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: has("uefi", true),
		},
		resource.TestStep{ // drift
			PreConfig:        func() { s.Fake.Set(s.Name("h"), "secure_boot", false) },
			Config:           redfishHost(s, secured),
			ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate), ConfigStateChecks: has("uefi", true),
		},
		resource.TestStep{ // what is removed stays as it is, and is not managed any more
			Config: redfishHost(s), ConfigStateChecks: append(has("uefi", true), hostIs("boot_mode", knownvalue.Null()),
				hostIs("secure_boot", knownvalue.Null())),
		},
		resource.TestStep{
			PreConfig: func() { s.Fake.Set(s.Name("h"), "boot_mode", "bios") },
			Config:    redfishHost(s), ConfigPlanChecks: hostPlan(plancheck.ResourceActionNoop),
		},
		resource.TestStep{
			ResourceName: acctest.HostAddress, ImportState: true, ImportStateVerify: true,
			ImportStateVerifyIgnore: []string{"bmc", "driver_info", "cleanings"},
		},
	)
}

// A plan warns of the restart. A deployed machine keeps its boot mode until it is free.
func TestFakeHost_deployedHostKeepsBootMode(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	config := func(mode string) string {
		return redfishHost(s, acctest.Target("available"), "boot_mode = "+acctest.Quoted(mode), `ports = { `+
			acctest.Quoted(s.MAC(1))+` = {} }`)
	}
	deployment := acctest.Deployment("metal_host.h.id", acctest.Image("v1"))
	w := acctest.NewWorkspace(t, config("uefi")+deployment)
	w.Must(acctest.Apply()...)
	s.Fake.Set(s.Name("h"), "boot_mode", "bios") // as a deployment may
	acctest.NoChanges(t, w)
	s.Fake.Set(s.Name("h"), "boot_mode", "uefi")
	w.Configure(config("bios") + deployment)
	s.Fake.ResetRequests()
	for range 2 {
		output, changes := w.Plan()
		if changes {
			t.Errorf("the plan has changes:\n%s", output)
		}
		acctest.Mention(t, output, "Deployed host keeps its boot mode", "They take effect when the host is not deployed any more")
		w.Must(acctest.Apply()...)
	}
	if sent := bootRequests(s); len(sent) > 0 {
		t.Errorf("sent %v", sent)
	}
	w.Configure(config("bios"))
	w.Must(acctest.Apply()...)
	output, _ := w.Plan()
	acctest.Mention(t, output, "Machine may restart", "It restarts the machine if its BMC needs that")
	w.Must(acctest.Apply()...)
	if sent := bootRequests(s); !slices.Equal(sent, []string{`boot_mode {"target":"bios"}`}) {
		t.Errorf("sent %v", sent)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// fake-hardware has no boot mode: Ironic accepts the request, and fails later.
func TestAccHost_unsupportedBootModeFails(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w := acctest.NewWorkspace(t, hostConfig(s))
	w.Must(acctest.Apply()...)
	defer acctest.Destroy(t, s, w)
	for setting, says := range map[string]string{`boot_mode = "uefi"`: "set_boot_mode", `secure_boot = true`: "set_secure_boot_state"} {
		w.Configure(hostConfig(s, setting))
		for range 2 { // the next plan tries again
			acctest.Fails(t, w, acctest.Apply(), "was not changed", "Driver fake-hardware does not support "+says)
		}
	}
	w.Configure(hostConfig(s))
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
}
