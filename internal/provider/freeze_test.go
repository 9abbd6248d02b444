package provider_test

import (
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// Plans work while the site is frozen, and warn once. An apply that would begin something fails, and leaves nothing behind.
func TestPlan_warnsOnceOfAFreeze(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	host, said := s.apply("metal_host", object{"name": "r1", "driver": "fake-hardware", "target_state": "available"}, nil)
	if failed(said) {
		t.Fatal(describe(said))
	}
	freezes := sitetest.NewClient(s.fake).Freezes()
	f := throttle.Freeze{Reason: "the switch burns", By: "eve@desk", Since: time.Now()}
	if _, err := freezes.Set(t.Context(), f, false); err != nil {
		t.Fatal(err)
	}
	s.again()
	deployment := object{"node_id": s.text(host, "id"), "image": object{
		"url":      "http://images.example.com/a.qcow2",
		"checksum": strings.Repeat("0", 64),
	}}
	first, second := s.shown("metal_deployment", deployment, nil), s.shown("metal_host", object{"name": "r2", "driver": "fake-hardware"}, nil)
	for _, phrase := range []string{"The site is frozen", "eve@desk", "the switch burns", "metal thaw"} {
		mentions(t, "the first plan", first, phrase, true)
	}
	mentions(t, "the second plan", second, "The site is frozen", false)
	s.fake.ResetRequests()
	for kind, config := range map[string]object{
		"metal_deployment": deployment, "metal_host": {"name": "r2", "driver": "fake-hardware", "target_state": "available"},
	} {
		made, said := s.apply(kind, config, nil)
		mentions(t, "the apply of a "+kind, describe(said), "Nothing was begun on", true)
		if made != nil && s.text(made, "id") != "" {
			t.Errorf("a %s that is to be tainted is in the state", kind)
		}
	}
	if n := ironictest.Count(s.fake, "PUT", ""); n > 0 || len(s.fake.Nodes()) != 1 {
		t.Errorf("%d verbs were sent, and there are %d nodes", n, len(s.fake.Nodes()))
	}
}
