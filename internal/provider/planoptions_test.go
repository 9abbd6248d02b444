package provider_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// usedMachine returns a configuration of a host, its allocation and its deployment.
func usedMachine(s *site.Site) string {
	return s.Provider() + acctest.HostBlock(s.Name("h"), `bmc = { address = "ipmi://192.0.2.71" }`, acctest.Target("available"),
		"resource_class = "+acctest.Quoted(s.Class()), fmt.Sprintf("ports = { %q = {} }", s.MAC(1))) +
		acctest.Allocation(s, "depends_on = [metal_host.h]") + acctest.Allocated(acctest.Image("a"))
}

// Options of a plan reach no machine without a word: each row says what is printed about a machine in use, and which verbs its apply sends.
// Of a machine whose record is lost, nothing is replaced, and the record is made anew only if the state knows it as idle.
func TestFakePlanOptions_wipeNothingUnnamed(t *testing.T) {
	t.Parallel()
	const changesHands, lostRecord = "Machine in use would change hands", "Ironic has lost the record of a machine"
	const host, allocation, deployment = acctest.HostAddress, acctest.AllocationAddress, acctest.DeploymentAddress
	for _, row := range []struct {
		option, address string
		says            string
		verbs           []string // of the apply
		saysLost        string
		verbsLost       []string
	}{
		{"replace", host, changesHands, nil, lostRecord, nil},
		{"replace", allocation, "1 to add, 0 to change, 1 to destroy", nil, lostRecord, nil},
		{"replace", deployment, "will be replaced, as requested", []string{"deleted", "active"}, lostRecord, nil},
		{"target", host, "No changes", nil, "Lost record is made anew", []string{"manage"}},
		{"target", allocation, "No changes", nil, lostRecord, nil},
		{"target", deployment, "No changes", nil, lostRecord, nil},
		{"taint", host, changesHands, nil, lostRecord, nil},
		{"taint", allocation, "1 to add, 0 to change, 1 to destroy", nil, lostRecord, nil},
		{"taint", deployment, "Destroying undeploys the machine", []string{"deleted", "active"}, lostRecord, nil},
	} {
		t.Run(row.option+" "+row.address, func(t *testing.T) {
			t.Parallel()
			for _, lost := range []bool{false, true} {
				s := site.StartFake(t, nil)
				w := acctest.NewWorkspace(t, usedMachine(s))
				w.Must(acctest.Apply()...)
				node := site.Text(s.Node(s.Name("h"))["uuid"])
				says, verbs := row.says, row.verbs
				if lost {
					s.Must(http.MethodPut, "nodes/"+node+"/maintenance", map[string]any{})
					s.Must(http.MethodDelete, "nodes/"+node, nil)
					says, verbs = row.saysLost, row.verbsLost
				}
				site.ForgetVerbs(s)
				args := acctest.Apply()
				if row.option == "taint" {
					w.Must("taint", row.address)
				} else {
					args = append(args, "-"+row.option+"="+row.address)
				}
				output, _ := w.Run(args...)
				acctest.Mention(t, output, says)
				site.WantVerbs(t, s, node, verbs...)
			}
		})
	}
}
