package framework

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// A name that is neither a custom trait nor in the namespace of a standard one is refused, with the custom trait it may mean.
func TestTrait_errorProposesCustomTrait(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"CUSTOM_NVME": "", "HW_CPU_X86_AVX2": "", "STORAGE_DISK_SSD": "", "COMPUTE_NODE": "", "MISC_SHARES_VIA_AGGREGATE": "", "OWNER_NOVA": "",
		"NVME": `Write "CUSTOM_NVME"`, "nvme-fast": `Write "CUSTOM_NVME_FAST"`, "custom_nvme": `Write "CUSTOM_NVME"`, "hw:cpu": `Write "CUSTOM_HW_CPU"`,
		"": "must be a trait", "CUSTOM_": "must be a trait", strings.Repeat("A", 255): "must be a trait",
	} {
		var resp validator.StringResponse
		trait.ValidateString(t.Context(), validator.StringRequest{Path: path.Root("traits"), ConfigValue: types.StringValue(value)}, &resp)
		var detail string
		for _, d := range resp.Diagnostics {
			detail += d.Detail()
		}
		if want == "" && detail != "" || !strings.Contains(detail, want) {
			t.Errorf("%q: %q, want %q", value, detail, want)
		}
	}
}

func TestRAIDLevel_errorNamesIronicsSpelling(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"1+0": "", "JBOD": "", "0": "", "10": `Write "10" as "1+0"`, "RAID 10": `as "1+0"`, "raid5": `as "5"`, "50": `as "5+0"`, "jbod": `as "JBOD"`, "7": "must be one of JBOD, 0,",
	} {
		var resp validator.StringResponse
		RAIDLevel.ValidateString(t.Context(), validator.StringRequest{Path: path.Root("level"), ConfigValue: types.StringValue(value)}, &resp)
		var detail string
		for _, d := range resp.Diagnostics {
			detail += d.Detail()
		}
		if want == "" && detail != "" || !strings.Contains(detail, want) {
			t.Errorf("%q: %q, want %q", value, detail, want)
		}
	}
}
