package doctor

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// may says whether Ironic lets the user do something.
type may int

const (
	notKnown may = iota
	allowed
	refused
)

// right is what a feature of the provider needs, and what Ironic says to it.
type right struct {
	feature string // in the words of the guide "What a user may do"
	may     may
	rule    string // of Ironic's policy, which refuses it; "" if Ironic names none
	err     error  // why it is not known
}

// scope is what rights are about.
type scope struct {
	name   string // of the check
	node   string // the machine that was asked about; "" for the site
	rights []right
}

// noObject is the name of a driver, a verb and a power state that no Ironic has, and begins the key that no node has.
const noObject = "terraform-metal-doctor"

// The rights are found out by requests that Ironic refuses in any case, but only after it has looked at its policy
// (reference/keystone.md#checks-of-rights). So none of them changes anything.

type question struct {
	feature string
	since   api.Microversion // in which Ironic has it, and asks its policy first
	method  string
	path    string // {none}: an UUID that nothing has; {node}: that of the machine
	body    map[string]any
}

// aboutSite are the questions about what belongs to no machine. Who may delete something may by default also create it.
var aboutSite = []question{
	{"limit over all projects", 0, http.MethodDelete, "chassis/{none}", nil},
	{"allocation", api.VersionAllocations, http.MethodPost, "allocations", map[string]any{}}, // without a class
	{"enrol hosts", 0, http.MethodPost, "nodes", map[string]any{"driver": noObject}},
	{"write deploy templates", api.VersionDeployTemplates, http.MethodDelete, "deploy_templates/{none}", nil},
	{"write runbooks", api.VersionRunbookTraits, http.MethodPost, "runbooks", map[string]any{}},
	{"write inspection rules", api.VersionInspectionRules, http.MethodDelete, "inspection_rules/{none}", nil},
}

// aboutNode are the questions about a machine, besides those about its attributes.
var aboutNode = []question{
	{"deployments, cleaning, inspection, rescue", 0, http.MethodPut, "nodes/{node}/states/provision", map[string]any{"target": noObject}},
	{"power", 0, http.MethodPut, "nodes/{node}/states/power", map[string]any{"target": noObject}},
	{"create ports", api.VersionPortGroups, http.MethodPost, "ports", map[string]any{
		"node_uuid": "{node}", "address": "02:00:00:00:00:01",
		"portgroup_uuid": "{none}",
	}},
	{"inventory", api.VersionInventory, http.MethodGet, "nodes/{node}/inventory", nil},
}

// change is a question about an attribute of a machine: a patch that sets it to what it is.
type change struct {
	feature string
	path    string
	value   func(*ironic.Node) any
}

func text(of func(*ironic.Node) string) func(*ironic.Node) any {
	return func(n *ironic.Node) any {
		if value := of(n); value != "" {
			return value
		}
		return nil
	}
}

// changes begin with that of extra, because its key does not exist, so that Ironic refuses each patch
// (reference/ironic.md#patching-a-node).
var changes = []change{
	{"marks of runs", "/extra/", nil},
	{"instance_info of deployments", "/instance_info/", nil},
	{"reservation without allocation", "/instance_uuid", text(func(n *ironic.Node) string { return n.InstanceUUID })},
	{"retire (quarantine)", "/retired", func(n *ironic.Node) any { return n.Retired }},
	{"name, BMC, properties", "/driver_info/", nil},
	{"interfaces", "/boot_interface", text(func(n *ironic.Node) string { return n.BootInterface })},
	{"owner", "/owner", text(func(n *ironic.Node) string { return n.Owner })},
	{"lessee", "/lessee", text(func(n *ironic.Node) string { return n.Lessee })},
	{"conductor group", "/conductor_group", func(n *ironic.Node) any { return n.ConductorGroup }},
	{"automated cleaning", "/automated_clean", func(*ironic.Node) any { return false }},
}

var errNotAsked = errors.New("it was not asked for, because there is no right to marks")

