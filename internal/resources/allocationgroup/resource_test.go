package allocationgroup_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

const address = "metal_allocation_group.g"

// group returns the HCL of the group "g" of the test's class.
func group(s *site.Site, name string, size int, settings ...string) string {
	return fmt.Sprintf("resource \"metal_allocation_group\" \"g\" {\n  name = %q\n  size = %d\n  resource_class = %q\n  %s\n}\n",
		s.Name(name), size, s.Class(), strings.Join(settings, "\n  "))
}

// deployments returns the HCL of a deployment for each member.
func deployments(settings ...string) string {
	return "resource \"metal_deployment\" \"d\" {\n  for_each = metal_allocation_group.g.members\n  node_id = each.value.node_id\n " +
		" allocation_id = each.value.id\n  " +
		acctest.Image("v1") + "\n  " + strings.Join(settings, "\n  ") + "\n}\n"
}

// addNodes adds nodes to the test's class.
func addNodes(t *testing.T, s *site.Site, n int, fields ...map[string]any) (ids []string) {
	t.Helper()
	ids = make([]string, n)
	var all sync.WaitGroup
	for i := range n {
		var with map[string]any
		if len(fields) > 0 {
			with = fields[i%len(fields)]
		}
		if s.Fake == nil {
			all.Go(func() { ids[i] = site.AddNode(t, s, fmt.Sprintf("n%d", i), with) })
			continue
		}
		ids[i] = site.AddNode(t, s, fmt.Sprintf("n%d", i), with)
	}
	all.Wait()
	return ids
}

// members returns the members in state.
func members(t *testing.T, w *acctest.Workspace) map[string]map[string]any {
	t.Helper()
	in := acctest.InState(t, w, address)
	if in == nil {
		return nil
	}
	all := map[string]map[string]any{}
	for key, value := range site.Part[map[string]any](t, in.Values, "members") {
		all[key], _ = value.(map[string]any)
	}
	return all
}

// keys returns the keys of members in order.
func keys(all map[string]map[string]any) []string { return slices.Sorted(maps.Keys(all)) }

// names are the names of the members of a group.
func names(name string, size int) (all []string) {
	for i := range size {
		all = append(all, fmt.Sprintf("%s-%d", name, i))
	}
	slices.Sort(all)
	return all
}

// reserved returns the names of the allocations of the test's class.
func reserved(t *testing.T, s *site.Site) (all []string) {
	t.Helper()
	status, answer := s.Call(http.MethodGet, "allocations?resource_class="+s.Class(), nil)
	if status != http.StatusOK {
		t.Fatalf("list of allocations: %d %v", status, answer)
	}
	for _, a := range site.Part[[]any](t, answer, "allocations") {
		allocation, _ := a.(map[string]any)
		all = append(all, site.Text(allocation["name"]))
	}
	slices.Sort(all)
	return all
}

// wantMembers checks that state and Ironic have exactly the members with these keys and names, each on a node of its own.
func wantMembers(t *testing.T, s *site.Site, w *acctest.Workspace, wantKeys, wantNames []string) {
	t.Helper()
	all := members(t, w)
	if !slices.Equal(keys(all), wantKeys) || !slices.Equal(reserved(t, s), wantNames) {
		t.Fatalf("members are %v, allocations %v; want %v and %v", keys(all), reserved(t, s), wantKeys, wantNames)
	}
	nodes := map[any]bool{}
	for key, m := range all {
		node := s.Node(site.Text(m["node_id"]))
		if node["instance_uuid"] != m["id"] || node["name"] != m["node_name"] || nodes[m["node_id"]] {
			t.Errorf("%s is %v, and its node is reserved by %v", key, m, node["instance_uuid"])
		}
		nodes[m["node_id"]] = true
	}
}

