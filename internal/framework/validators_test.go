package framework

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// A name that is neither a custom trait nor in the namespace of a standard one is refused, with the custom trait it may mean.
func TestTrait_errorProposesCustomTrait(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"CUSTOM_NVME": "", "HW_CPU_X86_AVX2": "", "STORAGE_DISK_SSD": "", "COMPUTE_NODE": "", "MISC_SHARES_VIA_AGGREGATE": "",
		"OWNER_NOVA": "",
		"NVME":       `Write "CUSTOM_NVME"`, "nvme-fast": `Write "CUSTOM_NVME_FAST"`, "custom_nvme": `Write "CUSTOM_NVME"`,
		"hw:cpu": `Write "CUSTOM_HW_CPU"`,
		"":       "must be a trait", "CUSTOM_": "must be a trait", strings.Repeat("A", 255): "must be a trait",
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
		"1+0": "", "JBOD": "", "0": "", "10": `Write "10" as "1+0"`, "RAID 10": `as "1+0"`, "raid5": `as "5"`, "50": `as "5+0"`,
		"jbod": `as "JBOD"`, "7": "must be one of JBOD, 0,",
	} {
		var resp validator.StringResponse
		RAIDLevel.ValidateString(t.Context(), validator.StringRequest{Path: path.Root("level"), ConfigValue: types.StringValue(value)},
			&resp)
		var detail string
		for _, d := range resp.Diagnostics {
			detail += d.Detail()
		}
		if want == "" && detail != "" || !strings.Contains(detail, want) {
			t.Errorf("%q: %q, want %q", value, detail, want)
		}
	}
}

func TestAge_acceptsDaysAndDurations(t *testing.T) {
	t.Parallel()
	for value, ok := range map[string]bool{
		"90d": true, "12h": true, "1h30m": true, "0d": false, "0h": false, "-1h": false, "1.5d": false, "90": false, "d": false, "": false,
		"90 days": false, "1d12h": false, "70000d": false,
	} {
		var resp validator.StringResponse
		Age.ValidateString(t.Context(), validator.StringRequest{ConfigValue: types.StringValue(value)}, &resp)
		if resp.Diagnostics.HasError() == ok {
			t.Errorf("%q: %v", value, resp.Diagnostics)
		}
	}
}

// Ironic stores some texts in lower case. Any other spelling would be a difference in every plan.
func TestLowerCase_isProposed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rule        text
		value, want string
	}{
		{switchID, "00:11:22:aa:bb:cc", ""},
		{switchID, "0000aabbcc001122", ""},
		{switchID, "00:11:22:AA:BB:CC", `Write "00:11:22:aa:bb:cc"`},
		{switchID, "00-11-22-AA-BB-CC", `Write "00:11:22:aa:bb:cc"`},
		{switchID, "0000AABBCC001122", `Write "0000aabbcc001122"`},
		{switchID, "0x0000aabbcc001122", "must be the MAC address of the switch"},
		{switchID, "sw1", "must be the MAC address of the switch"},
		{ConductorGroup, "rack1", ""},
		{ConductorGroup, "Rack1", `Write "rack1"`},
		{UUID, "6a0d3a2e-5b3c-4c9a-9a55-0c1f5e7d4b21", ""},
		{UUID, "6A0D3A2E-5B3C-4C9A-9A55-0C1F5E7D4B21", `Write "6a0d3a2e-5b3c-4c9a-9a55-0c1f5e7d4b21"`},
		{UUID, "rack1", "must be a UUID"},
		{MACAddress, "52-54-00-AA-BB-01", `"52:54:00:aa:bb:01", as Ironic does`},
		{MACAddress, " 52:54:00:aa:bb:01", `"52:54:00:aa:bb:01", as Ironic does`},
		{MACAddress, "00:00:00:00:00:00", "is no address of a network card"},
		{MACAddress, "FF:FF:FF:FF:FF:FF", "is no address of a network card"},
		{MACAddress, "01-00-5e-00-00-01", "is no address of a network card"},
		{
			MACAddress, "a0:00:00:27:fe:80:00:00:00:00:00:00:7c:fe:90:03:00:29:26:52", `Write "7c:fe:90:29:26:52", and extra_json = ` +
				`jsonencode({ client-id = "ff:00:00:00:00:00:02:00:00:02:c9:00:7c:fe:90:03:00:29:26:52" })`,
		},
	} {
		var resp validator.StringResponse
		tt.rule.ValidateString(t.Context(), validator.StringRequest{ConfigValue: types.StringValue(tt.value)}, &resp)
		if tt.want == "" {
			if resp.Diagnostics.HasError() {
				t.Errorf("%q: %v", tt.value, resp.Diagnostics)
			}
		} else if !resp.Diagnostics.HasError() || !strings.Contains(resp.Diagnostics[0].Detail(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.value, resp.Diagnostics, tt.want)
		}
	}
	links := types.MapValueMust(types.StringType, map[string]attr.Value{
		"switch_id": types.StringValue("AA:BB:CC:00:11:22"),
		"port_id":   types.StringValue("Eth1"),
	})
	var resp validator.MapResponse
	LocalLink{}.ValidateMap(t.Context(), validator.MapRequest{Path: path.Root("local_link_connection"), ConfigValue: links}, &resp)
	if at, ok := resp.Diagnostics[0].(diag.DiagnosticWithPath); !ok ||
		!at.Path().Equal(path.Root("local_link_connection").AtMapKey("switch_id")) {
		t.Errorf("the error is %v", resp.Diagnostics)
	}
}
