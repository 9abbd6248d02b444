package oneview_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

const (
	profileA = "/rest/server-profiles/0c5f2f6e-2f2c-4f6f-9c9a-0d7cf8a3a001"
	profileB = "/rest/server-profiles/0c5f2f6e-2f2c-4f6f-9c9a-0d7cf8a3a002"
)

func TestOwnerFollowsTheThreeRules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, hardware, applied string
		want                    oneview.Ownership
	}{
		{"no profile, none applied", "", "", oneview.Free},
		{"no profile, a stale one applied", "", profileA, oneview.Free},
		{"blanks are no profile", "  ", "", oneview.Free},
		{"the applied one", profileA, profileA, oneview.UsedByIronic},
		{"the applied one in upper case", strings.ToUpper(profileA), profileA, oneview.UsedByIronic},
		{"the applied one with a slash", profileA + "/", profileA, oneview.UsedByIronic},
		{"the applied one with a host", profileA, "https://oneview.example.com" + profileA, oneview.UsedByIronic},
		{"the applied one with blanks", profileA, " " + profileA + "\n", oneview.UsedByIronic},
		{"another one", profileA, profileB, oneview.UsedByOneView},
		{"none applied", profileA, "", oneview.UsedByOneView},
		{"blanks applied", profileA, " ", oneview.UsedByOneView},
		{"the beginning of the applied one", profileA[:len(profileA)-1], profileA, oneview.UsedByOneView},
		{"nothing that is a URI", "/", "", oneview.UsedByOneView},
		{"nothing that is a URI, twice", "/", "/", oneview.UsedByOneView},
		{"two slashes are no host", "//a/x", "//b/x", oneview.UsedByOneView},
		{"only hosts", "https://a", "https://b", oneview.UsedByOneView},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := oneview.Owner(tt.hardware, tt.applied); got != tt.want {
				t.Errorf("Owner(%q, %q) = %q, want %q", tt.hardware, tt.applied, got, tt.want)
			}
		})
	}
}

// plain reports whether a slash at the end of a URI is one at the end of its path.
func plain(uri string) bool {
	return !strings.ContainsAny(uri, "?#") && !strings.ContainsFunc(uri, unicode.IsSpace)
}

func FuzzOwner(f *testing.F) {
	f.Add(profileA, profileA)
	f.Add(profileA, profileB)
	f.Add("https://oneview.example.com"+profileA, "")
	f.Add("/", "//")
	f.Add("", " ")
	f.Fuzz(func(t *testing.T, hardware, applied string) {
		owner := oneview.Owner(hardware, applied)
		if (owner == oneview.Free) != (strings.TrimSpace(hardware) == "") {
			t.Fatalf("Owner(%q, %q) = %q: hardware is free if and only if it has no profile", hardware, applied, owner)
		}
		if owner == oneview.UsedByIronic && strings.TrimSpace(applied) == "" {
			t.Fatalf("Owner(%q, %q) = %q, though nothing was applied", hardware, applied, owner)
		}
		if owner == oneview.UsedByIronic && oneview.Owner(applied, hardware) != owner {
			t.Fatalf("Owner(%q, %q) = %q, but not the other way round", hardware, applied, owner)
		}
		if again := oneview.Owner(hardware+"/", applied); owner == oneview.UsedByIronic && plain(hardware) && again != owner {
			t.Fatalf("Owner(%q, %q) = %q, but %q with a slash", hardware, applied, owner, again)
		}
	})
}
