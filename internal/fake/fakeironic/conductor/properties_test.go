package conductor_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/conductor"
)

// As Ironic 21.4 and 39.0 do.
func TestRAIDFault_refusesWhatTheSchemaRefuses(t *testing.T) {
	t.Parallel()
	const level = "'9' is not one of ['JBOD', '0', '1', '2', '5', '6', '1+0', '5+0', '6+0']"
	for disk, want := range map[string]string{
		`{"raid_level": "1", "size_gb": 100}`:                          "",
		`{"raid_level": "1", "size_gb": "MAX", "controller": "c"}`:     "",
		`{"raid_level": "1", "size_gb": 0}`:                            "",
		`{"size_gb": -1}`:                                              "'raid_level' is a required property",
		`{"raid_level": "1"}`:                                          "'size_gb' is a required property",
		`{"raid_level": "9", "size_gb": 1}`:                            level,
		`{"raid_level": "9", "size_gb": 1, "x": 1}`:                    "Additional properties are not allowed ('x' was unexpected)",
		`{"raid_level": "1", "size_gb": -1}`:                           "-1 is less than the minimum of 0",
		`{"raid_level": "1", "size_gb": "1"}`:                          "'1' is not one of ['MAX']",
		`{"raid_level": "1", "size_gb": 1, "physical_disks": ["sda"]}`: "'controller' is a dependency of 'physical_disks'",
	} {
		var target any
		if err := api.Decode([]byte(`{"logical_disks": [`+disk+`]}`), &target); err != nil {
			t.Fatal(err)
		}
		if got := conductor.RAIDFault(api.Object(target)); got != want {
			t.Errorf("%s: %q, want %q", disk, got, want)
		}
	}
}
