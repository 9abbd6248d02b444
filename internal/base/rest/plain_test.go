package rest_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

func TestPlainURL(t *testing.T) {
	t.Parallel()
	for address, want := range map[string][2]string{ // origin, with the name of the file
		"http://images:8080/debian-12.qcow2":                        {"http://images:8080", "http://images:8080/debian-12.qcow2"},
		"https://u:hunter2@images/t/hunter2/a.raw?s=hunter2#hunter": {"https://images", "https://images/…/a.raw"},
		"https://images/hunter2":                                    {"https://images", "https://images/…/"},
		"https://images/a/hunter2/":                                 {"https://images", "https://images/…/"},
		"https://images/hunter2%2Fa":                                {"https://images", "https://images/…/"},
		"https://images/SHA256SUMS.12345":                           {"https://images", "https://images/…/"},
		"https://images":                                            {"https://images", "https://images"},
		"http://[2001:db8::1]/":                                     {"http://[2001:db8::1]", "http://[2001:db8::1]"},
		"oci://registry/team/image:v1":                              {"oci://registry", "oci://registry/team/image:v1"},
		"file:///opt/a.qcow2":                                       {"an address that cannot be read", "file:///opt/a.qcow2"},
		"ec7b1f4e-8a7e-4a3e-9a3a-2d3c1f0f5a11":                      {"an address that cannot be read", "ec7b1f4e-8a7e-4a3e-9a3a-2d3c1f0f5a11"},
		"http://images/%zz":                                         {"an address that cannot be read", "an address that cannot be read"},
		"":                                                          {"an address that cannot be read", ""},
	} {
		if got := [2]string{rest.Origin(address), rest.PlainURL(address)}; got != want {
			t.Errorf("%s\n got %q\nwant %q", address, got, want)
		}
	}
}
