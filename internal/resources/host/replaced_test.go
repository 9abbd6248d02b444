package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// A machine that was replaced is undeployed by the first apply, which says so, and deployed by the second one. A mainboard that was
// replaced changes addresses alone. An older state does not repeat it.
func TestFakeHost_replacedMachineIsDeployedAnewInTwoApplies(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	config := func(unit int, replaced string) string {
		return s.Provider() + acctest.HostBlock(s.Name("h"),
			fmt.Sprintf(
				`bmc = { address = "redfish-virtualmedia://192.0.2.%d/redfish/v1/Systems/1", username = "root", password = "calvin" }`,
				unit),
			fmt.Sprintf(`ports = { "52:54:00:aa:02:%02x" = {} }`, unit), acctest.Target("available"), replaced) + `
resource "metal_deployment" "d" {
  node_id = metal_host.h.id
  image   = { url = "http://images.test/v1", checksum = "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1" }
}
`
	}
	w := acctest.NewWorkspace(t, config(11, ""))
	defer acctest.Destroy(t, s, w)
	w.Must("apply", "-auto-approve")

	w.Configure(config(12, `replaced = { part = "mainboard", on = "1" }`))
	wantCleanings(t, w, "1 -> 1")
	acctest.Mention(t, w.Must("plan"), "Plan: 0 to add, 1 to change, 0 to destroy.")
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)

	state := func() string {
		text, err := os.ReadFile(filepath.Join(w.Dir, "terraform.tfstate"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before := state()
	w.Configure(config(13, `replaced = { part = "machine", on = "2" }`))
	wantCleanings(t, w, "1 -> 2")
	acctest.Mention(t, w.Must("plan"), "Replaced machine is undeployed", "the next plan reserves and deploys anew",
		"Plan: 0 to add, 1 to change, 0 to destroy.")
	w.Must("apply", "-auto-approve")
	acctest.Mention(t, w.Must("plan"), "Plan: 1 to add, 0 to change, 0 to destroy.")
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)

	now := state()
	w.SetState(before) // of a backup
	acctest.NeverMention(t, w.Must("plan"), "Replaced machine is undeployed")
	wantCleanings(t, w, "1 -> 1")
	w.SetState(now)
}
