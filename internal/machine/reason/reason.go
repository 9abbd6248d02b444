// Package reason says what Ironic's words about a failure mean: the reason, who is to blame, and what to do next.
package reason

import (
	"cmp"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Blame says whose fault a failure is.
type Blame string

// Blames.
const (
	Machine Blame = "machine" // a disk, the BMC, a network card
	Request Blame = "request" // the image, its checksum, a setting, credentials
	Site    Blame = "site"    // a conductor, the network, the image server
	Unclear Blame = "unclear" // one text of Ironic has several causes
)

// Reason is why operations fail.
type Reason struct {
	ID      string // stable: it is in JSON, metrics and attributes
	Blame   Blame
	Meaning string // a sentence of at most a line
	Next    string // what to do, of at most a line
	Causes  string // the most frequent first
	Look    string // where more stands
	Passes  bool   // by itself, so that trying again may help
	Shared  Shared // "": what the reason speaks against is the machine's own
	pattern *regexp.Regexp
	passing *regexp.Regexp // of the words that pass; nil: all
}

// Shared is what machines share that fail for a reason that is not theirs.
type Shared string

// What is shared. A reason of the site speaks against the conductor, unless its row says otherwise.
const (
	Conductor Shared = "conductor"
	Server    Shared = "server" // of images
	Ramdisk   Shared = "ramdisk"
	Network   Shared = "network"
	Driver    Shared = "driver"   // with the hardware interfaces
	Image     Shared = "image"    // that was asked for
	Settings  Shared = "settings" // that were asked for, on machines of a kind
)

// IDRamdiskMissing is the reason of a deploy ramdisk that its server does not have.
const IDRamdiskMissing = "ramdisk-404"

const idImageMissing = "image-404"

// table has a reason a line, with tabs between its fields; the first pattern that matches wins. A mark says what machines share that fail
// for the reason (Shared), or "passes", that the reason passes by itself; a pattern may follow of the words that do. Most rows have none.
//
//go:embed reasons.tsv
var table string

var all = parse(table)

func parse(table string) (reasons []Reason) {
	lines := strings.Split(strings.TrimSpace(table), "\n")
	for _, line := range lines[1:] {
		f := append(strings.Split(line, "\t"), "")
		r := Reason{
			ID: f[0], Blame: Blame(f[1]), Meaning: f[2], Next: f[3], Causes: f[4], Look: f[5], pattern: regexp.MustCompile(f[6]),
		}
		mark, passing, limited := strings.Cut(f[7], " ")
		if r.Passes = mark == "passes"; limited {
			r.passing = regexp.MustCompile(passing)
		}
		if r.Shared = Shared(mark); r.Passes {
			r.Shared = ""
		}
		if r.Blame == Site && r.Shared == "" {
			r.Shared = Conductor
		}
		reasons = append(reasons, r)
	}
	return reasons
}

// All returns all reasons, in the order in which they are tried.
func All() []Reason { return slices.Clone(all) }

// Of returns the reason that a text of Ironic tells; nil if it is none of the table.
func Of(words string) *Reason {
	for i := range all {
		r := &all[i]
		if !r.pattern.MatchString(words) {
			continue
		}
		if r.passing != nil && !r.passing.MatchString(words) {
			r = new(*r)
			r.Passes = false
		}
		return r
	}
	return nil
}

// OfNode returns the reason of the last failure of a node. What Ironic says of a maintenance counts if last_error is empty: since Ironic
// 31, a successful reading of the power state empties it.
func OfNode(n *ironic.Node) *Reason {
	words := cmp.Or(n.LastError, n.MaintenanceReason)
	found := Of(words)
	if found == nil || found.ID != idImageMissing {
		return found
	}
	for _, key := range []string{"deploy_kernel", "deploy_ramdisk", "deploy_iso", "bootloader", "rescue_kernel", "rescue_ramdisk"} {
		if address := fmt.Sprint(n.DriverInfo[key]); n.DriverInfo[key] != nil && address != "" && strings.Contains(words, address) {
			return ByID(IDRamdiskMissing)
		}
	}
	return found
}

// ByID returns a reason; nil if the table has none with the ID.
func ByID(id string) *Reason {
	for i := range all {
		if all[i].ID == id {
			return &all[i]
		}
	}
	return nil
}

// Line returns a reason in one line, with what it means if the table has it: a record of another version may have others.
func Line(id string) string {
	if known := ByID(id); known != nil {
		return id + ": " + known.Meaning
	}
	return id
}
