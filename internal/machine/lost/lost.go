// Package lost says what becomes of what Terraform has in state if Ironic has no record of it, or another one than Terraform has
// seen. A machine outlives its record: what runs on it goes on, and nothing may be done to it because its record is missing.
package lost

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Policy is lost_records of the provider block.
type Policy string

// The policies. An empty one is Refuse.
const (
	Refuse   Policy = "refuse"
	Restore  Policy = "restore"
	Recreate Policy = "recreate"
)

// Record is what Terraform has of a record that Ironic lost.
type Record struct {
	Kind, ID string // of the resource
	Machine  string // name of the machine
	State    string // of the machine when Terraform last saw it
	Use      string // how it was in use then; "": it was idle
	Other    bool   // there is a record, which is not the one that Terraform has seen
	Foreign  bool   // likewise, and another client has made it
	Claimed  bool   // the record of the machine is being restored, and the resource has claimed it
	Site     string // identity of the site that the state notes; "": none
}

// Of returns a record of a node as Terraform has seen that.
func (r Record) Of(node *ironic.Node) Record {
	r.State, r.Use = node.ProvisionState, states.UseOf(node)
	return r
}

// IsOther reports whether Ironic's record of a node is not the one that Terraform has seen: it is older, as in a backup, or was made after
// that. seen is what Seen has returned then, by the clocks of Ironic. Where Terraform has seen no time, a record is no other. Nor is one
// that this provider has restored: for a host that has ended, for the deployment of an instance as soon as it runs.
func IsOther(seen time.Time, n *ironic.Node, instance string) bool {
	if instance != "" && notes.IsRestoring(n) { // whatever the clocks say
		return true
	}
	if seen.IsZero() {
		return false
	}
	return changed(n).Before(seen.Add(-clock.Slack)) || madeAfter(seen, n) && !isRestored(n, instance)
}

// madeAfter reports whether the record of a node was made after Terraform has seen it last.
func madeAfter(seen time.Time, n *ironic.Node) bool {
	return n.CreatedAt.After(seen.Add(clock.Slack))
}

// isRestored reports whether the record of a node is restored, for the deployment of an instance, or for its host.
func isRestored(n *ironic.Node, instance string) bool {
	if notes.IsRestoring(n) {
		return false
	}
	if instance != "" {
		return n.InstanceUUID == instance && states.KeepsDeployment(ironic.State(n.ProvisionState))
	}
	return notes.RestoringOf(n) != nil
}

// changed returns when the provision state of a node has changed last, or else when the node was created.
func changed(n *ironic.Node) time.Time {
	if n.ProvisionUpdatedAt.IsZero() {
		return n.CreatedAt
	}
	return n.ProvisionUpdatedAt
}

// Sight is what Ironic has of a node now, and when the provision state of the node that Terraform has seen last had changed.
type Sight struct {
	Node *ironic.Node
	Err  error // of the read of the node
	Seen time.Time
	// Instance is that of a deployment; "" for a host.
	Instance string
}

// Finds reports whether Ironic has lost a record, and notes in it whether there is another one. A list may lag behind, so it asks for the
// node itself before it says so.
func Finds(ctx context.Context, site *machine.Site, now Sight, r *Record) bool {
	if now.Err == nil && IsOther(now.Seen, now.Node, now.Instance) {
		now.Node, now.Err = site.Ironic.Node(ctx, now.Node.UUID)
		r.Other = now.Err == nil && IsOther(now.Seen, now.Node, now.Instance)
		r.Foreign = r.Other && madeAfter(now.Seen, now.Node) && notes.RestoringOf(now.Node) == nil
	}
	return r.Other || api.IsNotFound(now.Err)
}

// Seen returns what Terraform notes of a node for IsOther: the time of its last change; before where Ironic does not say it.
func Seen(before time.Time, n *ironic.Node) time.Time {
	if at := changed(n); !n.ProvisionUpdatedAt.IsZero() || at.After(before) {
		return at
	}
	return before
}

// isRefused reports whether a plan must not go on with a record. An idle host is made anew only in the site that Terraform knows: another
// one has machines of its own, and a database that lost everything cannot say what was done to the machine since.
func (r Record) isRefused(site Verdict) bool {
	return r.Use != "" || r.Other || site != SameSite
}

// What names the machine of a record, and what Terraform knows of it.
func (r Record) What() string {
	what := cmp.Or(r.Use, r.State)
	if r.Other {
		what += "; Ironic has another record"
	}
	return fmt.Sprintf("%s (%s)", r.Machine, what)
}

