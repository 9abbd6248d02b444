package machinetest_test

import (
	"fmt"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
)

// TestMetal_aLiveISORestartsTheMachineThatAChangeConcerns boots two machines from one live ISO.
func TestMetal_aLiveISORestartsTheMachineThatAChangeConcerns(t *testing.T) {
	t.Parallel()
	r := startRack(t, provisioning)
	machines := []*computer{r.machine(1), r.machine(2)}
	hosts := r.Provider()
	for i, c := range machines {
		hosts += fmt.Sprintf("resource \"metal_host\" \"h%d\" {\n  name = %q\n  automated_clean = false\n  %s\n  %s\n}\n",
			i, r.Name(fmt.Sprintf("h%d", i)), acctest.Target("available"), c.Block())
	}
	deployed := func(iso, second string) string {
		config := hosts
		for i, own := range []string{"uid/1", second} {
			config += fmt.Sprintf(`
resource "metal_deployment" "d%[1]d" {
  node_id = metal_host.h%[1]d.id
  live_iso = {
    url          = %[2]q
    host_content = { nmstate = %[3]q }
    quiet_period = "0s"
  }
}
`, i, r.image(iso), own)
		}
		return config
	}
	w := r.workspace(deployed("one.iso", "uid/1"))
	defer acctest.Destroy(t, r.Site, w)
	r.step("boot two machines", func() {
		w.Must(acctest.Apply()...)
		for _, c := range machines {
			c.await("live-one")
		}
	})
	acctest.NoChanges(t, w)

	w.Configure(deployed("two.iso", "uid/2"))
	r.step("restart one of them", func() {
		acctest.Mention(t, w.Must(acctest.Apply()...), "0 added, 1 changed, 0 destroyed")
		machines[1].await("live-two")
	})
	acctest.NoChanges(t, w)
	for i, want := range []int{1, 2} {
		machines[i].wantBoots(want)
		if got := len(machines[i].reports()); got != want {
			t.Errorf("machine %d reports %v, want %d boots", i, machines[i].reports(), want)
		}
	}
}