func TestAccAllocationGroup_lifecycle(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	addNodes(t, s, 4)
	w := acctest.NewWorkspace(t, s.Provider()+group(s, "k8s", 2))
	w.Must("apply", "-auto-approve")
	k8s, prod := s.Name("k8s"), s.Name("prod")
	wantMembers(t, s, w, names(k8s, 2), names(k8s, 2))
	acctest.NoChanges(t, w)
	before := members(t, w)

	w.Configure(s.Provider() + group(s, "k8s", 4))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
	wantMembers(t, s, w, names(k8s, 4), names(k8s, 4))
	acctest.NoChanges(t, w)
	w.Configure(s.Provider() + group(s, "prod", 4))
	w.Must("apply", "-auto-approve")
	wantMembers(t, s, w, names(k8s, 4), names(prod, 4))
	acctest.NoChanges(t, w)

	w.Configure(s.Provider() + group(s, "prod", 2))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "Members are released", k8s+"-2", k8s+"-3", "0 added, 1 changed, 0 destroyed")
	wantMembers(t, s, w, names(k8s, 2), names(prod, 2))
	for key, m := range members(t, w) {
		if !maps.Equal(m, before[key]) {
			t.Errorf("%s was %v and is %v", key, before[key], m)
		}
	}
	acctest.NoChanges(t, w)
	w.Configure(s.Provider() + group(s, "prod", 3))
	w.Must("apply", "-auto-approve")
	wantMembers(t, s, w, names(k8s, 3), []string{prod + "-0", prod + "-1", prod + "-2"})

	for _, id := range []string{prod, prod + "/3", site.Text(acctest.InState(t, w, address).Values["id"])} {
		other := acctest.NewWorkspace(t, s.Provider()+group(s, "prod", 3))
		other.Must("import", address, id)
		wantMembers(t, s, other, names(prod, 3), names(prod, 3))
		acctest.NoChanges(t, other)
	}
	other := acctest.NewWorkspace(t, s.Provider()+group(s, "prod", 3))
	acctest.Fails(t, other, []string{"import", address, prod + "/4"}, "here is no allocation with the name "+prod+"-3")
	acctest.Fails(t, other, []string{"import", address, prod + "/x"}, "is not NAME/SIZE")
	w.Must("destroy", "-auto-approve")
	wantNone(t, s)
}

// wantNone checks that nothing of the test's class is reserved.
func wantNone(t *testing.T, s *site.Site) {
	t.Helper()
	if left := reserved(t, s); len(left) > 0 {
		t.Errorf("allocations are left: %v", left)
	}
}

func TestAccAllocationGroup_deploysItsMembers(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	nodes := addNodes(t, s, 3)
	w := acctest.NewWorkspace(t, s.Provider()+group(s, "k8s", 2)+deployments())
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "3 added, 0 changed, 0 destroyed")
	acctest.NoChanges(t, w)
	w.Configure(s.Provider() + group(s, "k8s", 3) + deployments())
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 added, 1 changed, 0 destroyed")
	acctest.NoChanges(t, w)
	for _, node := range nodes {
		site.WantVerbs(t, s, node, "active")
	}
	all := members(t, w)
	w.Configure(s.Provider() + group(s, "k8s", 1) + deployments())
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "Members are released", "0 added, 1 changed, 2 destroyed")
	wantMembers(t, s, w, names(s.Name("k8s"), 1), names(s.Name("k8s"), 1))
	acctest.NoChanges(t, w)
	for key, m := range all {
		want := []string{"active", "deleted"}
		if key == s.Name("k8s")+"-0" {
			want = want[:1]
		}
		site.WantVerbs(t, s, site.Text(m["node_id"]), want...)
	}
	w.Must("destroy", "-auto-approve")
	wantNone(t, s)
}

