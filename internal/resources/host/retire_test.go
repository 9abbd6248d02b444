package host_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// An available host is retired without cleaning, and cleaned on its way back into the pool.
func TestAccHost_availableHostIsRetired(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	config := func(settings ...string) string {
		return hostConfig(s, append(settings, acctest.Target("available"))...)
	}
	w := acctest.NewWorkspace(t, config())
	w.Must(acctest.Apply()...)
	defer acctest.Destroy(t, s, w)
	id := site.Text(s.Node(s.Name("h"))["uuid"])

	site.ForgetVerbs(s)
	w.Configure(config("retired = true", `retired_reason = "sold"`))
	output, _ := w.Plan()
	acctest.Mention(t, output, "false -> true", "provision_state")
	acctest.NeverMention(t, output, "Warning:", "power_state")
	w.Must(acctest.Apply()...)
	site.WantVerbs(t, s, id, "manage")
	if found := lacks("", s.Node(id), map[string]any{
		"provision_state": "manageable", "retired": true,
		"retired_reason": "sold",
	}); len(found) > 0 {
		t.Errorf("the node in Ironic: %v", found)
	}
	acctest.NoChanges(t, w)
	acctest.NoDrift(t, w)

	w.Configure(config("retired = true", recabled("1"))) // it can still be inspected, and stays retired
	w.Must(acctest.Apply()...)
	site.WantVerbs(t, s, id, "manage", "inspect")
	acctest.NoChanges(t, w)

	site.ForgetVerbs(s)
	w.Configure(config("retired = false"))
	output, _ = w.Plan()
	acctest.Mention(t, output, "Cleaning erases data", "Host "+s.Name("h")+" becomes available")
	w.Must(acctest.Apply()...)
	site.WantVerbs(t, s, id, "provide")
	if found := lacks("", s.Node(id), map[string]any{"provision_state": "available", "retired": false}); len(found) > 0 {
		t.Errorf("the node in Ironic: %v", found)
	}
	acctest.NoChanges(t, w)
}

// A deployed host is retired at once, and leaves the pool when it is undeployed. A reserved one is refused during plan.
func TestAccHost_reservedAndDeployedHostIsRetired(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	allocation := "resource \"metal_allocation\" \"a\" {\n  candidate_nodes = [metal_host.h.id]\n  resource_class = " +
		acctest.Quoted(s.Class()) + "\n}\n"
	deployment := acctest.Deployment("metal_allocation.a.node_id", "allocation_id = metal_allocation.a.id", acctest.Image("v1"))
	host := func(settings ...string) string {
		return hostConfig(s, append(settings, acctest.Target("available"), "resource_class = "+acctest.Quoted(s.Class()))...)
	}
	w := acctest.NewWorkspace(t, host()+allocation)
	w.Must(acctest.Apply()...)
	defer acctest.Destroy(t, s, w)
	w.Configure(host("retired = true") + allocation)
	acctest.Fails(t, w, []string{"plan"}, "Reserved host cannot be retired", "Destroy its metal_allocation first")

	w.Configure(host() + allocation + deployment)
	w.Must(acctest.Apply()...)
	w.Configure(host("retired = true") + allocation + deployment)
	acctest.NeverMention(t, w.Must(acctest.Apply()...), "Warning:")
	acctest.NoChanges(t, w)
	w.Configure(host("retired = true"))
	w.Must(acctest.Apply()...)
	s.Await(s.Name("h"), "provision_state", "manageable")
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
}
