package oneview_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

func TestSameURI(t *testing.T) {
	t.Parallel()
	const a, b = "/rest/server-profiles/a1", "/rest/server-profiles/b2"
	for name, tt := range map[string]struct {
		one, other string
		want       bool
	}{
		"the same":                   {a, a, true},
		"another resource":           {a, b, false},
		"the beginning of another":   {a, a + "1", false},
		"upper case":                 {a, "/REST/Server-Profiles/A1", true},
		"a slash at the end":         {a, a + "/", true},
		"spaces around it":           {a, " " + a + "\n", true},
		"a host before it":           {a, "https://oneview.example.com" + a, true},
		"two hosts":                  {"https://one.example.com" + a, "http://two.example.com:8443" + a, true},
		"a host, another resource":   {a, "https://oneview.example.com" + b, false},
		"nothing and a resource":     {"", a, false},
		"nothing twice":              {"", "", false},
		"spaces twice":               {" ", " ", false},
		"only a slash twice":         {"/", "/", false},
		"only hosts":                 {"https://a", "https://b", false},
		"the same host, and no path": {"https://a/", "https://a/", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if oneview.SameURI(tt.one, tt.other) != tt.want || oneview.SameURI(tt.other, tt.one) != tt.want {
				t.Errorf("SameURI(%q, %q) = %t, want %t", tt.one, tt.other, !tt.want, tt.want)
			}
			if sameKey := oneview.URIKey(tt.one) == oneview.URIKey(tt.other) && oneview.URIKey(tt.one) != ""; sameKey != tt.want {
				t.Errorf("the keys are %q and %q", oneview.URIKey(tt.one), oneview.URIKey(tt.other))
			}
		})
	}
}