// lookAtRights asks for the rights of a user of Keystone: those at the site, and those on a machine for each relation of the user to
// machines.
func lookAtRights(ctx context.Context, client *ironic.Client, who *api.Identity, nodes []ironic.Node) []scope {
	if who == nil {
		return nil
	}
	chosen := samples(who, nodes)
	all := make([]scope, 1+len(chosen))
	routine.Each(len(all), len(all), func(i int) error {
		if i == 0 {
			all[0] = scope{name: "rights at the site", rights: asked(ctx, client, aboutSite, "")}
			return nil
		}
		s := chosen[i-1]
		rights := append(changesOf(ctx, client, s.about), asked(ctx, client, aboutNode, s.about.UUID)...)
		all[i] = scope{s.name, ironic.NodeLabel(s.about), rights}
		return nil
	})
	return all
}

// sample is a machine to which the user is related in one way.
type sample struct {
	name  string
	about *ironic.Node
}

// samples chooses the machines to ask about: any one for a user of the system, otherwise one that the project owns, and one that it leases.
func samples(who *api.Identity, nodes []ironic.Node) (all []sample) {
	first := func(name string, fits func(n ironic.Node) bool) {
		if i := slices.IndexFunc(nodes, fits); i >= 0 {
			all = append(all, sample{name: name, about: &nodes[i]})
		}
	}
	project := who.Project
	if project == "" {
		first("rights on machines", func(ironic.Node) bool { return true })
		return all
	}
	first("rights on machines that the project owns", func(n ironic.Node) bool { return n.Owner == project })
	first("rights on machines that the project leases", func(n ironic.Node) bool { return n.Lessee == project && n.Owner != project })
	first("rights on machines of other projects", func(n ironic.Node) bool { return n.Lessee != project && n.Owner != project })
	return all
}

func asked(ctx context.Context, client *ironic.Client, questions []question, node string) (rights []right) {
	version, _ := client.Microversion(ctx) // it is connected
	for _, q := range questions {
		if q.since > version {
			continue
		}
		names := strings.NewReplacer("{none}", ironic.NewUUID(), "{node}", node)
		var body any
		if q.body != nil {
			filled := map[string]any{}
			for key, value := range q.body {
				filled[key] = names.Replace(value.(string)) //nolint:forcetypeassert // all are texts
			}
			body = filled
		}
		rights = append(rights, judged(q.feature, client.Request(ctx, q.method, names.Replace(q.path), body, nil)))
	}
	return rights
}

// changesOf asks which attributes of a machine the user may change. Without the right to extra, whose key makes Ironic refuse each patch,
// it asks for no other.
func changesOf(ctx context.Context, client *ironic.Client, n *ironic.Node) []right {
	key := strings.ReplaceAll(noObject+"-"+ironic.NewUUID(), "-", "_")
	found := make([]right, len(changes))
	for i, c := range changes {
		found[i] = right{feature: c.feature, err: errNotAsked}
	}
	if found[0] = patched(ctx, client, n, key, changes[:1]); found[0].may != allowed {
		return found
	}
	for i, c := range changes[1:] {
		found[i+1] = patched(ctx, client, n, key, []change{changes[0], c})
	}
	return found
}

// patched sends a patch that Ironic refuses. The result is the right to its last change.
func patched(ctx context.Context, client *ironic.Client, n *ironic.Node, key string, patch []change) right {
	var ops []map[string]any
	for _, c := range patch {
		if c.value == nil {
			ops = append(ops, map[string]any{"op": "replace", "path": c.path + key, "value": true})
			continue
		}
		ops = append(ops, map[string]any{"op": "add", "path": c.path, "value": c.value(n)})
	}
	return judged(patch[len(patch)-1].feature, client.Request(ctx, http.MethodPatch, "nodes/"+n.UUID, ops, nil))
}

// judged says what an answer means for a right: the user has it if Ironic refuses the request for another reason than its policy.
func judged(feature string, err error) right {
	r := right{feature: feature, may: notKnown, err: err}
	var status *api.StatusError
	switch refusal := api.RefusalBy(err); {
	case refusal != nil:
		r.may, r.rule = refused, refusal.Rule
	case err == nil:
		r.may = allowed
	// it was deleted meanwhile
	case api.IsStatus(err, http.StatusNotFound, "Node ") && !api.IsStatus(err, http.StatusNotFound, "inventory record"):
	case errors.As(err, &status) && !status.Foreign && status.Status != http.StatusUnauthorized &&
		status.Status < http.StatusInternalServerError:
		r.may = allowed
	}
	return r
}
