package framework

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// packed returns the base64 of a gzip stream.
func packed(t *testing.T, content []byte) string {
	t.Helper()
	var stream bytes.Buffer
	w := gzip.NewWriter(&stream)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(stream.Bytes())
}

func TestConfigDriveContent_faults(t *testing.T) {
	t.Parallel()
	secret := "not packed"
	for name, c := range map[string]struct{ content, fault string }{
		"fine":             {packed(t, []byte("an ISO")), ""},
		"with line breaks": {packed(t, []byte("an ISO"))[:8] + "\n" + packed(t, []byte("an ISO"))[8:], ""},
		"a text":           {secret, "compressed with gzip"},
		"not compressed":   {base64.StdEncoding.EncodeToString([]byte(secret)), "run gzip first"},
		"cut":              {packed(t, []byte("an ISO"))[:16], "compressed with gzip"},
		"too large inside": {packed(t, make([]byte, MaxConfigDrive+1)), "unpacked has more than 64 MiB"},
		"too large":        {strings.Repeat("A", MaxConfigDrive), "has more than 63 MiB"},
	} {
		got := driveFault(c.content)
		if (c.fault == "") != (got == "") || !strings.Contains(got, c.fault) || strings.Contains(got, secret) {
			t.Errorf("%s: %q, want %q", name, got, c.fault)
		}
	}
}

// Only what cloud-init ignores on a config drive is a warning, and the warning shows nothing of it.
func TestUserData_warnsOfWhatCloudInitIgnores(t *testing.T) {
	t.Parallel()
	const cloud = "#cloud-config\npackages: [s3cret]\n"
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(cloud))
	_ = w.Close()
	for value, want := range map[string]string{
		cloud: "", "    " + cloud: "", "#Cloud-Config\r\n": "", "## template: jinja\n" + cloud: "", "": "", "#!/bin/sh\necho\n": "",
		`{"ignition":{"version":"3.4.0"}}`: "", "version: v1alpha1\nmachine:\n  type: worker\n": "", "#ps1_sysnative\nhostname\n": "",
		"text\nreboot\n": "", "#include\nhttp://config.example.com/x\n": "", "v1": "", "password": "", "dGVzdA==": "",
		"Content-Type: multipart/mixed; boundary=\"x\"\nMIME-Version: 1.0\n": "", "# a comment\npackages: []\n": "",
		"\ufeff" + cloud:                     "byte order mark",
		"# cloud-config\npackages: [s3cret]": "#cloud-config", "#cloud_config\n": "#cloud-config",
		base64.StdEncoding.EncodeToString([]byte(cloud)): "base64", base64.StdEncoding.EncodeToString(packed.Bytes()): "base64",
		base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\necho")) + "\n": "base64",
	} {
		var resp validator.StringResponse
		UserData.ValidateString(t.Context(), validator.StringRequest{ConfigValue: types.StringValue(value)}, &resp)
		var text string
		for _, d := range resp.Diagnostics {
			text += d.Detail()
		}
		if (text == "") != (want == "") || !strings.Contains(text, want) || strings.Contains(text, "s3cret") ||
			resp.Diagnostics.HasError() {
			t.Errorf("%q: %q, want %q", value, text, want)
		}
	}
}
