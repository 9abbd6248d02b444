package bootiso

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/url"
	"slices"
	"time"
)

// Artifacts are what a machine boots with: an image, and named texts that went into it.
type Artifacts struct {
	URL           string            // of the image
	Version       string            // identity of its content; empty: the URL without its query, which may hold tokens
	SharedContent map[string]string // artifacts of all machines, by name
	HostContent   map[string]string // artifacts of this machine, by name
	Contains      map[string]string // what the image was built with, by name; nil: not known
}

// Identity returns a text that differs for different images.
func (a Artifacts) Identity() string {
	return cmp.Or(a.Version, location(a.URL))
}

// WithoutURL returns artifacts with the same identities and without the URL, which may hold secrets.
func (a Artifacts) WithoutURL() Artifacts {
	a.URL, a.Version = "", a.Identity()
	return a
}

// location returns a URL without user, query and fragment, which may hold secrets.
func location(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.RawQuery, u.ForceQuery, u.Fragment, u.User = "", false, "", nil
	return u.String()
}

// Digest returns a hash of the artifacts. Equal artifacts have equal digests.
func (a Artifacts) Digest() string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(a.SharedContent)) {
		parts = append(parts, "shared", key, a.SharedContent[key])
	}
	for _, key := range slices.Sorted(maps.Keys(a.HostContent)) {
		parts = append(parts, "host", key, a.HostContent[key])
	}
	text := hash(a.Identity())
	for _, part := range parts {
		text += hash(part)
	}
	return hash(text)
}

// Record is the record of a machine's boot on its node. It has hashes instead of URLs and values: URLs hold tokens, and many
// users read nodes.
type Record struct {
	Image         string            `json:"image"`
	URL           string            `json:"url"` // hash of the URL without its query; if the node has another URL, the record is outdated
	SharedContent map[string]string `json:"shared,omitempty"`
	HostContent   map[string]string `json:"host,omitempty"`
	At            time.Time         `json:"at"`
	Boots         int               `json:"boots"` // consecutive boots with this image, each within Window of the last
	// Manual says that only a person could restart the machine at the time of the record, and Obsolete what the restart was for.
	Manual   bool     `json:"manual,omitempty"`
	Obsolete []string `json:"obsolete,omitempty"`
}

// asked returns what a restart by hand was asked for.
func (r Record) asked() []string {
	if len(r.Obsolete) == 0 {
		return []string{ObsoleteImage}
	}
	return r.Obsolete
}

// Window and MaxBoots are the loop guard: at most MaxBoots reboots with one image, each within Window of the last.
const (
	Window   = 24 * time.Hour
	MaxBoots = 3
)

// NewRecord returns the record of a boot with artifacts. before is the record of the last boot; nil if there is none.
func NewRecord(a Artifacts, at time.Time, before *Record) Record {
	r := Record{
		Image: hash(a.Identity()), URL: hash(location(a.URL)), SharedContent: hashes(a.SharedContent),
		HostContent: hashes(a.HostContent), At: at.UTC().Truncate(time.Second), Boots: 1,
	}
	if before != nil && before.Image == r.Image && at.Sub(before.At).Abs() < Window {
		r.Boots = before.Boots + 1
	}
	return r
}

// IsAbout reports whether the record is about a boot of this URL. The query does not count, because Ironic masks tokens.
func (r Record) IsAbout(url string) bool { return r.URL == hash(location(url)) }

// IsOf reports whether the record is about a boot of an image.
func (r Record) IsOf(a Artifacts) bool { return r.Image == hash(a.Identity()) }

// Exhausted reports whether booting with these artifacts once more would exceed the loop guard.
func (r Record) Exhausted(a Artifacts, now time.Time) bool {
	return NewRecord(a, now, &r).Boots > MaxBoots+1 // the first boot is not a reboot
}

func hashes(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for key, value := range m {
		out[key] = hash(value)
	}
	return out
}

// Wanted is an image that a machine has not booted, with the host content that was wanted when the image was first wanted. Content that
// changes afterwards is not in it.
type Wanted struct {
	Image       string            `json:"image"`
	HostContent map[string]string `json:"host,omitempty"`
}

// NextWanted returns what to record of artifacts that are wanted of a machine that keeps running; nil if it has booted that image.
func NextWanted(a Artifacts, booted Record, before *Wanted) *Wanted {
	switch image := hash(a.Identity()); {
	case image == booted.Image:
		return nil
	case before != nil && before.Image == image:
		return before
	default:
		return &Wanted{Image: image, HostContent: hashes(a.HostContent)}
	}
}

// predates reports whether the wanted image is older than the wanted host content. Contains says so better.
func (w *Wanted) predates(a Artifacts) bool {
	return w != nil && a.Contains == nil && w.Image == hash(a.Identity()) && !maps.Equal(w.HostContent, hashes(a.HostContent))
}

// IsOf reports whether the wanted image is that of artifacts.
func (w *Wanted) IsOf(a Artifacts) bool { return w != nil && w.Image == hash(a.Identity()) }

// Holding returns a record of a boot with artifacts, corrected: an image that is older than the wanted host content has the former one.
func (r Record) Holding(a Artifacts, before *Wanted) Record {
	if before.predates(a) {
		r.HostContent = before.HostContent
	}
	return r
}

// hash returns 128 bits of SHA-256 in hex, short enough for a node's extra.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}
