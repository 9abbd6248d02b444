package host_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// childOf checks that the node is a part of the named one; of none if the name is empty.
type childOf struct {
	site *site.Site
	name string
}

// CheckState compares the parent of the node with the UUID of the named one.
func (c childOf) CheckState(_ context.Context, req statecheck.CheckStateRequest, resp *statecheck.CheckStateResponse) {
	var want any
	if c.name != "" {
		want = c.site.Node(c.site.Name(c.name))["uuid"]
	}
	if is := c.site.NodeAt("1.83", hostID(req.State))["parent_node"]; is != want {
		resp.Error = fmt.Errorf("the parent is %v, want %v", is, want)
	}
}

// targets returns the requests for power changes that the fake has got, such as `{"target":"power off"}`.
func targets(s *site.Site) (bodies []string) {
	for _, r := range s.Fake.Requests() {
		if r.Method == http.MethodPut && strings.HasSuffix(r.Path, "/states/power") {
			bodies = append(bodies, r.Body)
		}
	}
	return bodies
}

func TestAccHost_powerOffModes(t *testing.T) {
	for _, mode := range []string{"hard", "soft", "graceful"} {
		t.Run(mode, func(t *testing.T) {
			s := site.Start(t, nil)
			off := hostConfig(s, `power_state = "off"`, `power_off_mode = `+acctest.Quoted(mode))
			acctest.Test(t,
				resource.TestStep{Config: hostConfig(s, `power_state = "on"`)},
				resource.TestStep{Config: off, ConfigStateChecks: []statecheck.StateCheck{nodeHas(s,
					map[string]any{"power_state": "power off"})}},
				resource.TestStep{ // a mode alone changes nothing
					PreConfig: func() {
						if s.Fake != nil {
							s.Fake.ResetRequests()
						}
					},
					Config: hostConfig(s, `power_state = "off"`),
					Check: func(*terraform.State) error {
						if s.Fake != nil && len(targets(s)) > 0 {
							return fmt.Errorf("sent %v", targets(s))
						}
						return nil
					},
				},
				resource.TestStep{ResourceName: acctest.HostAddress, ImportState: true, ImportStateVerify: true},
			)
		})
	}
}

func TestFakeHost_gracefulPowerOff(t *testing.T) {
	t.Parallel()
	const soft, hard = `{"target":"soft power off","timeout":180}`, `{"target":"power off"}`
	for name, tt := range map[string]struct {
		fake    *fakeironic.Server
		sent    []string
		warning string
	}{
		"shuts down": {&fakeironic.Server{}, []string{soft}, ""},
		"fails": {&fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
			return map[string]string{"soft power off": "Failed to set node power state to soft power off."}[verb]
		}}, []string{soft, hard}, "its operating system did not shut down within 3m0s"},
		"unsupported": {
			&fakeironic.Server{NoSoftPower: true},
			[]string{soft, hard},
			"the driver fake-hardware cannot ask an operating system to shut down",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.StartFake(t, tt.fake)
			w := acctest.NewWorkspace(t, hostConfig(s, `power_state = "on"`))
			w.Must(acctest.Apply()...)
			w.Configure(hostConfig(s, `power_state = "off"`, `power_off_mode = "graceful"`))
			s.Fake.ResetRequests()
			output := w.Must(acctest.Apply()...)
			if sent := targets(s); !slices.Equal(sent, tt.sent) {
				t.Errorf("sent %v, want %v", sent, tt.sent)
			}
			if tt.warning == "" {
				acctest.NeverMention(t, output, "Power was cut")
			} else {
				acctest.Mention(t, output, "Power was cut", "lost its power without a shutdown", tt.warning)
			}
			if found := lacks("", s.Node(s.Name("h")), map[string]any{"power_state": "power off"}); len(found) > 0 {
				t.Errorf("the node in Ironic: %v", found)
			}
			acctest.NoChanges(t, w)
		})
	}
}

