package ironic_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// A URL that Ironic, its agent or a BMC cannot fetch is refused with what to write, and shows nothing of itself.
func TestURLFault_saysWhatToWrite(t *testing.T) {
	t.Parallel()
	const scheme, blank, bracket, file = "must begin with http://", "must not contain white space", "brackets", "file:///"
	for url, want := range map[string]string{
		"http://192.0.2.1": "", "https://u:s3cret@web-1:8443/x?y#z": "", "http://[2001:db8::1]/a": "", "http://[2001:db8::1]:80": "",
		"https://img.example.com/a.qcow2?X-Amz-Signature=a%2Fb:c@d": "", "http://x/a%20b": "", "http://x/ä": "",
		"file:///images/a.qcow2": "", "oci://registry:5000/debian:12": "", "glance://0b2a8047-0d5c-4a41-8a0f-0d5c0d5c0d5c": "",
		"glance://host/0B2A8047-0d5c-4a41-8a0f-0d5c0d5c0d5c": "",
		"http://x/s3cret\n": "trimspace()", " http://x/s3cret": "trimspace()", "http://x/a b": "%20", "http://x/a\u00a0b": blank,
		"http://x/a\u200bb": blank, "\ufeffhttp://x/a": blank, "http://x/\ta": blank,
		"": scheme, "debian.qcow2": scheme, "ftp://x/a": scheme, "http://": scheme, "HTTP://x/a": scheme, "http:/x/a": scheme,
		"http:///a": "must have a host", "http://u:s3cret@/a": "must have a host", "https://:8443/a": "must have a host",
		"http://2001:db8::1/a": bracket, "http://u:s3cret@2001:db8::1": bracket, "http://[2001:db8::1/a": bracket,
		"http://[192.0.2.1]/a": bracket, "http://[2001:db8::1]80/a": bracket,
		"http://web-1:x/a": "port", "http://web-1:99999": "port", "http://web-1:0": "port",
		"file://images/a": file, "file://": scheme, "file:///images/": file, "glance://my-image": "UUID",
	} {
		got := ironic.URLFault(url, "http", "https", "file", "oci", "glance")
		if (got == "") != (want == "") || !strings.Contains(got, want) || strings.Contains(got, "s3cret") {
			t.Errorf("%q: %q, want %q", url, got, want)
		}
	}
	for url, want := range map[string]string{
		"tftp://192.0.2.1/bios.bin": "", "bios.bin": "a scheme", "://x": "a scheme", "ftp://": "a scheme",
	} {
		if got := ironic.URLFault(url); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", url, got, want)
		}
	}
}
