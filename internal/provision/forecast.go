package provision

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/agext/levenshtein"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Doubt is a reason why the apply of an allocation will probably fail.
type Doubt struct {
	Attribute       string // the attribute of metal_allocation that demands it
	Summary, Detail string
	Fatal           bool // the apply fails certainly
}

// Foresee returns what speaks against an allocation that is planned, from the list of nodes that all plans share. vague says that some
// of its demands are not known yet. Foresee leaves out what a host may satisfy that this plan creates or changes, if Terraform has
// planned the host before. It does so if the allocation depends on the host; if not, the apply may make the allocation before the
// host, so that the doubt is justified.
func (c *Site) Foresee(ctx context.Context, r Request, vague bool) ([]Doubt, error) {
	planned := expectedOf(c)
	spec := r.AllocationSpec
	named := candidatesOf(spec)
	expectsClass := spec.ResourceClass != "" && planned.class(spec.ResourceClass)
	expectsNode := slices.ContainsFunc(named, planned.host)
	if expectsClass && !slices.ContainsFunc(named, func(ref string) bool { return !planned.host(ref) }) {
		return nil, nil
	}
	all, err := c.NodesForPlan(ctx)
	if err != nil {
		return nil, err
	}
	excluded := c.unknownExcluded(r, all)
	doubts := c.gapDoubts(r, all, expectsClass)
	if len(doubts) > 0 || vague || expectsClass || expectsNode {
		return append(doubts, excluded...), nil
	}
	census, _, err := c.examine(ctx, r, all, inventoriesOfPlans)
	if err == nil && census.IsEmpty() && !c.existsAlready(ctx, spec.Name) {
		attribute := attributeOf(spec)
		if len(census.Lacks) > 0 {
			attribute = "require"
		}
		doubts = append(doubts, Doubt{Attribute: attribute, Summary: "No node matches now", Detail: fmt.Sprintf("%s. %s", census, r.unlessPlanned())})
	}
	return append(doubts, excluded...), err
}

// unknownExcluded returns a doubt for each excluded node that Ironic does not know, and that no host of this plan may be: a wrong name
// excludes nothing, so that the allocation may reserve the node that was meant.
func (c *Site) unknownExcluded(r Request, all map[string]*ironic.Node) (doubts []Doubt) {
	if r.Require == nil {
		return nil
	}
	for _, ref := range r.Require.Exclude {
		for _, g := range gapsOf(ironic.AllocationSpec{Node: ref}, all) {
			if !expectedOf(c).host(ref) {
				doubts = append(doubts, Doubt{Attribute: "require", Summary: g.summary(), Detail: g.String() + " So require.exclude does not keep the " + r.what() + " from any node by that name."})
			}
		}
	}
	return doubts
}

// gapDoubts names what a request demands and no node has, unless this plan creates or changes a host that may have it.
func (c *Site) gapDoubts(r Request, all map[string]*ironic.Node, expectsClass bool) (doubts []Doubt) {
	for _, g := range gapsOf(r.AllocationSpec, all) {
		switch {
		case g.isNode() && expectedOf(c).host(g.value), !g.isNode() && expectsClass:
		default:
			doubts = append(doubts, Doubt{Attribute: g.attribute, Summary: g.summary(), Detail: g.String() + " " + r.unlessPlanned()})
		}
	}
	return doubts
}

// ForeseeGroup is Foresee for a group that is planned. A doubt that no host can remove which others may add is fatal.
func (c *Site) ForeseeGroup(ctx context.Context, g *Group, vague bool) ([]Doubt, error) {
	g.group = g.Name
	if vague || expectedOf(c).class(g.ResourceClass) || len(g.lacking()) == 0 {
		return nil, nil
	}
	all, err := c.NodesForPlan(ctx)
	if err != nil {
		return nil, err
	}
	excluded := c.unknownExcluded(g.Request, all)
	if doubts := c.gapDoubts(g.Request, all, false); len(doubts) > 0 {
		return append(doubts, excluded...), nil
	}
	if reason := g.cannotHold(all); reason != "" {
		return []Doubt{{Attribute: "max_per_domain", Summary: "Group cannot be spread", Detail: reason + " Raise max_per_domain, or make the group smaller.", Fatal: true}}, nil
	}
	need := 0
	for _, m := range g.lacking() {
		if !c.existsAlready(ctx, m.Name) {
			need++
		}
	}
	g.enough = inventoriesOfPlans
	census, free, err := c.examine(ctx, g.Request, all, inventoriesOfPlans)
	usable := len(g.Spread.choose(free, g.used(), need))
	if err != nil || usable+census.Unread >= need {
		return excluded, err
	}
	attribute := attributeOf(g.AllocationSpec)
	if usable < len(free) {
		attribute = "max_per_domain"
	}
	short := Doubt{Attribute: attribute, Summary: "Too few nodes match now", Detail: fmt.Sprintf("%s, and %d can have one: %s. %s", needs(need), usable, census, g.unlessPlanned())}
	return append([]Doubt{short}, excluded...), nil
}

