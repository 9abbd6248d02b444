package deployment_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// contradiction is a configuration that no apply can make true, and what is said of it.
type contradiction struct{ settings, want string }

// bootsX is the HCL of a live ISO, and the end of a line.
const bootsX = "live_iso = { url = \"http://x/y.iso\" }\n"

// contradictions are settings of a deployment that do not fit together, or have no meaning.
var contradictions = []contradiction{
	{`image = { url = "http://x/y", type = "partition" }`, "A partition image needs root_gb"},
	{`image = { url = "http://x/y", kernel = "http://x/k" }`, "kernel belongs to partition images"},
	{`image = { url = "http://x/y", checksum = "12345" }`, "must be an MD5, SHA-256 or SHA-512 checksum"},
	{`image = { url = "debian-12.qcow2" }`, "must begin with http://, https://, file://, oci:// or glance://"},
	{`image = { url = "http://x/y" }`, "Ironic demands a checksum for http images: set checksum"},
	{`image = { url = "file:///y" }`, "Ironic demands a checksum for file images"},
	{
		`image = { url = "http://x/y", checksum = "http://x/y.md5", pull_secret_wo = "x", pull_secret_wo_version = 1 }`,
		"image.pull_secret_wo belongs to oci:// images",
	},
	{`image = { url = "oci://x/y", pull_secret_wo = "s3cret\n", pull_secret_wo_version = 1 }`, "use trimspace()"},
	{`rescue = { password_wo = "s3cret\n", password_wo_version = 1 }`, "use trimspace()"},
	{`image = { url = "oci://x/y", pull_secret_wo = "x" }`, "must be specified when"},
	{`image = { url = "http://x/y", disk_format = "vmdk" }`, `must be one of: ["qcow2" "raw"]`},
	{`image = { url = "debian-12.qcow2" }`, "image.url: The value must begin"},
	{`live_iso = { url = "live.iso" }`, "live_iso.url: The value must begin with"},
	// Every attribute that is a URL.
	{`image = { url = "http://x/s3cret\n" }`, "image.url: The value must not contain white space or control characters: use trimspace()"},
	{`image = { url = "http://2001:db8::1/y" }`, "image.url: The value must have its IPv6 address in brackets"},
	{`image = { url = "glance://my-image" }`, "must be glance:// and the UUID of the image"},
	{`image = { url = "http://x/y", checksum = "http://x/y.md5 " }`, "must be an MD5, SHA-256"},
	{`image = { url = "http://x/y", kernel = "http://x/k\n" }`, "image.kernel: The value must not contain white space"},
	{`image = { url = "http://x/y", ramdisk = "initrd" }`, "image.ramdisk: The value must begin with http://"},
	{`live_iso = { url = "http://x/y z.iso" }`, "live_iso.url: The value must not contain white space or control characters: write"},
	{`instance_info = { kernel = "http://x/k\n" }`, "must not contain white space"},
	{bootsX + "instance_info = { boot_iso = \"http://x/z.iso\" }", `live_iso sets "boot_iso": remove it here`},
	{`timeouts = { create = "45" }`, `timeouts.create: "45" must be a duration such as "90s" or "5m"`},
	{`timeouts = { delete = "-5m" }`, `timeouts.delete: "-5m" must be a duration`},
	{`deploy_steps = [{ interface = "bios", step = "x", priority = 1, args = "[]" }]`, "The arguments of a step must be a JSON object"},
	{`deploy_steps = [{ interface = "dvd", step = "x", priority = 1 }]`, "must be one of"},
	{`allocation_id = "web-0"`, "must be the UUID of an allocation"},
	{`root_device = { minSizeGigabytes = "500" }`, `write size = ">= 500"`},
	{`root_device = { by_path = "" }`, "by_path is empty"},
	{`capabilities = { disk_label = "GPT" }`, `Write "gpt"`},
	{`traits = ["nvme"]`, `Write "CUSTOM_NVME"`},
	{`instance_info = { root_device = { serial = "A" } }`, `Set root_device of the deployment instead of "root_device"`},
	{`instance_info = { configdrive = "x" }`, `Set config_drive of the deployment instead of "configdrive"`},
	{`instance_info = { terraform_metal = "x" }`, `"terraform_metal" is reserved for the provider`},
	{`max_attempts = 0`, "must be between 1 and 10"},
	// Exactly one of image, live_iso and adopt.
	{``, "A deployment needs one of image"},
	{bootsX + acctest.Image("v1"), "Exactly one of image, live_iso and adopt must be set. Remove image or live_iso"},
	{acctest.Image("v1") + "\nadopt = true", "Remove image or adopt"},
	{bootsX + "adopt = true", "Remove live_iso or adopt"},
	{`adopt = false`, `adopt Value must be "true"`},
	{`adopt = true`, "An adopted machine needs on_destroy"},
	{"adopt = true\nconfig_drive = { user_data = \"a\" }", "config_drive has no effect with adopt = true"},
	{"adopt = true\nrebuild_triggers = { a = \"1\" }", "rebuild_triggers has no effect with adopt = true"},
	// VIFs.
	{vifs(1, 1), vif(1) + " occurs twice in vifs"},
	{`vifs = [null]`, "contains a null value"},
	{`vifs = [{ id = "a" }]`, "must be the UUID of a Neutron port"},
	{fmt.Sprintf("vifs = [{ id = %q, mac = \"x\" }]", vif(1)), "must be a MAC address"},
	{
		fmt.Sprintf("vifs = [{ id = %q, mac = \"52:54:00:00:00:01\" }, { id = %q, mac = \"52:54:00:00:00:01\" }]", vif(1), vif(2)),
		"mac 52:54:00:00:00:01 occurs twice",
	},
}

