package host_test

import (
	"fmt"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// A setting that the hardware interface of the host cannot bring to the machine is refused at plan, for a new host and for one in the pool.
// Its removal does nothing.
func TestFakeHost_settingWithoutFunctionIsRefused(t *testing.T) {
	t.Parallel()
	for kind, tt := range map[string]struct{ lacks, attribute, setting string }{
		"bios":       {"no-bios", "bios_settings", virtualization},
		"raid":       {"no-raid", "raid", mirror},
		"firmware":   {"no-firmware", "firmware", newFirmware},
		"inspect":    {"no-inspect", "inspect", "inspect = true"},
		"management": {"noop", "boot_mode", `boot_mode = "uefi"`},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := site.StartFake(t, nil)
			lacks := fmt.Sprintf("hardware_interfaces = { %s = %q }", kind, tt.lacks)
			config := func(more ...string) string { return hostConfig(s, append(more, acctest.Target("available"), lacks)...) }
			refused := func(w *acctest.Workspace) {
				t.Helper()
				w.Configure(config(tt.setting))
				acctest.Fails(t, w, []string{"plan"}, "Hardware interface lacks the function",
					fmt.Sprintf("has the %s interface %s, which does nothing for %s.", kind, tt.lacks, tt.attribute),
					fmt.Sprintf("hardware_interfaces = { %s = ", kind), "or remove "+tt.attribute)
			}
			w := acctest.NewWorkspace(t, config(tt.setting))
			refused(w)
			if nodes := s.Fake.Nodes(); len(nodes) > 0 {
				t.Errorf("the plan has made nodes: %v", nodes)
			}
			w.Configure(config())
			w.Must("apply", "-auto-approve")
			site.ForgetVerbs(s)
			refused(w)
			w.Configure(config())
			acctest.NoChanges(t, w)
			site.WantVerbs(t, s, site.Text(acctest.InState(t, w, acctest.HostAddress).Values["id"]))
			acctest.Destroy(t, s, w)
		})
	}
}

// The interface that the driver gives to a node counts, too.
func TestFakeHost_settingWithoutFunctionOfTheDriver(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	bmc := `bmc = { address = "ipmi://192.0.2.11", username = "u", password = "calvin" }`
	w := acctest.NewWorkspace(t, s.Provider()+acctest.HostBlock(s.Name("h"), bmc, virtualization))
	acctest.Fails(t, w, []string{"plan"}, "Hardware interface lacks the function", "has the bios interface no-bios",
		"The site has none for its driver that can")
}
