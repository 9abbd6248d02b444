// Package notes has what the provider notes on a node or an allocation, so that later runs and people know it. A note is one file: its key,
// its type, how it is written and read, until when it counts, and what it says to people. The table lists all of them.
package notes

import (
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Notes that the provider shows to no user. The packages of their nouns write and read them.
const (
	// KeyCabling: what the metal_host of the node expects of its cables, by MAC address. See internal/host/cabling.
	KeyCabling = "terraform_metal_cabling"
	// KeyInspection: the inspection that triggers have requested last. See internal/host.
	KeyInspection = "terraform_metal_inspection"
	// KeyMarker, in instance_info: what the node was deployed with. See internal/deploy.
	KeyMarker = "terraform_metal"
)

// table lists all notes, in the order in which people read them if nothing else orders them. All but KeyMarker are in extra, which Ironic
// keeps; it clears instance_info when it undeploys a node. says returns what the note on a node says at a time by the clock of the site. It
// is nil if the provider shows the note to no user.
var table = []struct {
	key  string
	says func(n *ironic.Node, now time.Time) Words
}{
	{KeyDiscovery, sayDiscovery},
	{string(MarkCreation), sayCreation},
	{string(MarkReservation), sayReservation},
	{KeyOperation, sayOperation},
	{KeyTurn, sayTurn(false)},
	{KeyHostTurn, sayTurn(true)},
	{KeyAllocation, saySuspended},
	{KeyQuarantine, sayQuarantine},
	{KeyErasure, sayErasure},
	{KeyService, sayService},
	{KeyReady, sayReady},
	{KeyBoot, sayBoot},
	{KeyCabling, nil},
	{KeyCreated, nil}, // of an allocation
	{KeyEnrolled, nil},
	{KeyFailures, nil},
	{KeyInspection, nil},
	{KeyMarker, nil},
	{KeyReplaced, nil},
	{KeyRestoring, sayRestoring},
	{ironic.KeyProbe, nil},
}

// OwnKey reports whether a key of extra or instance_info is a note of any package or version of this provider. Users cannot set such a key,
// and neither an import nor a data source shows it.
func OwnKey(key string) bool {
	return key == KeyMarker || strings.HasPrefix(key, "terraform_metal_") || strings.HasPrefix(key, "metal_oneview_")
}

func words(n *ironic.Node, now time.Time) (all []Words) {
	for _, note := range table {
		if note.says != nil {
			all = append(all, note.says(n, now))
		}
	}
	return all
}

// Told returns what the notes on a node tell at a time, the oldest first. Those without a time come first.
func Told(n *ironic.Node, now time.Time) []Note {
	all := []Note{}
	for _, w := range words(n, now) {
		all = append(all, w.Told...)
	}
	for i := range all {
		all[i].At, all[i].Until = all[i].At.UTC(), all[i].Until.UTC()
	}
	slices.SortStableFunc(all, func(a, b Note) int { return a.At.Compare(b.At) })
	return all
}

// Unfinished returns what the notes on a node say that runs and commands have begun and not ended.
func Unfinished(n *ironic.Node, now time.Time) (all []*Left) {
	for _, w := range words(n, now) {
		if w.Left != nil {
			all = append(all, w.Left)
		}
	}
	return all
}

// Advice returns what the notes on a node advise with an urgency.
func Advice(n *ironic.Node, now time.Time, urgency Urgency) (all []string) {
	for _, w := range words(n, now) {
		if w.Advice != "" && w.Urgency == urgency {
			all = append(all, w.Advice)
		}
	}
	return all
}