// wrongDrives are config drives that cannot be.
var wrongDrives = []contradiction{
	{`hostname = "web 0"`, `config_drive.hostname: "web 0" must be a host name`},
	{
		`hostname = "web-0", meta_data = jsonencode({ name = "web-1" })`,
		`config_drive.hostname and "name" in config_drive.meta_data are the same setting`,
	},
	{`user_data = "a", user_data_wo = "b", user_data_wo_version = 1`, `cannot be specified when`},
	{`user_data_wo = "b"`, `must be specified when`},
	{`meta_data_wo = "{}"`, `must be specified when`},
	{`meta_data_wo = "admin_pass: x", meta_data_wo_version = 1`, `Not JSON`},
	{`meta_data = "{\"a\":1}", meta_data_wo = "{\"a\":2}", meta_data_wo_version = 1`, `meta_data_wo have "a": remove one`},
	{`hostname = "h", meta_data_wo = "{\"name\":\"x\"}", meta_data_wo_version = 1`, `in config_drive.meta_data_wo are the same setting`},
	{`user_data_wo = "b", user_data_wo_version = ""`, `config_drive.user_data_wo_version: "" must not be blank.`},
	{`meta_data = "{"`, "JSON"},
	{`network_data = "{\"wpa\": \"s3cret\",}"`, "config_drive.network_data: The value is not JSON: the fault is at line 1, column 18."},
	{`meta_data = "[]"`, "meta_data must be a JSON object"},
	{`url = "http://x/s3cret\n"`, "config_drive.url: The value must not contain white space"},
	{`url = "file:///drive"`, "must begin with http:// or https://"},
	{`content_base64 = "s3cret"`, "must be an image that is compressed with gzip"},
	{`content_base64 = base64encode("s3cret")`, "run gzip first"},
	{`url = "http://x/drive", user_data = "a"`, "config_drive.url is a ready-made config drive"},
	{`content_base64 = base64gzip("a"), hostname = "a"`, "Remove it or config_drive.hostname"},
	{`url = "http://x/drive", content_base64 = base64gzip("s3cret")`, "config_drive.content_base64"},
	{`content_base64 = base64gzip("a"), meta_data = jsonencode({ a = 1 })`, "to which nothing can be added"},
}