// UnknownNode says that Ironic knows no node of a name or UUID, and names similar ones. It returns "" if Ironic knows the node, or if
// this plan creates or changes a host that may be meant.
func (c *Site) UnknownNode(ctx context.Context, ref string) (string, error) {
	if expectedOf(c).host(ref) {
		return "", nil
	}
	all, err := c.NodesForPlan(ctx)
	if err != nil {
		return "", err
	}
	for _, g := range gapsOf(ironic.AllocationSpec{Node: ref}, all) {
		return g.String(), nil
	}
	return "", nil
}

// existsAlready reports whether there is an allocation of this name, for example because a run was killed after it had created it. The
// apply takes it over, or explains why not.
func (c *Site) existsAlready(ctx context.Context, name string) bool {
	if name == "" {
		return false
	}
	all, err := c.AllocationsForPlan(ctx)
	if err != nil { // the apply will tell
		return false
	}
	for _, a := range all {
		if a.Name == name {
			return true
		}
	}
	return false
}

// unlessPlanned ends the description of a doubt.
func (r *Request) unlessPlanned() string {
	what := r.what()
	dependsOn := "If this configuration creates or changes the host that is meant, " +
		"add depends_on with that metal_host to the " + what + ": without it, Terraform may make the " + what + " before the host."
	if r.Wait > 0 {
		return fmt.Sprintf("The apply waits up to %s for such a node (wait_for_capacity), and then fails for this %s. ", r.Wait, what) + dependsOn
	}
	return "The apply fails for this " + what + ", unless that changes before. " + dependsOn
}

// candidatesOf returns the names and UUIDs of nodes in an allocation.
func candidatesOf(spec ironic.AllocationSpec) []string {
	if spec.Node != "" {
		return []string{spec.Node}
	}
	return spec.CandidateNodes
}

// attributeOf returns the attribute that restricts the choice of nodes most.
func attributeOf(spec ironic.AllocationSpec) string {
	switch {
	case spec.Node != "":
		return "backfill_node"
	case len(spec.CandidateNodes) > 0:
		return "candidate_nodes"
	}
	return "resource_class"
}

// gap is something that an allocation demands and that no node of the site has.
type gap struct {
	attribute, value string
	have             map[string]int // how many nodes have each of the other values
}

// gapsOf returns what an allocation demands and no node has: names, the class, traits.
func gapsOf(spec ironic.AllocationSpec, all map[string]*ironic.Node) []gap {
	names, uuids, classes, traits := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for _, node := range all {
		names[node.Name]++
		uuids[node.UUID]++
		classes[node.ResourceClass]++
		for _, trait := range node.Traits {
			traits[trait]++
		}
	}
	var gaps []gap
	for _, ref := range candidatesOf(spec) {
		if names[ref] == 0 && uuids[ref] == 0 {
			gaps = append(gaps, gap{attributeOf(spec), ref, names})
		}
	}
	if spec.ResourceClass != "" && classes[spec.ResourceClass] == 0 {
		gaps = append(gaps, gap{"resource_class", spec.ResourceClass, classes})
	}
	for _, trait := range spec.Traits {
		if traits[trait] == 0 {
			gaps = append(gaps, gap{"traits", trait, traits})
		}
	}
	return gaps
}

func (g gap) isNode() bool { return g.attribute == "candidate_nodes" || g.attribute == "backfill_node" }

// summary is what all gaps of a kind have in common, so that Terraform folds their warnings.
func (g gap) summary() string {
	switch g.attribute {
	case "resource_class":
		return "No node has this class"
	case "traits":
		return "No node has this trait"
	}
	return "Ironic does not know this node"
}

// String says what is missing, and which values are similar or exist.
func (g gap) String() string {
	what, known := "Ironic knows no node "+g.value, ""
	switch g.attribute {
	case "resource_class":
		what, known = fmt.Sprintf("No node has the class %q", g.value), "The classes of the nodes: "
	case "traits":
		what, known = "No node has the trait "+g.value, "The traits of the nodes: "
	}
	if like := similar(g.value, g.have); len(like) > 0 {
		return fmt.Sprintf("%s; similar: %s.", what, strings.Join(like, ", "))
	}
	if list := commonest(g.have); known != "" && list != "" {
		return fmt.Sprintf("%s. %s%s.", what, known, list)
	}
	return what + "."
}

const fewCommon = 10 // existing values that a message names

const (
	fewSimilar = 3 // similar values that a message names
	mostEdits  = 2 // edits that make one value out of a similar one
)

// similar returns the values that may have been meant, the nearest first. Upper and lower case do not matter.
func similar(value string, have map[string]int) []string {
	edits := func(other string) int {
		return levenshtein.Distance(strings.ToLower(value), strings.ToLower(other), nil)
	}
	like := slices.DeleteFunc(slices.Sorted(maps.Keys(have)), func(other string) bool { return other == "" || edits(other) > mostEdits })
	slices.SortStableFunc(like, func(a, b string) int { return cmp.Compare(edits(a), edits(b)) })
	return like[:min(len(like), fewSimilar)]
}

