package ironic_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Ironic shows a boolean as 0 or 1, as true or false, or with a capital letter. Configurations write true and false.
func TestBIOSSetting_has(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind  string
		value any
		wants string
		want  bool
	}{
		{"Boolean", "1", "true", true},
		{"Boolean", "0", "false", true},
		{"Boolean", "True", "true", true},
		{"Boolean", true, "true", true},
		{"Boolean", "1", "false", false},
		{"Boolean", "", "false", false},
		{"Enumeration", "1", "true", false},
		{"Enumeration", "Enabled", "Enabled", true},
		{"Integer", 8.0, "8", true},
		{"", "8", "8", true},
	} {
		if got := (ironic.BIOSSetting{Type: tt.kind, Value: tt.value}).Has(tt.wants); got != tt.want {
			t.Errorf("%s %v has %q: %t", tt.kind, tt.value, tt.wants, got)
		}
	}
}