// wrongChecks are ready checks that cannot be.
var wrongChecks = []contradiction{
	{``, "A ready check needs tcp"},
	{`tcp = "192.0.2.1:22", http = { url = "http://192.0.2.1" }`, "Exactly one of ready_check.tcp and ready_check.http must be set"},
	{`tcp = "192.0.2.1"`, "The value is not HOST:PORT"},
	{`tcp = "192.0.2.1:ssh"`, "is not HOST:PORT"},
	{`tcp = "192.0.2.1:70000"`, "is not HOST:PORT"},
	{`http = { url = "http://192.0.2.1/s3cret\n" }`, "use trimspace()"},
	{`http = { url = "ftp://u:s3cret@192.0.2.1" }`, "Not a URL to request"},
	{`http = { url = "http://u:s3cret@192.0.2.1:port" }`, "Not a URL to request"},
	{`http = { url = "http://192.0.2.1", status_codes = [600] }`, "between 100 and 599"},
	{`tcp = "192.0.2.1:22", timeout = "soon"`, "must be a duration"},
	{`tcp = "192.0.2.1:22", timeout = "1m", stable_for = "60s"`, "ready_check.timeout includes stable_for"},
	{`tcp = "192.0.2.1:22", timeout = "0s"`, "ready_check.timeout includes stable_for"},
	{`http = { url = "http://192.0.2.1", contains = "" }`, "string length must be at least 1"},
	{`tcp = "192.0.2.1:22", http = { status_codes = [200], contains = "" }`, "url"},
}

// sourceLine is a line of the configuration that a CLI shows with an error.
var sourceLine = regexp.MustCompile(`(?m)^ +\d+: .*$`)

func TestAccDeployment_contradictions(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w := acctest.NewWorkspace(t, "")
	refused := func(settings, want string) {
		t.Helper()
		w.Configure(s.Provider() + acctest.Deployment(`"n1"`, settings))
		output := acctest.Fails(t, w, []string{"validate"}, want)
		acctest.NeverMention(t, sourceLine.ReplaceAllString(output, ""), "s3cret")
	}
	for _, c := range contradictions {
		refused(c.settings, c.want)
	}
	for _, c := range wrongDrives {
		refused(acctest.Image("v1")+"\nconfig_drive = { "+c.settings+" }", c.want)
	}
	for _, c := range wrongChecks {
		refused(acctest.Image("v1")+"\nready_check = { "+c.settings+" }", c.want)
	}
	for _, settings := range []string{
		`image = { url = "glance://0b2a8047-0d5c-4a41-8a0f-0d5c0d5c0d5c" }`,
		`image = { url = "oci://registry.example.com/debian:12" }`,
		`image = { url = "http://x/y", checksum = "http://x/SHA256SUMS" }`,
		"image = { url = \"http://x/tree\" }\ninstance_info = { deploy_interface = \"anaconda\" }",
		"image = { url = \"http://x/y\" }\ninstance_info = { image_checksum = \"d41d8cd98f00b204e9800998ecf8427e\" }",
		`image = { url = "http://x/y", checksum = "http://x/s", type = "partition", root_gb = 1, kernel = "0b2a8047-0d5c-4a41-8a0f-` +
			`0d5c0d5c0d5c" }`,
		"image = var.later\nlive_iso = var.later", // the values may come later
		acctest.Image("v1") + "\nready_check = { tcp = var.later }",
	} {
		w.Configure(s.Provider() + "variable \"later\" { default = null }\n" + acctest.Deployment(`"n1"`, settings))
		w.Must("validate")
	}
}

// The plan names what the API of an older Ironic does not have.
func TestFakeDeployment_planRefusesAttributesOfNewerAPI(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{})
	node := site.AddNode(t, s, "n1", nil)
	for _, tt := range []struct{ version, settings, want string }{
		{"1.82", `instance_name = "web-0"`, "instance_name needs API 1.104"},
		{"1.34", `config_drive = { url = "http://x/drive" }`, "config_drive"},
		{"1.55", `config_drive = { url = "http://x/drive" }`, ""}, // needs no Ironic that builds one
		{"1.60", quarantine + "\nallocation_id = " + acctest.Quoted(vif(1)), "on_failure needs API 1.61"},
		{"1.27", vifs(1), "vifs needs API 1.28"},
		{"1.66", fmt.Sprintf("vifs = [{ id = %q, mac = %q }]", vif(1), s.MAC(1)), "vifs needs API 1.67"},
	} {
		w := acctest.NewWorkspace(t, s.Provider("microversion = "+acctest.Quoted(tt.version),
			"provisioning_limit = { max_concurrent = 0 }")+
			acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), tt.settings))
		if tt.want == "" {
			w.Must("plan")
			continue
		}
		acctest.Fails(t, w, []string{"plan"}, tt.want)
	}
}