func TestAccHost_disablePowerOff(t *testing.T) {
	s := site.Start(t, nil)
	s.SkipBefore(t, 95)
	has := func(want bool) []statecheck.StateCheck {
		return []statecheck.StateCheck{
			hostIs("disable_power_off", knownvalue.Bool(want)),
			onNode{s, map[string]any{"disable_power_off": want}, "1.95"},
		}
	}
	never := hostConfig(s, `disable_power_off = true`, `power_state = "on"`)
	acctest.Test(t,
		resource.TestStep{Config: never, ConfigStateChecks: has(true)},
		resource.TestStep{
			PreConfig:        func() { s.PatchAt("1.95", s.Name("h"), "/disable_power_off", false) },
			Config:           never,
			ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate), ConfigStateChecks: has(true),
		},
		resource.TestStep{ResourceName: acctest.HostAddress, ImportState: true, ImportStateVerify: true},
		resource.TestStep{Config: hostConfig(s, `power_state = "on"`), ConfigStateChecks: []statecheck.StateCheck{
			hostIs("disable_power_off", knownvalue.Null()), has(false)[1],
		}},
		resource.TestStep{ // another client has set it
			PreConfig:   func() { s.PatchAt("1.95", s.Name("h"), "/disable_power_off", true) },
			Config:      hostConfig(s, `power_state = "off"`),
			ExpectError: regexp.MustCompile("Power-off is disabled"),
		},
		resource.TestStep{Config: hostConfig(s, `power_state = "off"`, `disable_power_off = false`), ConfigStateChecks: has(false)},
		resource.TestStep{Config: hostConfig(s, `disable_power_off = true`, acctest.Target("available")), ConfigStateChecks: has(true)},
	)
}

func TestAccHost_parentNode(t *testing.T) {
	s := site.Start(t, nil)
	s.SkipBefore(t, 83)
	parents := "resource \"metal_host\" \"server\" {\n  name = " + acctest.Quoted(s.Name("server")) +
		"\n  driver = \"fake-hardware\"\n}\n" +
		"resource \"metal_host\" \"other\" {\n  name = " + acctest.Quoted(s.Name("other")) + "\n  driver = \"fake-hardware\"\n}\n"
	is := func(name string) []statecheck.StateCheck {
		return []statecheck.StateCheck{childOf{s, name}}
	}
	inServer := hostConfig(s, `parent_node = metal_host.server.id`) + parents
	acctest.Test(t,
		resource.TestStep{Config: inServer, ConfigStateChecks: is("server")},
		resource.TestStep{
			PreConfig:        func() { s.PatchAt("1.83", s.Name("h"), "/parent_node", s.Node(s.Name("other"))["uuid"]) },
			Config:           inServer,
			ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate), ConfigStateChecks: is("server"),
		},
		resource.TestStep{ResourceName: acctest.HostAddress, ImportState: true, ImportStateVerify: true},
		resource.TestStep{Config: hostConfig(s, `parent_node = metal_host.other.id`) + parents, ConfigStateChecks: is("other")},
		resource.TestStep{Config: hostConfig(s) + parents, ConfigStateChecks: is("")},
	)
}

func TestFakeHost_impossiblePowerSettingsAreRefused(t *testing.T) {
	for _, tt := range []struct{ name, api, settings, want string }{
		{"off, and never off", "1.115", "power_state = \"off\"\n  disable_power_off = true", "Power-off is disabled"},
		{"no such mode", "1.115", `power_off_mode = "gently"`, `value must be one of`},
		{"parent by name", "1.115", `parent_node = "server"`, "must be a UUID"},
		{"never off on an old Ironic", "1.94", `disable_power_off = true`, "disable_power_off needs API 1.95"},
		{"a part on an old Ironic", "1.82", `parent_node = "11111111-1111-4111-8111-111111111111"`, "parent_node needs API 1.83"},
		{"graceful on an old Ironic", "1.26", `power_off_mode = "graceful"`, "power_off_mode needs API 1.27"},
		{"boot mode on an old Ironic", "1.75", `boot_mode = "uefi"`, "boot_mode needs API 1.76"},
		{"secure boot on an old Ironic", "1.75", `secure_boot = false`, "secure_boot needs API 1.76"},
		{"secure boot without UEFI", "1.115", "boot_mode = \"bios\"\n  secure_boot = true", "Secure boot needs UEFI"},
		{"two boot modes", "1.115", "boot_mode = \"bios\"\n  capabilities = { boot_mode = \"uefi\" }", "Set both to the same mode"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := site.StartFake(t, &fakeironic.Server{MaxMicroversion: tt.api})
			acctest.Test(t, resource.TestStep{
				Config: hostConfig(s, tt.settings), PlanOnly: true,
				ExpectError: regexp.MustCompile(acctest.Wrapped(tt.want)),
			})
		})
	}
}
