package bootiso

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/url"
	"slices"
	"time"
)

// Policy says which machines a new image restarts.
type Policy string

// The policies.
const (
	PolicyAffected Policy = "affected" // those it concerns
	PolicyAlways   Policy = "always"   // all that have not begun an installation
	PolicyNever    Policy = "never"    // none
)

// Names in Status.Obsolete, besides "shared.NAME" and "own.NAME".
const (
	ObsoleteImage   = "image"   // the image itself, of a machine that has not registered or whose policy is "always"
	ObsoleteUnknown = "unknown" // nobody knows what the machine was booted with
)

// Artifacts identify what a machine is booted with.
type Artifacts struct {
	URL     string // where the image is
	Version string // identity of its content; empty: the URL without its query, in which tokens are
	Shared  map[string]string
	Own     map[string]string
}

// identity is what tells one image from another.
func (a Artifacts) identity() string {
	if a.Version != "" {
		return a.Version
	}
	return location(a.URL)
}

// location is a URL without what may be a secret in it: user, query and fragment.
func location(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.RawQuery, u.ForceQuery, u.Fragment, u.User = "", false, "", nil
	return u.String()
}

// Digest identifies the artifacts: those with the same are the same.
func (a Artifacts) Digest() string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(a.Shared)) {
		parts = append(parts, "shared", key, a.Shared[key])
	}
	for _, key := range slices.Sorted(maps.Keys(a.Own)) {
		parts = append(parts, "own", key, a.Own[key])
	}
	text := hash(a.identity())
	for _, part := range parts {
		text += hash(part)
	}
	return hash(text)
}

// Record is what a machine was booted with, as it is kept on its node. It has hashes, no URLs and no values: URLs carry
// tokens, and nodes are read by many.
type Record struct {
	Image  string            `json:"image"`
	URL    string            `json:"url"` // of the URL without its query: whether the node still has it tells whether the record is about what runs
	Shared map[string]string `json:"shared,omitempty"`
	Own    map[string]string `json:"own,omitempty"`
	At     time.Time         `json:"at"`
	Boots  int               `json:"boots"` // how often in a row with this image, within a day of each other
	// Manual says that nobody could restart the machine but a person, when the record was made.
	Manual bool `json:"manual,omitempty"`
}

// Window and MaxBoots are the loop guard: more reboots with one image than this, each within a day of the last, help nobody.
const (
	Window   = 24 * time.Hour
	MaxBoots = 3
)

// NewRecord is the record of a boot with artifacts, after an earlier one (nil: none).
func NewRecord(a Artifacts, at time.Time, before *Record) Record {
	r := Record{Image: hash(a.identity()), URL: hash(location(a.URL)), Shared: hashes(a.Shared), Own: hashes(a.Own), At: at.UTC().Truncate(time.Second), Boots: 1}
	if before != nil && before.Image == r.Image && at.Sub(before.At) < Window {
		r.Boots = before.Boots + 1
	}
	return r
}

// IsAbout reports whether a record is about a machine that has this URL as its image. Ironic shows stars for tokens in it.
func (r Record) IsAbout(url string) bool { return r.URL == hash(location(url)) }

// Exhausted reports whether booting with these artifacts once more would exceed the loop guard.
func (r Record) Exhausted(a Artifacts, now time.Time) bool {
	return NewRecord(a, now, &r).Boots > MaxBoots+1 // the first boot is no reboot
}

// Machine is what the decision is about.
type Machine struct {
	Booted     *Record // nil: unknown
	Want       Artifacts
	Policy     Policy // empty: PolicyAffected
	Installing bool
	Registered bool
	Settled    bool
	Powered    bool // somebody else than a person can restart it
}

// Status is what became of a machine in view of a new image.
type Status struct {
	Stale    bool     // something it was booted with is obsolete
	Obsolete []string // "shared.NAME", "own.NAME", ObsoleteImage or ObsoleteUnknown, sorted
	Action   Action
	Why      string // it is so; ends a sentence that begins with the machine
}

// Judge decides. A machine of which nobody knows what it was booted with is never restarted: what is wanted becomes what
// it is compared with from then on.
func Judge(m Machine) Status {
	if m.Booted == nil {
		return Status{Obsolete: []string{ObsoleteUnknown}, Action: None, Why: "nobody knows what it was booted with"}
	}
	facts, obsolete := m.facts()
	r := facts.decide()
	status := Status{Stale: r.stale, Action: r.action, Why: r.why}
	all := m.Policy == PolicyAlways && facts.Newer && !facts.Installing
	if all && status.Action == None {
		status = Status{Stale: true, Action: Wait, Why: "the newer image has not settled"}
		if facts.Settled {
			status.Action, status.Why = Reboot, "reboot_policy is \"always\""
		}
	}
	if m.Policy == PolicyNever && status.Action != None {
		status.Action, status.Why = None, "reboot_policy is \"never\""
	}
	if status.Action == Reboot && !m.Powered {
		status.Action, status.Why = Manual, status.Why+", and Ironic cannot switch its power"
	}
	if status.Stale {
		status.Obsolete = obsolete
		if facts.Newer && (len(obsolete) == 0 || !facts.Registered) {
			status.Obsolete = append(status.Obsolete, ObsoleteImage)
		}
		slices.Sort(status.Obsolete)
	}
	return status
}

// facts compares what a machine was booted with with what is wanted. Whatever is added to, changed in or removed from
// the configuration of its own is a change of it.
func (m Machine) facts() (Facts, []string) {
	shared := differences("shared.", m.Booted.Shared, hashes(m.Want.Shared))
	own := differences("own.", m.Booted.Own, hashes(m.Want.Own))
	hadOwn := len(m.Booted.Own) > 0
	return Facts{
		Installing: m.Installing, Registered: m.Registered, Settled: m.Settled,
		Newer:          m.Booted.Image != hash(m.Want.identity()),
		SharedObsolete: len(shared) > 0,
		OwnAtBoot:      hadOwn,
		OwnObsolete:    hadOwn && len(own) > 0,
		OwnUnused:      !hadOwn && len(own) > 0,
	}, append(shared, own...)
}

// differences are the names that have another value on one side than on the other, or are missing there.
func differences(prefix string, a, b map[string]string) (names []string) {
	for key, value := range a {
		if other, exists := b[key]; !exists || other != value {
			names = append(names, prefix+key)
		}
	}
	for key := range b {
		if _, exists := a[key]; !exists {
			names = append(names, prefix+key)
		}
	}
	return names
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

// hash shortens SHA-256 to 128 bits: enough to tell things apart, and short enough for a node's extra.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}
