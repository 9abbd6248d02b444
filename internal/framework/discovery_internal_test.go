package framework

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/naming"
)

// An inspection by Redfish names disks by their model.
func TestDisksValue_hasEveryDisk(t *testing.T) {
	t.Parallel()
	got := disksValue([]naming.Disk{
		{Name: "480GB SSD", Bytes: 480103981056},
		{Name: "480GB SSD", Bytes: 480103981056},
		{Name: "/dev/sda", Bytes: 4 << 30},
		{Name: "480GB SSD", Bytes: 1 << 30},
	})
	if want := `{"/dev/sda":4,"480GB SSD":447,"480GB SSD (2)":447,"480GB SSD (3)":1}`; got.String() != want {
		t.Errorf("%s, want %s", got, want)
	}
}
