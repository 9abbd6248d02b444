package allocationgroup_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// replaces returns the setting that moves members. Each of them is the number of a member and a value, such as "1=now".
func replaces(s *site.Site, members ...string) string {
	var parts []string
	for _, m := range members {
		number, value, _ := strings.Cut(m, "=")
		parts = append(parts, fmt.Sprintf("%q = %q", s.Name("k8s")+"-"+number, value))
	}
	return "replace_members = { " + strings.Join(parts, ", ") + " }"
}

// wantRetired checks that a node is retired because a member has left it, and reserved by nothing.
func wantRetired(t *testing.T, s *site.Site, node string, reason ...string) {
	t.Helper()
	got := s.Node(node)
	if got["retired"] != true || got["instance_uuid"] != nil || got["provision_state"] != "manageable" {
		t.Errorf("the node that was left is retired: %v, reserved by %v, in state %v", got["retired"], got["instance_uuid"],
			got["provision_state"])
	}
	acctest.Mention(t, site.Text(got["retired_reason"]), reason...)
}

// unretire returns nodes to use, so that the site can be cleaned up.
func unretire(s *site.Site, nodes ...string) {
	for _, node := range nodes {
		if s.Node(node)["retired"] == true {
			s.Patch(node, "replace", "/retired", false)
			s.Patch(node, "remove", "/extra/terraform_metal_quarantine", nil)
			s.Verb(node, "provide", "available")
		}
	}
}

// A new value for a member destroys its deployment, retires its node and gives it another node; the others stay. Another value does so
// again, and a removed one does nothing.
func TestAccAllocationGroup_moveMember(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	nodes := addNodes(t, s, 4)
	w := acctest.NewWorkspace(t, s.Provider()+group(s, "k8s", 2)+deployments())
	w.Must("apply", "-auto-approve")
	before, key := members(t, w), s.Name("k8s")+"-1"
	left := site.Text(before[key]["node_id"])

	w.Configure(s.Provider() + group(s, "k8s", 2, replaces(s, "1=2026-11-23")) + deployments())
	output, _ := w.Plan()
	acctest.Mention(t, output, "Member moves to another node", "replace_members moves "+key+" (node "+site.Text(before[key]["node_name"])+
		")", "must be replaced", "1 to add, 1 to change, 1 to destroy")
	w.Must("apply", "-auto-approve")
	wantRetired(t, s, left, "member "+key+" of group "+s.Name("k8s")+" left it at", `replace_members: "2026-11-23"`)
	wantMembers(t, s, w, names(s.Name("k8s"), 2), names(s.Name("k8s"), 2))
	after := members(t, w)
	if stays := s.Name("k8s") + "-0"; after[stays]["id"] != before[stays]["id"] || after[key]["node_id"] == left {
		t.Errorf("members were %v and are %v", before, after)
	}
	acctest.NoChanges(t, w)
	acctest.NoDrift(t, w)

	w.Configure(s.Provider() + group(s, "k8s", 2, replaces(s, "1=2026-12-24")) + deployments())
	w.Must("apply", "-auto-approve")
	wantRetired(t, s, site.Text(after[key]["node_id"]), `replace_members: "2026-12-24"`)
	w.Configure(s.Provider() + group(s, "k8s", 2) + deployments())
	acctest.NeverMention(t, w.Must("apply", "-auto-approve"), "moves to another node")
	wantMembers(t, s, w, names(s.Name("k8s"), 2), names(s.Name("k8s"), 2))
	acctest.NoChanges(t, w)
	for key, m := range members(t, w) {
		if state := s.Node(site.Text(m["node_id"]))["provision_state"]; state != "active" {
			t.Errorf("the node of %s is %v", key, state)
		}
	}
	w.Must("destroy", "-auto-approve")
	wantNone(t, s)
	unretire(s, nodes...)
}

