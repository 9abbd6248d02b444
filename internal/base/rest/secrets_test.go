package rest_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

func TestRedact_urls(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"https://admin:s3cret@ironic.example.com:6385" contains credentials`: `"https://******@ironic.example.com:6385" contains credentials`,
		"https://admin:pa/ss#w?rd@ironic:6385/v1 is not a URL":                "https://******@ironic:6385/v1 is not a URL",
		"https://admin:p@ss@ironic/v1":                                        "https://******@ironic/v1",
		"https://admin:1234@ironic/v1":                                        "https://******@ironic/v1",
		"https://ghp_token@host/a.qcow2":                                      "https://******@host/a.qcow2",
		"Image http://u:p@[fe80::1]:80/a.img?sig=1 could not be found.": "Image http://******@[fe80::1]:80/a.img?****** " +
			"could not be found.",
		"get http://images/a.qcow2?X-Amz-Signature=abc&X-Amz-Date=1, then": "get http://images/a.qcow2?******, then",
		"(http://images/a.qcow2?token)":                                    "(http://images/a.qcow2?******)",
		"Max retries exceeded with url: /a.qcow2?sig=abc%2F (Caused by X)": "Max retries exceeded with url: " +
			"/a.qcow2?****** (Caused by X)",
		"redfish://10.0.0.5/redfish/v1/Systems/1":   "redfish://10.0.0.5/redfish/v1/Systems/1",
		"oci://quay.io/site/image@sha256:0123":      "oci://quay.io/site/image@sha256:0123",
		"oci://quay.io:5000/site/image@sha256:0123": "oci://quay.io:5000/site/image@sha256:0123",
		"write to ops@example.com. See https://example.com/a. Why? Because.": "write to ops@example.com. See " +
			"https://example.com/a. Why? Because.",
		"Is it on/off? Look.":                  "Is it on/off? Look.",
		"on/off?\nyes":                         "on/off?\nyes",
		"Invalid query parameter ?detail=True": "Invalid query parameter ?detail=True",
		"cifs://dom;user:pw@files/share/a.iso": "cifs://******@files/share/a.iso",
		"two: https://a:bcd@one/x?y=z and https://c:def@two/x?y=z": "two: https://******@one/x?****** and " +
			"https://******@two/x?******",
		`{"href": "https://a:bcd@one/x?y=z"}`:                          `{"href": "https://******@one/x?******"}`,
		"file:///opt/a.qcow2":                                          "file:///opt/a.qcow2",
		"https://one/x#hunter2, https://two/y?a=b#hunter2 and disk #2": "https://one/x#******, https://two/y?****** and disk #2",
		"attribute image.url: \"ftp://user:pw@host/image\" must begin with http or file": "attribute image.url: " +
			"\"ftp://******@host/image\" must begin with http or file",
	} {
		var s rest.Secrets
		if got := s.Redact(text); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestRedact_partsOfHiddenURLs(t *testing.T) {
	t.Parallel()
	var s rest.Secrets
	s.HideURL("https://robot:hunter%2F22@images/a.qcow2?X-Amz-Expires=600&X-Amz-Signature=0123456789abcdef%2Fghi&response=download")
	s.HideURL("https://ghp_0123456789@images/a.qcow2")
	s.HideURL("https://images/a.qcow2#0123456789-fragment")
	s.HideURL("not a URL? no@where")
	for _, text := range []string{
		"401 for user robot with password hunter/22", "basic auth robot:hunter%2F22",
		"query X-Amz-Expires=600&X-Amz-Signature=0123456789abcdef%2Fghi&response=download is wrong",
		"signature 0123456789abcdef/ghi does not match", "no access for ghp_0123456789", "no part 0123456789-fragment",
	} {
		got := s.Redact(text)
		for _, secret := range []string{"hunter", "0123456789"} {
			if strings.Contains(got, secret) {
				t.Errorf("%q contains %q", got, secret)
			}
		}
	}
	if text := "the download by robot took 600 s, not a URL? no@where"; s.Redact(text) != text {
		t.Errorf("ordinary words became %q", s.Redact(text))
	}
}

func TestRedact_quotedAndEscapedSecrets(t *testing.T) {
	t.Parallel()
	var s rest.Secrets
	for _, secret := range []string{`a"b\c/d`, "line one\nline two", "true", "abc", "secret", "secretary"} {
		s.Hide(secret)
	}
	for text, want := range map[string]string{
		`is a"b\c/d.`: "is ******.", `is "a\"b\\c/d".`: `is "******".`, "at /a%22b%5Cc%2Fd/": "at /******/",
		"was line one\nline two": "was ******", `was "line one\nline two"`: `was "******"`,
		"true abc": "true abc", "secretary": "******", "": "",
	} {
		if got := s.Redact(text); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}
