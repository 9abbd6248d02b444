// Package notes has what the provider notes on a node or an allocation, so that later runs and people know it. A note is one file: its key,
// its type, how it is written and read, until when it counts, and what it says to people. The table lists all of them.
package notes

import (
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
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

// Who may write a note by Ironic's policy: whoever may edit extra of a node, its instance_info, or extra of an allocation.
const (
	inExtra      = "members of owner and lessee"
	inInstance   = "members of the owner, managers of the lessee"
	inAllocation = "members of its project"
)

// table lists all notes, in the order in which people read them if nothing else orders them. says returns what the note on a node says at a
// time by the clock of the site; nil: the provider shows the note to no user. of says who may write it, causes what a forged one can cause
// at most, and check why no more: templates/guides/tenants.md has these columns.
var table = []struct {
	key               string
	says              func(n *ironic.Node, now time.Time) Words
	of, causes, check string
}{
	{
		KeyDiscovery, sayDiscovery, inExtra, "a node of the user's own project gets a name in a discovery", "the node's owner; it is " +
			"reserved to be named",
	},
	{
		string(MarkCreation), sayCreation, inExtra + "; of an allocation: " + inAllocation,
		"the run that creates the object stops, and removes it from its state; the object stays", "no older than a day; no node of " +
			"another owner or lessee, or with a reservation, is taken over",
	},
	{
		string(MarkReservation), sayReservation, inExtra, "the same for a deployment", "the reservation must be the noted one, of the " +
			"user's own project",
	},
	{
		KeyOperation, sayOperation, inExtra, "`metal` refuses other commands for an hour, and proposes to end one of five",
		"known commands only, no older than a day, of a qualification 8 days",
	},
	{
		KeyTurn, sayTurn(false), inExtra, "members of the group wait for 20 minutes, or a pause of at most a day, or fewer go at once; " +
			"if it says failed, their applies end with an error that names the node", "the node's state and reservation, the sign of " +
			"life of the run; `metal ready`",
	},
	{KeyHostTurn, sayTurn(true), inExtra, "the same", "the same"},
	{
		KeyAllocation, saySuspended, inExtra, "after an undeployment, the allocation is made again with other contents, or dropped " +
			"with a warning", "its only candidate is the node",
	},
	{KeyQuarantine, sayQuarantine, inExtra, "nothing", "`retired_reason` must say the same; only members of the owner may write that"},
	{
		KeyErasure, sayErasure, inExtra, "`last_erasure`, `metal show` and `metal timeline` show a cleaning as noted", "Ironic's times " +
			"must not contradict it",
	},
	{KeyService, sayService, inExtra, "the same for a service", "the same"},
	{KeyReady, sayReady, inExtra, "the machine counts as being checked for an hour, or as not ready until the next apply", "no state " +
		"since; the server of a URL only"},
	{
		KeyBoot, sayBoot, inExtra, "a plan shows a restart with a live ISO that is not needed, or omits one", "`automated_clean`, VIFs " +
			"and `instance_info` of a node that others may edit change only as this run has noted",
	},
	{
		KeyHardware, sayHardware, inExtra, "an allocation with `hardware_as_expected` reserves the machine, or does not", "the last " +
			"inspection",
	},
	{
		KeyQualification, sayQualification, inExtra, "an allocation with `qualified_within` reserves the machine, or does not; it " +
			"enters the pool without its steps, or runs them again while it is free; `metal qualify` runs others, which it names " +
			"first", "the last inspection",
	},
	{KeyCabling, nil, inExtra, "a wrong cable is reported, or is not", "the last inspection"},
	{KeyCreated, nil, inAllocation, "`metal timeline` shows another beginning", ""},
	{KeyEnrolled, nil, inExtra, "discoveries ignore the node", "only a node without a name in state enroll"},
	{KeyFailures, nil, inExtra, "the machine waits behind others of its run", "at most as many as the queue tells apart"},
	{KeyInspection, nil, inExtra, "an interrupted inspection is repeated or omitted", "no deployed machine is inspected"},
	{
		KeyMarker, nil, inInstance, "a plan shows that other content runs", "the state and its time must be the noted ones; its " +
			"writers may deploy the machine",
	},
	{KeyReplaced, nil, inExtra, "`replaced` is executed once more, as planned, or is omitted", "the state has the value, too"},
	{
		KeyRestoring, sayRestoring, inExtra, "plans stop, or put the machine into maintenance or out of it", "`automated_clean` of a " +
			"node that others may edit changes only out of the maintenance of a restoration",
	},
	{ironic.KeyProbe, nil, inExtra, "nothing", "only on nodes that a test has made"},
}

// OwnKey reports whether a key of extra or instance_info is a note of any package or version of this provider. Users cannot set such a key,
// and neither an import nor a data source shows it.
func OwnKey(key string) bool {
	return key == KeyMarker || strings.HasPrefix(key, "terraform_metal_") || strings.HasPrefix(key, "metal_oneview_")
}

func words(n *ironic.Node, now time.Time) (all []Words) {
	for _, note := range table {
		if note.says != nil {
			all = append(all, note.says(n, now).heard(note.key, "node unset "+ironic.NodeArgument(n), now))
		}
	}
	return all
}

// heard returns words as they are fit to be shown, whoever has written the note: those of a note of a time to come, which counts for
// nothing, say so. unset begins the command of Ironic that removes the note.
func (w Words) heard(key, unset string, now time.Time) Words {
	for i := range w.Told {
		told := &w.Told[i]
		if _, known := clock.Age(told.At, now); !known && !told.At.IsZero() {
			next := "baremetal " + unset + " --extra " + key
			w.Left = &Left{Text: "its note " + key + " counts for nothing: it is of " + told.At.UTC().Format(time.RFC3339) +
				", a time to come", Failed: true, Next: next}
			w.Urgency, w.Advice = Begun, "A note counts for nothing, because its time is to come: another client has made it up, or a "+
				"clock was wrong. Remove it: "+next
		}
		told.At, told.Until = plainTime(told.At), plainTime(told.Until)
		told.Text, told.By = plain(told.Text), plain(told.By)
	}
	if w.Left != nil {
		w.Left.Text, w.Left.Since = plain(w.Left.Text), plainTime(w.Left.Since)
	}
	w.Advice = plain(w.Advice)
	return w
}

// longestText is how much of a text is shown.
const longestText = 1000

func plain(text string) string {
	text = rest.OneLine(text)
	if runes := []rune(text); len(runes) > longestText {
		text = string(runes[:longestText]) + "…"
	}
	return text
}

// plainTime returns a time in UTC; zero for one that JSON cannot have.
func plainTime(at time.Time) time.Time {
	if at = at.UTC(); at.Year() < 1 || at.Year() > 9999 {
		return time.Time{}
	}
	return at
}

// Told returns what the notes on a node tell at a time, the oldest first. Those without a time come first.
func Told(n *ironic.Node, now time.Time) []Note {
	all := []Note{}
	for _, w := range words(n, now) {
		all = append(all, w.Told...)
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