// The other node is chosen as for a new member: by the domains of those that stay, and not an excluded one.
func TestAccAllocationGroup_movedMemberIsSpread(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	in := func(rack string) map[string]any { return map[string]any{"properties": map[string]any{"rack": rack}} }
	nodes := addNodes(t, s, 5, in("a"), in("a"), in("a"), in("b"), in("b"))
	const by = "spread_by = \"properties.rack\"\n  max_per_domain = 1"
	w := acctest.NewWorkspace(t, s.Provider()+group(s, "k8s", 2, by))
	w.Must("apply", "-auto-approve")
	key, other := s.Name("k8s")+"-0", s.Name("k8s")+"-1"
	if members(t, w)[key]["domain"] != "a" {
		key, other = other, key
	}
	excluded := nodes[slices.IndexFunc(nodes[:3], func(id string) bool { return id != members(t, w)[key]["node_id"] })]
	w.Configure(s.Provider() + group(s, "k8s", 2, by, replaces(s, key[len(key)-1:]+"=now"), "require = { exclude = ["+
		acctest.Quoted(excluded)+"] }"))
	w.Must("apply", "-auto-approve")
	after := members(t, w)
	if after[key]["domain"] != "a" || after[other]["domain"] != "b" || after[key]["node_id"] == excluded {
		t.Errorf("the members are %v", after)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
	unretire(s, nodes...)
}

// What a member cannot do is refused before its deployment is destroyed.
func TestAccAllocationGroup_refusedMoves(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	nodes := addNodes(t, s, 2)
	config := func(protected string, settings ...string) string {
		return s.Provider() + group(s, "k8s", 2, settings...) + deployments("protected = "+protected)
	}
	w := acctest.NewWorkspace(t, config("true"))
	w.Must("apply", "-auto-approve")
	w.Configure(config("true", replaces(s, "1=now")))
	acctest.Fails(t, w, []string{"plan"}, "Member is protected", "Set protected = false")
	w.Configure(config("true", replaces(s, "7=now")))
	acctest.Fails(t, w, []string{"plan"}, "No such member", "replace_members names "+s.Name("k8s")+"-7")
	w.Configure(config("false"))
	w.Must("apply", "-auto-approve")
	w.Configure(config("false", replaces(s, "1=now")))
	acctest.Fails(t, w, []string{"plan"}, "Too few nodes match now", "No member moves, and no deployment is destroyed")
	w.Configure(config("false"))
	acctest.NoChanges(t, w)
	for _, node := range nodes {
		site.WantVerbs(t, s, node, "active")
	}
	w.Must("destroy", "-auto-approve")
}

// A member whose deployment is not in the state stays, and nothing is changed.
func TestAccAllocationGroup_moveOfForeignDeployment(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	nodes := addNodes(t, s, 4)
	w := acctest.NewWorkspace(t, s.Provider()+group(s, "k8s", 2)+deployments())
	w.Must("apply", "-auto-approve")
	before, key := members(t, w), s.Name("k8s")+"-1"
	w.Must("state", "rm", `metal_deployment.d["`+key+`"]`)
	w.Configure(s.Provider() + group(s, "prod", 2, replaces(s, "1=now")))
	w.Must("state", "rm", `metal_deployment.d["`+s.Name("k8s")+`-0"]`)
	acctest.Fails(t, w, acctest.Apply(), "Could not move members of the group "+s.Name("k8s"), "ember "+key+" cannot move",
		"omething is deployed on its node", "Nothing of the group was changed", "create_before_destroy")
	wantMembers(t, s, w, names(s.Name("k8s"), 2), names(s.Name("k8s"), 2))
	for _, m := range before {
		if node := s.Node(site.Text(m["node_id"])); node["retired"] == true || node["provision_state"] != "active" {
			t.Errorf("the node %v is retired %v, in state %v", m["node_name"], node["retired"], node["provision_state"])
		}
	}
	for _, node := range nodes { // as an operator does it
		if s.Node(node)["provision_state"] == "active" {
			s.Verb(node, "deleted", "available")
		}
	}
	w.Configure(s.Provider() + group(s, "k8s", 2, replaces(s, "1=now")))
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
	unretire(s, nodes...)
}

// With create_before_destroy, Terraform updates the group before it destroys the deployment, so the member stays.
func TestAccAllocationGroup_moveWithCreateBeforeDestroy(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	addNodes(t, s, 2)
	const first = "lifecycle {\n    create_before_destroy = true\n  }"
	w := acctest.NewWorkspace(t, s.Provider()+group(s, "k8s", 1)+deployments(first))
	w.Must("apply", "-auto-approve")
	before := members(t, w)
	w.Configure(s.Provider() + group(s, "k8s", 1, replaces(s, "0=now")) + deployments(first))
	acctest.Fails(t, w, acctest.Apply(), "cannot move: something is deployed on its node", "create_before_destroy")
	node := s.Node(site.Text(before[s.Name("k8s")+"-0"]["node_id"]))
	if node["provision_state"] != "active" || node["retired"] == true {
		t.Errorf("the node is in state %v, retired %v", node["provision_state"], node["retired"])
	}
	w.Must("destroy", "-auto-approve")
}

// A host of the same configuration leaves the node that a member has left retired, until retired = false is applied.
func TestAccAllocationGroup_movedMemberOfHosts(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	hosts := func(settings ...string) string {
		return fmt.Sprintf("resource \"metal_host\" \"h\" {\n  count = 2\n  name = \"%s${count.index}\"\n  driver = \"fake-hardware\"\n "+
			" resource_class = %q\n  target_state = \"available\"\n  automated_clean = false\n  %s\n}\n",
			s.Name("h"), s.Class(), strings.Join(settings, "\n  "))
	}
	depends := "depends_on = [metal_host.h]"
	w := acctest.NewWorkspace(t, s.Provider()+hosts()+group(s, "k8s", 1, depends)+deployments())
	w.Must("apply", "-auto-approve")
	left := site.Text(members(t, w)[s.Name("k8s")+"-0"]["node_id"])
	w.Configure(s.Provider() + hosts() + group(s, "k8s", 1, depends, replaces(s, "0=now")) + deployments())
	w.Must("apply", "-auto-approve")
	output, _ := w.Plan()
	acctest.Mention(t, output, "Host is in quarantine", "member "+s.Name("k8s")+"-0 of group "+s.Name("k8s")+" left it", "It stays retired")
	wantRetired(t, s, left)
	w.Configure(s.Provider() + hosts("retired = false") + group(s, "k8s", 1, depends, replaces(s, "0=now")) + deployments())
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "Host leaves its quarantine")
	acctest.NoChanges(t, w)
	if node := s.Node(left); node["retired"] != false || node["provision_state"] != "available" {
		t.Errorf("the node is retired: %v, in state %v", node["retired"], node["provision_state"])
	}
	w.Must("destroy", "-auto-approve")
}

// The first apply after an import only records replace_members, and a later change moves.
func TestAccAllocationGroup_importDoesNotMove(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	nodes := addNodes(t, s, 3)
	for _, name := range names(s.Name("k8s"), 2) {
		s.Must(http.MethodPost, "allocations", map[string]any{"name": name, "resource_class": s.Class()})
		site.Until(t, "allocation "+name+" to be active", func() bool {
			_, answer := s.Call(http.MethodGet, "allocations/"+name, nil)
			return answer["state"] == "active"
		})
	}
	w := acctest.NewWorkspace(t, s.Provider()+group(s, "k8s", 2, replaces(s, "1=now")))
	w.Must("import", address, s.Name("k8s")+"/2")
	before := members(t, w)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "Members stay after an import")
	if after := members(t, w)[s.Name("k8s")+"-1"]; after["id"] != before[s.Name("k8s")+"-1"]["id"] {
		t.Errorf("the member was %v and is %v", before, after)
	}
	acctest.NoChanges(t, w)
	w.Configure(s.Provider() + group(s, "k8s", 2, replaces(s, "1=later")))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "Member moves to another node")
	wantRetired(t, s, site.Text(before[s.Name("k8s")+"-1"]["node_id"]), "later")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
	unretire(s, nodes...)
}
