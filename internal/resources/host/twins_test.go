package host_test

import (
	"fmt"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// Two hosts of a node are refused, also if destroying them leaves the node in Ironic.
func TestFakeHost_twoHostsOfANodeAreRefused(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n", nil)
	host := func(label, onDestroy string) string {
		return fmt.Sprintf("resource \"metal_host\" %[1]q {\n  name = %[2]q\n  driver = \"fake-hardware\"\n  description = %[1]q\n"+
			"  on_destroy = %[3]q\n}\nimport {\n  to = metal_host.%[1]s\n  id = %[4]q\n}\n", label, s.Name("n"), onDestroy, node)
	}
	for _, first := range []string{"forget", "delete"} {
		for _, second := range []string{"forget", "delete"} {
			w := acctest.NewWorkspace(t, s.Provider()+host("a", first)+host("b", second))
			acctest.Fails(t, w, []string{"plan"}, "Two hosts for one node")
			w.Configure(s.Provider() + host("a", first))
			w.Must(acctest.Apply()...)
			w.Configure(s.Provider() + host("a", first) + host("b", second))
			acctest.Fails(t, w, []string{"plan"}, "Two hosts for one node")
		}
	}
}

// A plan that may replace a host whose machine another state has deployed names the instance, and says what happens.
func TestFakeHost_replacementNamesTheInstance(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	w := acctest.NewWorkspace(t, withBMC(s, acctest.Target("available"), fmt.Sprintf("ports = { %q = {} }", s.MAC(1))))
	w.Must(acctest.Apply()...)
	other := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(site.Text(s.Node(s.Name("h"))["uuid"])),
		acctest.Image("a"), `instance_name = "web"`))
	other.Must(acctest.Apply()...)
	site.ForgetVerbs(s)
	instance := site.Text(s.Node(s.Name("h"))["instance_uuid"])
	acctest.Fails(t, w, []string{"apply", "-auto-approve", "-replace=" + acctest.HostAddress}, "deployed, by instance web "+instance,
		"leaves the machine as it is", "Machine in use would change hands")
	site.WantVerbs(t, s, site.Text(s.Node(s.Name("h"))["uuid"]))
	other.Must("destroy", "-auto-approve")
	w.Must("destroy", "-auto-approve")
}
