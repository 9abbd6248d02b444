package deploy_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// A boot note that was copied from another node, or made up, sets no automated_clean: the next undeployment would erase the machine. Nor
// does it make the plan of an undeployment say that the disks keep their data.
func TestCleanAgain_believesNoNoteOfAnotherReservation(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		instance, clean string // in the note; instance "": its own
		before, after   any    // automated_clean
		stays           bool   // uncleaned, before
	}{
		"its own":            {"", deploy.CleanTrue, false, true, false},
		"its own, not set":   {"", deploy.CleanUnset, false, nil, false},
		"copied":             {"00000000-0000-4000-8000-00000000000b", deploy.CleanTrue, false, false, false},
		"copied, not set":    {"00000000-0000-4000-8000-00000000000b", deploy.CleanUnset, false, false, false},
		"says never cleaned": {"", "", true, true, false},
		"was never cleaned":  {"", "", false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, id, instance := sitetest.Booted(t, "1.115", sitetest.FromMedia)
				if tt.instance != "" {
					instance = tt.instance
				}
				note := map[string]any{"image": "abc", "again": map[string]any{"instance": instance, "clean": tt.clean}}
				fake.Set(id, "extra", map[string]any{notes.KeyBoot: note})
				fake.Set(id, "automated_clean", tt.before)
				m, err := sitetest.NewClient(fake).Machine(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				if got := deploy.StaysUncleaned(m.Node()); got != tt.stays {
					t.Errorf("stays uncleaned: %t, want %t", got, tt.stays)
				}
				if err := deploy.CleanAgain(t.Context(), m); err != nil {
					t.Error(err)
				}
				if got := ironictest.NodeOf(t, fake, id).Raw["automated_clean"]; got != tt.after {
					t.Errorf("automated_clean is %v, want %v", got, tt.after)
				}
			})
		})
	}
}