func TestAccAllocationGroup_shrinkWaitsForDeployments(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	addNodes(t, s, 2)
	const stays = "resource \"metal_deployment\" \"d\" {\n  for_each = toset([\"0\", \"1\"])\n" +
		"  node_id = one([for key, m in metal_allocation_group.g.members : m.node_id if endswith(key, each.key)])\n  allocation_id " +
		"= one([for key, m in metal_allocation_group.g.members : m.id if endswith(key, each.key)])\n"
	w := acctest.NewWorkspace(t, s.Provider()+group(s, "k8s", 2)+stays+acctest.Image("v1")+"\n}\n")
	w.Must("apply", "-auto-approve")
	// Only the group shrinks, as if its member were deployed by another configuration.
	w.Configure(s.Provider() + group(s, "k8s", 1, `timeouts = { update = "1s" }`) + stays + acctest.Image("v1") + "\n}\n")
	key := s.Name("k8s") + "-1"
	acctest.Fails(t, w, []string{"apply", "-auto-approve", "-target=" + address}, "Could not release member "+key,
		"omething is still deployed on node "+site.Text(members(t, w)[key]["node_name"]), "raise timeouts.update")
	wantMembers(t, s, w, names(s.Name("k8s"), 2), names(s.Name("k8s"), 2))
	w.Configure(s.Provider() + group(s, "k8s", 2) + stays + acctest.Image("v1") + "\n}\n")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccAllocationGroup_killedWhileItShrinks(t *testing.T) {
	t.Parallel()
	s := site.StartSlow(t)
	addNodes(t, s, 2)
	w := acctest.NewWorkspace(t, s.Provider()+group(s, "k8s", 2)+deployments())
	w.Must("apply", "-auto-approve")
	leaves := site.Text(members(t, w)[s.Name("k8s")+"-1"]["node_id"])
	w.Configure(s.Provider() + group(s, "k8s", 1) + deployments())
	release := s.Hold(site.BusyUndeploying()...)
	running := w.Start("apply", "-auto-approve")
	site.AwaitState(t, s, leaves, site.BusyUndeploying()...)
	acctest.Kill(t, s, running)
	acctest.WaitOut(t, s, w, release, "apply", "-auto-approve")
	site.WantVerbs(t, s, leaves, "active", "deleted")
	wantMembers(t, s, w, names(s.Name("k8s"), 1), names(s.Name("k8s"), 1))
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
	wantNone(t, s)
}

func TestAccAllocationGroup_reservesAllOrNothing(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	addNodes(t, s, 4)
	w := acctest.NewWorkspace(t, s.Provider()+group(s, "k8s", 5))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Too few nodes match now", "5 members of the group need a node, and 4 can have one")
	acctest.Fails(t, w, acctest.Apply(), "Could not reserve nodes for the group", "5 members of the group need a node, and 4 can have "+
		"one: 4 of ", "Nothing is reserved for the group")
	wantNone(t, s)
	if acctest.InState(t, w, address) != nil {
		t.Errorf("the group is in state:\n%s", w.State())
	}
	w.Configure(s.Provider() + group(s, "k8s", 3))
	w.Must("apply", "-auto-approve")
	w.Configure(s.Provider() + group(s, "k8s", 5))
	acctest.Fails(t, w, acctest.Apply(), "2 members of the group need a node, and 1 can have one")
	wantMembers(t, s, w, names(s.Name("k8s"), 3), names(s.Name("k8s"), 3))
	w.Configure(s.Provider() + group(s, "k8s", 4))
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
	wantNone(t, s)
}

func TestAccAllocationGroup_oneOfTwoRacingGroupsGetsItsNodes(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	addNodes(t, s, 6)
	var spaces []*acctest.Workspace
	var running []*acctest.Running
	for _, name := range []string{"blue", "green"} {
		w := acctest.NewWorkspace(t, s.Provider()+group(s, name, 4))
		spaces = append(spaces, w)
	}
	for _, w := range spaces {
		running = append(running, w.Start("apply", "-auto-approve"))
	}
	var worked []int
	for i, r := range running {
		output, code := r.Wait()
		if code == 0 {
			worked = append(worked, i)
			continue
		}
		acctest.Mention(t, output, "4 members of the group need a node, and 2 can have one")
	}
	if len(worked) != 1 {
		t.Fatalf("the groups %v have their nodes, want one of them", worked)
	}
	name := s.Name([]string{"blue", "green"}[worked[0]])
	wantMembers(t, s, spaces[worked[0]], names(name, 4), names(name, 4))
	spaces[worked[0]].Must("destroy", "-auto-approve")
	wantNone(t, s)
}

func TestAccAllocationGroup_replacesLostMember(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	addNodes(t, s, 3)
	w := acctest.NewWorkspace(t, s.Provider()+group(s, "k8s", 3))
	w.Must("apply", "-auto-approve")
	before, lost := members(t, w), s.Name("k8s")+"-1"
	s.Must(http.MethodDelete, "allocations/"+lost, nil)
	output, _ := w.Plan()
	acctest.Mention(t, output, "0 to add, 1 to change, 0 to destroy")
	w.Must("apply", "-auto-approve")
	wantMembers(t, s, w, names(s.Name("k8s"), 3), names(s.Name("k8s"), 3))
	for key, m := range members(t, w) {
		if !maps.Equal(m, before[key]) && key != lost {
			t.Errorf("%s was %v and is %v", key, before[key], m)
		}
	}
	acctest.NoChanges(t, w)
	for _, name := range names(s.Name("k8s"), 3) {
		s.Must(http.MethodDelete, "allocations/"+name, nil)
	}
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 added, 0 changed, 0 destroyed")
	w.Must("destroy", "-auto-approve")
}

func TestAccAllocationGroup_spreadsItsMembers(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	in := func(rack string) map[string]any {
		return map[string]any{"extra": map[string]any{}, "properties": map[string]any{"site": map[string]any{"rack": rack}}}
	}
	addNodes(t, s, 9, in("a"), in("b"), in("a")) // 6 in a, 3 in b
	const by = `spread_by = "properties.site.rack"`
	count := func(w *acctest.Workspace) map[string]int {
		domains := map[string]int{}
		for _, m := range members(t, w) {
			domains[site.Text(m["domain"])]++
		}
		return domains
	}
	w := acctest.NewWorkspace(t, s.Provider()+group(s, "k8s", 5, by))
	w.Must("apply", "-auto-approve")
	if got := count(w); min(got["a"], got["b"]) != 2 || len(got) != 2 {
		t.Errorf("members are spread %v", got)
	}
	acctest.NoChanges(t, w)
	w.Configure(s.Provider() + group(s, "k8s", 7, by, "max_per_domain = 4"))
	acctest.NeverMention(t, w.Must("apply", "-auto-approve"), "Members keep their nodes")
	if got := count(w); !maps.Equal(got, map[string]int{"a": 4, "b": 3}) {
		t.Errorf("members are spread %v", got)
	}
	acctest.NoChanges(t, w)
	w.Configure(s.Provider() + group(s, "k8s", 7, by, "max_per_domain = 3"))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "Members keep their nodes", `one of 4 members in domain "a"`)
	acctest.NoChanges(t, w)
	w.Configure(s.Provider() + group(s, "k8s", 8, by, "max_per_domain = 4"))
	acctest.Fails(t, w, []string{"plan"}, "Group cannot be spread", "can hold 7 members, and the group has 8", "a (6), b (3)")
	w.Configure(s.Provider() + group(s, "k8s", 7))
	w.Must("apply", "-auto-approve")
	if got := count(w); !maps.Equal(got, map[string]int{"": 7}) {
		t.Errorf("without spread_by, members have the domains %v", got)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestFakeAllocationGroup_spreadsByEachRoot(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{})
	chassis := []string{
		site.Text(s.Must(http.MethodPost, "chassis", map[string]any{})["uuid"]),
		site.Text(s.Must(http.MethodPost, "chassis", map[string]any{})["uuid"]),
	}
	of := func(i int) map[string]any {
		return map[string]any{"chassis_uuid": chassis[i]}
	}
	nodes := addNodes(t, s, 6, of(0), of(0), of(1))
	for i, node := range nodes {
		s.Patch(node, "add", "/extra/rack", []int{7, 7, 8}[i%3])
	}
	for i, node := range nodes {
		s.Fake.Set(node, "conductor_group", []string{"g0", "g0", "g1"}[i%3])
	}
	for root, want := range map[string][]string{
		"chassis": chassis, "conductor_group": {"g0", "g1"}, "extra.rack": {"7", "8"},
		"extra.other": {""},
	} {
		w := acctest.NewWorkspace(t, s.Provider()+group(s, "k8s", 2, "spread_by = "+acctest.Quoted(root)))
		w.Must("apply", "-auto-approve")
		var domains []string
		for _, m := range members(t, w) {
			domains = append(domains, site.Text(m["domain"]))
		}
		slices.Sort(domains)
		if slices.Sort(want); !slices.Equal(slices.Compact(domains), want) {
			t.Errorf("%s: members are in %v, want %v", root, domains, want)
		}
		acctest.NoChanges(t, w)
		w.Must("destroy", "-auto-approve")
	}
	for _, node := range nodes {
		s.Fake.Set(node, "conductor_group", "")
		s.Patch(node, "remove", "/extra/rack", nil)
	}
}

func TestAccAllocationGroup_isValidated(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	for config, want := range map[string]string{
		group(s, "k8s", 0): "must be between 1 and 1000",
		group(s, "k8s", 2, `spread_by = "name"`): "must be extra.KEY, properties.KEY, " +
			"conductor_group or chassis",
		group(s, "k8s", 2, "max_per_domain = 1"):                            `"spread_by" must be specified`,
		group(s, "k8s", 2, `spread_by = "chassis"`, "max_per_domain = 0"):   "must be at least 1",
		group(s, "k8s", 2, `wait_for_capacity = "soon"`):                    "Not a duration",
		group(s, "k8s", 2, `require = { min_cpus = 0 }`):                    "must be at least 1",
		strings.ReplaceAll(group(s, "k8s", 2), s.Name("k8s"), "not a name"): "ame",
	} {
		acctest.Fails(t, acctest.NewWorkspace(t, s.Provider()+config), []string{"validate"}, want)
	}
	for setting, want := range map[string]string{
		`owner = "p"`:                       "owner needs API 1.60",
		`require = { min_nic_mbps = 1000 }`: "require.min_nic_mbps needs API 1.81",
	} {
		acctest.Fails(t, acctest.NewWorkspace(t, s.Provider(`microversion = "1.56"`)+group(s, "k8s", 2, setting)), []string{"plan"}, want)
	}
	acctest.Fails(t, acctest.NewWorkspace(t, s.Provider(`microversion = "1.51"`)+group(s, "k8s", 2)), []string{"plan"},
		"resource_class needs API 1.52")
}

func TestAccAllocationGroup_choosesByHardware(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	with := func(cpus int) map[string]any { return map[string]any{"properties": map[string]any{"cpus": cpus}} }
	nodes := addNodes(t, s, 4, with(8), with(32))
	w := acctest.NewWorkspace(t, s.Provider()+group(s, "k8s", 2, "require = { min_cpus = 16 }"))
	w.Must("apply", "-auto-approve")
	for key, m := range members(t, w) {
		if id := site.Text(m["node_id"]); id != nodes[1] && id != nodes[3] {
			t.Errorf("%s has node %s, want one with 32 CPUs", key, id)
		}
	}
	acctest.NoChanges(t, w)
	w.Configure(s.Provider() + group(s, "k8s", 3, "require = { min_cpus = 16 }"))
	acctest.Fails(t, w, acctest.Apply(), "1 member of the group needs a node, and 0 can have one", "2 below min_cpus")
	w.Configure(s.Provider() + group(s, "k8s", 3, "candidate_nodes = ["+acctest.Quoted(nodes[0])+"]"))
	acctest.NeverMention(t, w.Must("apply", "-auto-approve"), "Members keep their nodes")
	if m := members(t, w)[s.Name("k8s")+"-2"]; m["node_id"] != nodes[0] {
		t.Errorf("the new member is %v, want the candidate", m)
	}
	acctest.NoChanges(t, w)
	w.Configure(s.Provider() + group(s, "k8s", 3, "require = { min_cpus = 16 }"))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "Members keep their nodes", "do not satisfy it, and keep them: "+s.Name("k8s")+
		"-2 (node "+s.Name("n0")+" ("+nodes[0]+"): below min_cpus). To move one of them, name it in replace_members")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccAllocationGroup_waitsForCapacity(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	nodes := addNodes(t, s, 3)
	s.Must(http.MethodPut, "nodes/"+nodes[0]+"/maintenance", map[string]any{})
	w := acctest.NewWorkspace(t, s.Provider()+group(s, "k8s", 3, `wait_for_capacity = "10m"`))
	running := w.Start("apply", "-auto-approve")
	if s.Fake != nil {
		awaitFirstTry(t, s)
		wantNone(t, s)
	}
	s.Must(http.MethodDelete, "nodes/"+nodes[0]+"/maintenance", nil)
	if output, code := running.Wait(); code != 0 {
		t.Fatalf("the group gets no nodes:\n%s", output)
	}
	wantMembers(t, s, w, names(s.Name("k8s"), 3), names(s.Name("k8s"), 3))
	w.Must("destroy", "-auto-approve")
}

// awaitFirstTry waits until a group has once had the lock under which groups reserve nodes.
func awaitFirstTry(t *testing.T, s *site.Site) {
	t.Helper()
	site.Until(t, "the group to find too few nodes", func() bool {
		return slices.ContainsFunc(s.Fake.Requests(), func(r fakeironic.Request) bool {
			return r.Method == http.MethodDelete && strings.HasPrefix(r.Path, "/v1/chassis/")
		})
	})
}

func TestFakeAllocationGroup_interruptedWhileItWaits(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{})
	addNodes(t, s, 2)
	w := acctest.NewWorkspace(t, s.Provider()+group(s, "k8s", 3, `wait_for_capacity = "10m"`))
	running := w.Start("apply", "-auto-approve")
	awaitFirstTry(t, s)
	acctest.Mention(t, acctest.Interrupt(t, running), "Interrupted: reserve nodes for the group "+s.Name("k8s"),
		"It has released what it had reserved")
	wantNone(t, s)
	if acctest.InState(t, w, address) != nil {
		t.Errorf("the group is in state:\n%s", w.State())
	}
}

