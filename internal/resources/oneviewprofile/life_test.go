package oneviewprofile_test

import (
	"slices"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// A host becomes available with a temporary profile, and then gets its own profile. It is deployed, undeployed and cleaned with that
// profile. At the end the provider removes the profile.
func TestAccOneView_fullLife(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	seen := lifeline(s, o, s.Name("h"))
	host := s.Provider(o.Setting()) + blade(s, o, acctest.Target("available"), `resource_class = `+acctest.Quoted(s.Class()))
	began := time.Now()
	requests := func(doing string) {
		t.Logf("%s: %d requests to OneView", doing, len(o.Fake.Requests()))
		o.Fake.ResetRequests()
	}

	w := acctest.NewWorkspace(t, host)
	w.Must("apply", "-auto-approve")
	requests("host available")
	if node := s.Node(s.Name("h")); node["provision_state"] != "available" {
		t.Errorf("the host is %v", node["provision_state"])
	}
	wantFree(t, s, o, s.Name("h"))
	acctest.NoChanges(t, w)
	requests("refresh of a host")

	w.Configure(host + profile("metal_host.h.id"))
	w.Must("apply", "-auto-approve")
	requests("create")
	wantHeld(t, s, o, w, s.Name("h"))
	acctest.NoChanges(t, w)
	requests("refresh of a host and its profile")

	w.Configure(host + profile("metal_host.h.id") + deployedProfile())
	w.Must("apply", "-auto-approve")
	requests("deploy")
	if d := acctest.InState(t, w, acctest.DeploymentAddress); d == nil || d.Values["provision_state"] != "active" {
		t.Errorf("the state has %+v", d)
	}
	acctest.NoChanges(t, w)
	o.Fake.PowerOn(o.Blades.Hardware[0]) // as a deployed machine
	requests("refresh of all")

	w.Configure(host + profile("metal_host.h.id"))
	w.Must("apply", "-auto-approve")
	requests("undeploy")
	wantHeld(t, s, o, w, s.Name("h")) // the node was cleaned with its own profile
	acctest.NoChanges(t, w)

	w.Configure(host + profile("metal_host.h.id") + deployedProfile())
	w.Must("apply", "-auto-approve")
	o.Fake.PowerOn(o.Blades.Hardware[0])
	o.Fake.ResetRequests()
	w.Configure(host)
	w.Must("apply", "-auto-approve")
	requests("undeploy and delete")
	wantFree(t, s, o, s.Name("h"))
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
	t.Logf("the full life took %s", time.Since(began).Round(100*time.Millisecond))

	if want := []string{
		"made while manageable", "deleted while available", "made while available",
		"deleted while available",
	}; !slices.Equal(*seen, want) {
		t.Errorf("profiles were %q, want %q", *seen, want)
	}
	if left := s.Left(); len(left) > 0 {
		t.Errorf("resources are left in Ironic: %v", left)
	}
	if open := o.Fake.Sessions(); open > 0 {
		t.Errorf("%d sessions are left open", open)
	}
}
