package keystonetest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// patience is after how long a test calls a run a hang. The machine may be busy: a run that does not wait takes seconds.
const patience = 2 * time.Minute

// life returns the configuration of a user who reserves a machine and deploys an image on it.
func life(s *openstack, reservation, node, image string) string {
	return provider() + reservation + acctest.Deployment(node, acctest.Image(image),
		`timeouts = { create = "50s", update = "50s", delete = "50s" }`)
}

// reservation returns an allocation of the test's class, and the node of its deployment.
func reservation(s *openstack) (config, node string) {
	return acctest.Allocation(s.Site, "name = "+acctest.Quoted(s.Name("web"))),
		"metal_allocation.a.node_id\n  allocation_id = metal_allocation.a.id"
}

// A user who may deploy does so with the openrc of OpenStack's documentation: reserves, deploys, rebuilds, and destroys, within a minute
// each; afterwards nothing is left.
func TestKeystone_whoMayDeployDoes(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"system-admin", "system-member", "a-admin", "a-manager", "a-member", "b-admin", "b-manager"} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			s := start(t, ironicVariable)
			machine := s.node("web")
			allocation, node := reservation(s)
			live(t, s, user, allocation, node, machine)
		})
	}
}

// A reservation without an allocation is a right of the owner: the lessee is told so.
func TestKeystone_reservationWithoutAllocation(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"system-member", "a-member"} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			s := start(t, ironicVariable)
			machine := s.node("web")
			live(t, s, user, "", acctest.Quoted(machine), machine)
		})
	}
	for _, user := range []string{"b-admin", "b-manager"} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			s := start(t, ironicVariable)
			refuse(t, s, user, life(s, "", acctest.Quoted(s.node("web")), "one"), "baremetal:node:update:instance_uuid")
		})
	}
}

// live applies, rebuilds, plans and destroys.
func live(t *testing.T, s *openstack, user, reservation, node, machine string) {
	t.Helper()
	w := workspace(t, openrc(user), life(s, reservation, node, "one"))
	defer w.Must("destroy", "-auto-approve")
	timed(t, "deploy", func() { acctest.NeverMention(t, w.Must(acctest.Apply()...), "Redacted") })
	if state := s.Node(machine)["provision_state"]; state != "active" {
		t.Errorf("the machine is %v", state)
	}
	acctest.NoChanges(t, w)
	w.Configure(life(s, reservation, node, "two"))
	timed(t, "rebuild", func() { acctest.Mention(t, w.Must(acctest.Apply()...), "0 added, 1 changed, 0 destroyed") })
	if image := site.Text(site.InstanceInfo(s.Site, machine)["image_source"]); !strings.Contains(image, "two") {
		t.Errorf("the machine has the image %s", image)
	}
	timed(t, "destroy", func() { w.Must("destroy", "-auto-approve") })
	if n := s.Node(machine); n["provision_state"] != "available" || n["instance_uuid"] != nil {
		t.Errorf("the machine is %v, reserved by %v", n["provision_state"], n["instance_uuid"])
	}
}

// Who may not deploy is told so at once, by the name of the right, and leaves nothing behind.
func TestKeystone_whoMayNotDeployIsTold(t *testing.T) {
	t.Parallel()
	for user, right := range map[string]string{
		"system-reader": "baremetal:allocation:create", "a-reader": "baremetal:allocation:create",
		"b-reader": "baremetal:allocation:create",
		"b-member": "baremetal:node:update_instance_info", "none-admin": "0 of 0 nodes",
	} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			s := start(t, ironicVariable)
			s.node("web")
			allocation, node := reservation(s)
			refuse(t, s, user, life(s, allocation, node, "one"), right)
		})
	}
}

// refuse fails the test unless an apply fails soon with a text, leaves the machine as it is, and a destroy removes the rest.
func refuse(t *testing.T, s *openstack, user, config, text string) {
	t.Helper()
	w := workspace(t, openrc(user), config)
	defer w.Must("destroy", "-auto-approve")
	timed(t, "the refusal", func() { acctest.Fails(t, w, acctest.Apply(), text) })
}

// timed fails the test if something takes a minute.
func timed(t *testing.T, what string, do func()) {
	t.Helper()
	begun := time.Now()
	do()
	took := time.Since(begun)
	t.Logf("%s took %s", what, took.Round(time.Second/10))
	if took > time.Minute {
		t.Errorf("%s took %s, want less than a minute", what, took)
	}
}

// A host is enrolled, made available, changed and deleted by the administrator of the project that will own it.
func TestKeystone_ownerEnrolsHosts(t *testing.T) {
	t.Parallel()
	s := start(t, ironicVariable)
	config := func(settings ...string) string {
		return provider() + acctest.HostBlock(s.Name("host"), append([]string{
			`driver = "fake-hardware"`, acctest.Target("available"), fmt.Sprintf("ports = { %q = {} }", s.MAC(1)),
		}, settings...)...)
	}
	w := workspace(t, openrc("a-admin"), config())
	defer w.Must("destroy", "-auto-approve")
	timed(t, "enrol", func() { w.Must(acctest.Apply()...) })
	if owner := s.Node(s.Name("host"))["owner"]; owner != id(t, "tenant-a") {
		t.Errorf("the owner is %v", owner)
	}
	acctest.NoChanges(t, w)
	w.Configure(config(fmt.Sprintf("traits = [%q]", s.Trait("X"))))
	timed(t, "change", func() { w.Must(acctest.Apply()...) })
	acctest.NoChanges(t, w)

	member := workspace(t, openrc("a-member"), provider()+acctest.HostBlock(s.Name("other"), `driver = "fake-hardware"`))
	timed(t, "the refusal", func() { acctest.Fails(t, member, acctest.Apply(), "baremetal:node:create") })
}
