package notes_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

func TestNotes_ownKey(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"terraform_metal": true, "terraform_metal_allocation": true, "terraform_metal_boot": true, ironic.KeyProbe: true,
		"metal_oneview_returning": true, "metal_oneview_migrating": true,
		"team": false, "terraform": false, "terraform_metallic": false, "metal_oneview": false, "oneview": false, "": false,
	} {
		if got := notes.OwnKey(key); got != want {
			t.Errorf("OwnKey(%q) = %t, want %t", key, got, want)
		}
	}
}