func TestAccAllocationGroup_unknownSizeAndName(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	addNodes(t, s, 2)
	const late = "resource \"terraform_data\" \"size\" {\n  input = 2\n}\n"
	w := acctest.NewWorkspace(t, s.Provider()+late+strings.Replace(group(s, "k8s", 2), "size = 2", "size = terraform_data.size.output", 1))
	w.Must("apply", "-auto-approve")
	wantMembers(t, s, w, names(s.Name("k8s"), 2), names(s.Name("k8s"), 2))
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccAllocationGroup_takenName(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	addNodes(t, s, 3)
	s.Must(http.MethodPost, "allocations", map[string]any{"name": s.Name("k8s") + "-1", "resource_class": s.Class()})
	w := acctest.NewWorkspace(t, s.Provider()+group(s, "k8s", 2))
	acctest.Fails(t, w, acctest.Apply(), "n allocation with the name "+s.Name("k8s")+"-1 exists already",
		"Choose another name for the group")
	if left := reserved(t, s); !slices.Equal(left, []string{s.Name("k8s") + "-1"}) {
		t.Errorf("the allocations are %v", left)
	}
	s.Must(http.MethodDelete, "allocations/"+s.Name("k8s")+"-1", nil)
}

// A member whose node another client takes at the last moment gets another one.
func TestFakeAllocationGroup_lostRaces(t *testing.T) {
	t.Parallel()
	var once sync.Once
	fake := &fakeironic.Server{}
	s := site.StartFake(t, fake)
	addNodes(t, s, 4)
	behind := s.Behind(t, func(r *http.Request, body []byte) *site.Disturbance {
		if r.Method == http.MethodPost && r.URL.Path == "/v1/allocations" {
			once.Do(func() {
				_, node, _ := strings.Cut(string(body), `"candidate_nodes":["`)
				node, _, _ = strings.Cut(node, `"`)
				fake.Set(node, "instance_uuid", "0b7a62a0-6d8b-4b43-9a11-3d4b4f0d4a52")
			})
		}
		return nil
	})
	w := acctest.NewWorkspace(t, behind.Provider()+group(s, "k8s", 3))
	w.Must("apply", "-auto-approve")
	wantMembers(t, s, w, names(s.Name("k8s"), 3), names(s.Name("k8s"), 3))
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
	for _, node := range fake.Nodes() {
		fake.Set(node.UUID, "instance_uuid", nil)
	}
}
