package host_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// What Ironic, its agent or a BMC would refuse later is refused by the plan, with what to write (reference/values.md#what-a-plan-refuses).
func TestAccHost_planRefusesWhatIronicWould(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	software := func(volumes string) string {
		return "hardware_interfaces = { raid = \"agent\" }\nraid = { delete_existing = true, volumes = [" + volumes + "] }"
	}
	mirror := func(settings string) string {
		return `{ level = "1", size_gb = "50", controller = "software"` + settings + ` }`
	}
	link := func(keys string) string {
		return `ports = { "52:54:00:00:00:01" = { local_link_connection = { ` + keys + ` } } }`
	}
	for _, row := range []struct{ settings, says string }{
		{`driver_info = { deploy_kernel = "http://x/k\n" }`, `driver_info["deploy_kernel"]: The value must not contain white space`},
		{`driver_info = { rescue_ramdisk = "initrd" }`, `driver_info["rescue_ramdisk"]: The value must begin with http://`},
		{`firmware = { bios = { url = "http://x/b\n" } }`, "use trimspace()"},

		{`root_device = { deviceName = "/dev/sda" }`, `knows no hint "deviceName": write name`},
		{`root_device = { volume_name = "osd" }`, "volume_name is for skip_block_devices alone"},
		{`skip_block_devices = [{ size = "500GB" }]`, `write "500"`},
		{`capabilities = { boot_mode = "UEFI" }`, `must be one of bios, uefi. Write "uefi"`},
		{`capabilities = { secure_boot = "yes" }`, `Write "true"`},
		{`capabilities = { profile = " gold " }`, "nor begin or end with white space"},

		{`properties = { cpus = "many" }`, `properties["cpus"]: "many" must be a whole number`},
		{`properties = { memory_mb = "128 GB" }`, "must be a whole number"},
		{`traits = [for n in range(51) : "CUSTOM_T${n}"]`, "at most 50 elements"},
		{link(`switch_info = "tor"`), "Ironic demands port_id and switch_id"},
		{link(`switch_id = "52:54:00:00:00:02", port = "1"`), `knows no key "port"`},

		{`driver_info = { redfish_address = "https://192.0.2.1\n" }`, "use trimspace()"},
		{"driver_info_wo = { redfish_password = \"s3cret\\n\" }\ndriver_info_wo_version = 1", "use trimspace()"},
		{`bmc = { address = "192.0.2.1", username = "root\n" }`, "bmc.username: The value must not begin or end with white space"},
		{`bmc = { address = "192.0.2.1", password = "s3cret " }`, "bmc.password: The value must not begin or end"},
		{`bmc = { address = "192.0.2.1", password_wo = "\ufeffs3cret", password_wo_version = 1 }`, "bmc.password_wo: The value must not"},

		{software(`{ level = "0", size_gb = "MAX", controller = "software" }`), "The first software volume must have level 1"},
		{software(`{ level = "1", size_gb = "50" }`), "each volume needs controller"},
		{software(mirror(`, physical_disks = ["/dev/sda", "/dev/sdb"]`)), `jsonencode({ name = "/dev/sda" })`},
		{software(mirror(`, physical_disks = [jsonencode({ serial = "A" })]`)), "at least two disks"},
		{software(mirror(`, physical_disks = [for s in ["A", "B"] : jsonencode({ serialNumber = s })]`)), "write serial"},
		{
			software(`{ level = "1", size_gb = "MAX", controller = "software" }, ` +
				`{ level = "0", size_gb = "MAX", controller = "software" }`),
			"Only one software volume",
		},
		{software(mirror("") + `, { level = "5+0", size_gb = "MAX", controller = "software" }`), "makes no level 5+0"},
		{software(mirror("") + "," + mirror("") + "," + mirror("")), "one or two software volumes, and these are 3"},
	} {
		w := acctest.NewWorkspace(t, hostConfig(s, row.settings))
		acctest.Fails(t, w, []string{"plan"}, row.says)
	}
	w := acctest.NewWorkspace(t, hostConfig(s, software(mirror(`, physical_disks = [for s in ["A", "B"] : jsonencode({ serial = s })]`))))
	w.Must("validate")
}
