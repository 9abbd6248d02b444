package host_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
)

// A host leaves service only if it is certain that metal oneview sync may return it to service.
func TestLeavesService(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		wish string
		want bool
	}{
		{"target_state=available", true},
		{"target_state=available retired=false", true},
		{"target_state=manageable", false},
		{"target_state=enroll", false},
		{"target_state=?", false},
		{"target_state=available retired", false},
		{"target_state=available retired=?", false},
		{"target_state=available maintenance=false", false},
		{"target_state=available maintenance=?", false},
		{"target_state=available maintenance=true", false},
	} {
		w, _ := tell(t, row.wish, "")
		if got := host.LeavesService(w); got != row.want {
			t.Errorf("%s: %t, want %t", row.wish, got, row.want)
		}
	}
}