// commonest lists the values that most nodes have, with the number of nodes.
func commonest(have map[string]int) string {
	values := slices.DeleteFunc(slices.Sorted(maps.Keys(have)), func(value string) bool { return value == "" })
	slices.SortStableFunc(values, func(a, b string) int { return have[b] - have[a] })
	var parts []string
	for _, value := range values[:min(len(values), fewCommon)] {
		parts = append(parts, fmt.Sprintf("%s (%d)", value, have[value]))
	}
	if more := len(values) - fewCommon; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

// ExpectedHost is a host that a plan creates or changes. An empty field is not known yet.
type ExpectedHost struct {
	ID, Name, Class string
	Target          string // its target_state
	Network, Boot   string // its network and boot interfaces
	NeverOff        *bool  // disable_power_off
	BootPort        bool   // it may get a port from which it can boot
}

// expected is what the resources of a run tell each other while they are planned. Terraform plans a resource after those that it
// depends on, and in any order otherwise.
type expected struct {
	mu    sync.Mutex
	hosts []ExpectedHost
	names map[string]string // that this plan gives to discovered nodes, with their UUIDs
}

func expectedOf(s *Site) *expected {
	return kept(s, func(*Site) *expected { return &expected{names: map[string]string{}} })
}

// ExpectName records that this plan gives a name to a discovered node, so that the host of that name, which is planned afterwards, knows that it
// takes the node over.
func (c *Site) ExpectName(name, node string) {
	planned := expectedOf(c)
	planned.mu.Lock()
	defer planned.mu.Unlock()
	planned.names[name] = node
}

// node returns the UUID of the discovered node to which this plan gives a name; "" if none.
func (e *expected) node(name string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.names[name]
}

// ExpectHost records that this plan creates or changes a host, so that an allocation which depends on it does not warn that the
// host is missing or does not match yet.
func (c *Site) ExpectHost(h ExpectedHost) {
	planned := expectedOf(c)
	planned.mu.Lock()
	defer planned.mu.Unlock()
	planned.hosts = append(planned.hosts, h)
}

// host reports whether this plan creates or changes a host that may be the one with a name or UUID.
func (e *expected) host(ref string) bool {
	return e.any(func(h ExpectedHost) bool { return h.Name == "" || h.Name == ref || h.ID == ref })
}

// find returns the host of a node, if this plan changes it.
func (e *expected) find(node *ironic.Node) (host ExpectedHost, planned bool) {
	planned = e.any(func(h ExpectedHost) bool {
		host = h
		return h.ID == node.UUID
	})
	return host, planned
}

// ReplacesHost reports whether this plan creates a host under the name of a node whose host it does not change. Names are unique, so Terraform
// then deletes the node first.
func (c *Site) ReplacesHost(node *ironic.Node) bool {
	planned := expectedOf(c)
	_, changes := planned.find(node)
	return !changes && node.Name != "" && planned.any(func(h ExpectedHost) bool { return h.ID == "" && h.Name == node.Name })
}

// PlannedName returns the name that this plan gives to a node; "" if it changes no host of the node, or has not planned that yet.
func (c *Site) PlannedName(node *ironic.Node) string {
	if host, planned := expectedOf(c).find(node); planned {
		return host.Name
	}
	return ""
}

// AsPlanned returns a node as this plan leaves it: if the plan changes its host, and Terraform has planned that before, with the state and
// the interfaces that the host gets. A warning about a node asks this, so that it is not about what the same plan mends.
func (c *Site) AsPlanned(node *ironic.Node) *ironic.Node {
	h, planned := expectedOf(c).find(node)
	if !planned {
		return node
	}
	after := *node
	if !Deployed(node) {
		after.ProvisionState = cmp.Or(h.Target, node.ProvisionState)
	}
	after.NetworkInterface, after.BootInterface = cmp.Or(h.Network, node.NetworkInterface), cmp.Or(h.Boot, node.BootInterface)
	return &after
}

// class reports whether this plan creates or changes a host that may have a resource class.
func (e *expected) class(class string) bool {
	return e.any(func(h ExpectedHost) bool { return h.Class == "" || h.Class == class })
}

func (e *expected) any(fits func(ExpectedHost) bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.hosts {
		if fits(h) {
			return true
		}
	}
	return false
}

// MissingTraits returns a sentence for each trait that no node has. It returns none while there are no nodes, or if this plan creates
// or changes a host, which may get the trait.
func (c *Site) MissingTraits(ctx context.Context, traits []string) ([]string, error) {
	if len(traits) == 0 || c.HasWritten() || expectedOf(c).any(func(ExpectedHost) bool { return true }) {
		return nil, nil
	}
	all, err := c.NodesForPlan(ctx)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	var sentences []string
	for _, g := range gapsOf(ironic.AllocationSpec{Traits: traits}, all) {
		sentences = append(sentences, g.String())
	}
	return sentences, nil
}
