package sharing_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

const (
	profileA = "/rest/server-profiles/0c5f2f6e-2f2c-4f6f-9c9a-0d7cf8a3a001"
	profileB = "/rest/server-profiles/0c5f2f6e-2f2c-4f6f-9c9a-0d7cf8a3a002"
)

func TestOwnerFollowsTheThreeRules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, hardware, applied string
		want                    sharing.Ownership
	}{
		{"no profile, none applied", "", "", sharing.Free},
		{"no profile, a stale one applied", "", profileA, sharing.Free},
		{"blanks are no profile", "  ", "", sharing.Free},
		{"the applied one", profileA, profileA, sharing.UsedByIronic},
		{"the applied one in upper case", strings.ToUpper(profileA), profileA, sharing.UsedByIronic},
		{"the applied one with a slash", profileA + "/", profileA, sharing.UsedByIronic},
		{"the applied one with a host", profileA, "https://oneview.example.com" + profileA, sharing.UsedByIronic},
		{"the applied one with blanks", profileA, " " + profileA + "\n", sharing.UsedByIronic},
		{"another one", profileA, profileB, sharing.UsedByOneView},
		{"none applied", profileA, "", sharing.UsedByOneView},
		{"blanks applied", profileA, " ", sharing.UsedByOneView},
		{"the beginning of the applied one", profileA[:len(profileA)-1], profileA, sharing.UsedByOneView},
		{"nothing that is a URI", "/", "", sharing.UsedByOneView},
		{"nothing that is a URI, twice", "/", "/", sharing.UsedByOneView},
		{"two slashes are no host", "//a/x", "//b/x", sharing.UsedByOneView},
		{"only hosts", "https://a", "https://b", sharing.UsedByOneView},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := sharing.Owner(tt.hardware, tt.applied); got != tt.want {
				t.Errorf("Owner(%q, %q) = %q, want %q", tt.hardware, tt.applied, got, tt.want)
			}
		})
	}
}

// plain reports whether the end of a URI is the end of its path.
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
		owner := sharing.Owner(hardware, applied)
		if (owner == sharing.Free) != (strings.TrimSpace(hardware) == "") {
			t.Fatalf("Owner(%q, %q) = %q: hardware is free if and only if it has no profile", hardware, applied, owner)
		}
		if owner == sharing.UsedByIronic && strings.TrimSpace(applied) == "" {
			t.Fatalf("Owner(%q, %q) = %q, though nothing was applied", hardware, applied, owner)
		}
		if owner == sharing.UsedByIronic && sharing.Owner(applied, hardware) != owner {
			t.Fatalf("Owner(%q, %q) = %q, but not the other way round", hardware, applied, owner)
		}
		if again := sharing.Owner(hardware+"/", applied); owner == sharing.UsedByIronic && plain(hardware) && again != owner {
			t.Fatalf("Owner(%q, %q) = %q, but %q with a slash", hardware, applied, owner, again)
		}
	})
}
