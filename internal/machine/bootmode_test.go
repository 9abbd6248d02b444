package machine_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// setBoot changes the boot settings of the first machine of a fake, and returns what was sent.
func setBoot(t *testing.T, fake *fakeironic.Server, want machine.BootSettings) (sent []string, err error) {
	t.Helper()
	client, id := sitetest.NewClient(fake), fake.Nodes()[0].UUID
	machine, err := client.Machine(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	fake.ResetRequests()
	err = machine.SetBoot(t.Context(), want, time.Hour)
	for _, r := range fake.Requests() {
		if r.Method == http.MethodPut {
			sent = append(sent, r.Path[strings.LastIndex(r.Path, "/")+1:]+" "+r.Body)
		}
	}
	return sent, err
}

// redfishFleet is a fleet with one machine whose BMC speaks Redfish.
func redfishFleet(mode string, secure bool) *fakeironic.Server {
	fake := ironictest.Fleet(1)
	fake.StepTime = 20 * time.Second
	fake.Set("node-000", "driver_info", map[string]any{"redfish_address": "https://192.0.2.1"})
	fake.Set("node-000", "management_interface", "redfish")
	fake.Set("node-000", "boot_mode", mode)
	fake.Set("node-000", "secure_boot", secure)
	return fake
}

// A host is changed right before its boot mode is set, so updated_at does not show whether Ironic has executed the request.
func TestBoot_isSetAgainAfterALostAnswer(t *testing.T) {
	t.Parallel()
	for name, loss := range lateAnswers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := redfishFleet("bios", false)
				ironictest.AsOther(t, fake, http.MethodPatch, "nodes/node-000",
					[]any{map[string]any{"op": "add", "path": "/extra/team", "value": "db"}})
				fake.Reject = ironictest.Once(http.MethodPut, "/v1/nodes/"+fake.Nodes()[0].UUID+"/states/boot_mode", loss)
				if _, err := setBoot(t, fake, machine.BootSettings{Mode: ironic.BootUEFI}); err != nil {
					t.Fatal(err)
				}
				if mode := fake.Nodes()[0].Raw["boot_mode"]; mode != "uefi" {
					t.Errorf("the boot mode is %v", mode)
				}
			})
		})
	}
}

func TestBoot_changesWhatDiffersInOrder(t *testing.T) {
	t.Parallel()
	on, off := true, false
	const toUEFI, toBIOS, secure, insecure = `boot_mode {"target":"uefi"}`, `boot_mode {"target":"bios"}`, `secure_boot {"target":true}`,
		`secure_boot {"target":false}`
	for _, tt := range []struct {
		mode   string
		secure bool
		want   machine.BootSettings
		sent   []string
	}{
		{"uefi", false, machine.BootSettings{}, nil},
		{"uefi", true, machine.BootSettings{Mode: ironic.BootUEFI, Secure: &on}, nil},
		{"bios", false, machine.BootSettings{Mode: ironic.BootUEFI}, []string{toUEFI}},
		{"bios", false, machine.BootSettings{Mode: ironic.BootUEFI, Secure: &on}, []string{toUEFI, secure}},
		{"uefi", true, machine.BootSettings{Mode: ironic.BootBIOS, Secure: &off}, []string{insecure, toBIOS}},
	} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := redfishFleet(tt.mode, tt.secure)
			sent, err := setBoot(t, fake, tt.want)
			if err != nil || !slices.Equal(sent, tt.sent) {
				t.Errorf("from %s: sent %v, %v, want %v", tt.mode, sent, err, tt.sent)
			}
		})
	}
}

func TestBoot_failureQuotesIronic(t *testing.T) {
	t.Parallel()
	for what, fake := range map[string]*fakeironic.Server{
		"the driver cannot": ironictest.Fleet(1), "the BMC fails": redfishFleet("uefi", false),
	} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			want := "does not support set_boot_mode"
			if what == "the BMC fails" {
				want = "the BMC is asleep"
				fake.Fail = func(_ fakeironic.Node, verb string) string { return map[string]string{"boot_mode": want}[verb] }
			}
			_, err := setBoot(t, fake, machine.BootSettings{Mode: ironic.BootBIOS})
			if err == nil {
				t.Fatalf("%s: no error", what)
			}
			if _, detail := failure.Explain("prepare node", err); !strings.Contains(detail, "boot_mode of node node-000") ||
				!strings.Contains(detail, "Ironic's last_error: Failed to change boot mode") || !strings.Contains(detail, want) {
				t.Errorf("%s: %s", what, detail)
			}
		})
	}
}
