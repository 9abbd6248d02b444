package host_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// A saved plan cleans no machine that an operator has put into maintenance since.
func TestAccHost_savedPlanLooksAtTheMachineAgain(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w := acctest.NewWorkspace(t, hostConfig(s))
	w.Must("apply", "-auto-approve")
	node := site.Text(acctest.InState(t, w, acctest.HostAddress).Values["id"])
	w.Configure(hostConfig(s, acctest.Target("available")))
	w.Must("plan", "-out=plan")
	site.ForgetVerbs(s)
	s.Must("PUT", "nodes/"+node+"/maintenance", map[string]any{"reason": "disk is read out"})
	acctest.Fails(t, w, []string{"apply", "plan"}, "was left as it is", "it is in maintenance (disk is read out)", "terraform plan again")
	site.WantVerbs(t, s, node)
	s.Must("DELETE", "nodes/"+node+"/maintenance", nil)
	w.Must("apply", "-auto-approve")
	site.WantVerbs(t, s, node, "provide")
	acctest.Destroy(t, s, w)
}