type ledger struct {
	mu    sync.Mutex
	lost  map[[2]string]Record // by kind and ID
	spoke bool                 // an error has said everything
	specs map[string]ironic.AllocationSpec
	identity
}

func ledgerOf(site *machine.Site) *ledger {
	return machine.Kept(site, func(*machine.Site) *ledger {
		return &ledger{
			lost: map[[2]string]Record{}, specs: map[string]ironic.AllocationSpec{},
			identity: identity{asking: make(chan struct{}, 1)},
		}
	})
}

// Note notes that this run has found a record lost.
func Note(site *machine.Site, r Record) {
	l := ledgerOf(site)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost[[2]string{r.Kind, r.ID}] = r
}

// find returns the lost record of a resource. A resource that Terraform replaces has no ID in its plan; a host is found by its name.
func (l *ledger) find(kind, id, name string) (Record, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r, is := l.lost[[2]string{kind, id}]; is {
		return r, true
	}
	for _, r := range l.lost {
		if r.Kind == kind && name != "" && r.Machine == name {
			return r, true
		}
	}
	return Record{}, false
}

// MayBeRestored reports whether the lost record of a resource is restored, by this plan or another one.
func MayBeRestored(site *machine.Site, kind, id string, policy Policy) bool {
	r, is := ledgerOf(site).find(kind, id, "")
	return is && !r.Foreign && (policy == Restore || r.Claimed)
}

// IsRestored reports whether a plan restores a record. With "restore", a resource claims its machine; what has claimed one goes on without.
func (r Record) IsRestored(policy Policy) bool { return !r.Foreign && (policy == Restore) != r.Claimed }

// Has reports whether this run has found the record of a resource lost; without an ID and a name, that of any resource of the kind.
func Has(site *machine.Site, kind, id, name string) bool {
	l := ledgerOf(site)
	if _, is := l.find(kind, id, name); is || id+name != "" {
		return is
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(slices.Collect(maps.Keys(l.lost)), func(key [2]string) bool { return key[0] == kind })
}

// KeepAllocation keeps an allocation that Ironic has lost, for the deployment that restores it.
func KeepAllocation(site *machine.Site, spec ironic.AllocationSpec) {
	l := ledgerOf(site)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.specs[spec.UUID] = spec
}

// Allocation returns an allocation that Ironic has lost. Of one that this run does not have, it knows only the UUID.
func Allocation(site *machine.Site, id string) ironic.AllocationSpec {
	l := ledgerOf(site)
	l.mu.Lock()
	defer l.mu.Unlock()
	spec := l.specs[id]
	spec.UUID = id
	return spec
}

// Machines that an error names at most.
const named = 20

// refusal returns the error of a plan about a record: the first one of a run says what is known and what to do, and those after it are
// short.
func (l *ledger) refusal(r Record, endpoint string, site Verdict) decide.Notice {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spoke {
		return decide.Refuse(nil, "Ironic has lost the record of a machine", "As the first of these errors says: "+r.What()+".")
	}
	l.spoke = true
	return decide.Refuse(nil, "Ironic has lost the record of a machine", explain(slices.Collect(maps.Values(l.lost)), endpoint, site))
}

func explain(all []Record, endpoint string, site Verdict) string {
	state := "no record"
	if slices.ContainsFunc(all, func(r Record) bool { return r.Other }) {
		state = "no record, or another one than Terraform has seen,"
	}
	machines := make([]string, 0, len(all))
	for _, r := range all {
		machines = append(machines, r.What())
	}
	slices.Sort(machines)
	machines = slices.Compact(machines)
	rest := ""
	if more := len(machines) - named; more > 0 {
		machines, rest = machines[:named], fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("Ironic at %s has %s of machines that are in this state. %s They may still run, so nothing is done to them.\n\n"+
		"If it is the wrong Ironic, correct endpoint. If it has lost its database, set lost_records = \"restore\" in the provider block: "+
		"that makes the records anew and touches no machine. To enroll, clean and deploy the machines anew, which erases them, set "+
		"lost_records = \"recreate\". To leave them as they are, take them out of the state, hosts and deployments: with removed "+
		"blocks, or terraform state rm for those with a key.\n\n"+
		"To destroy what exists no more, use lost_records = \"recreate\" or -refresh=false.\n\nFound so far, as last seen: %s%s.",
		endpoint, state, site.sentence(), strings.Join(machines, ", "), rest)
}
