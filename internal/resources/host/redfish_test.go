package host_test

import (
	"path/filepath"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakebmc"
)

// redfish is a configuration with a host that has a BMC.
func redfish(s *acctest.Site, bmc string, settings ...string) string {
	return s.Provider() + acctest.HostBlock(s.Name("h"), append([]string{bmc, "automated_clean = false"}, settings...)...)
}

func TestAccBMC_enrollsWithTheRightPassword(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	b := s.StartBMC("m", fakebmc.Config{})
	w := acctest.NewWorkspace(t, redfish(s, b.Block(), acctest.Target("available")))
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
	acctest.NoDrift(t, w)
	host := acctest.InState(t, w, acctest.HostAddress)
	if host.Values["provision_state"] != "available" || b.Count(fakebmc.LoginRefused) > 0 {
		t.Errorf("the host is %v; the BMC saw %v", host.Values["provision_state"], b.History())
	}
	w.Must("destroy", "-auto-approve")
}

func TestAccBMC_saysThatThePasswordIsWrong(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	b := s.StartBMC("m", fakebmc.Config{})
	wrong := acctest.BMC(b.Address("redfish"), `username = "admin"`, `password_wo = "wrong"`, "password_wo_version = 1")
	w := acctest.NewWorkspace(t, redfish(s, wrong))
	output, code := w.Run(acctest.Apply()...)
	t.Log(code, output)
	output, _ = w.Plan()
	t.Log(output)
	_ = filepath.Join
	w.Must("destroy", "-auto-approve")
}
