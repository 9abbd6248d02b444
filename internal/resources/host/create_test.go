package host_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// ofNode returns the requests for a node and its ports, without the polls of its state.
func ofNode(s *site.Site, id string) (sent []string) {
	for _, r := range s.Fake.Requests() {
		polls := strings.Contains(r.Query, "fields=")
		if strings.Contains(r.Path+r.Query+r.Body, id) && !polls {
			sent = append(sent, r.Method+" "+strings.ReplaceAll(r.Path, id, "ID"))
		}
	}
	return sent
}

func TestFakeHost_creationSendsNothingTwice(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.HostBlock(s.Name("h"), bmc.Block("redfish://192.0.2.1/redfish/v1/Systems/1"),
		`ports = { `+acctest.Quoted(s.MAC(1))+` = {} }`, acctest.Target("available"), `power_state = "off"`))
	w.Must("apply", "-auto-approve")
	defer acctest.Destroy(t, s, w)
	sent := ofNode(s, site.Text(s.Node(s.Name("h"))["uuid"]))
	t.Log(sent)
	var changes []string
	for _, request := range sent {
		switch {
		case !strings.HasPrefix(request, "GET "):
			changes = append(changes, request)
		case request != "GET /v1/nodes/ID":
			t.Errorf("unexpected request %s", request)
		}
	}
	want := []string{
		"POST /v1/nodes", "POST /v1/ports", "PUT /v1/nodes/ID/states/provision", "PUT /v1/nodes/ID/states/provision",
		"PATCH /v1/nodes/ID",
	}
	if !slices.Equal(changes, want) {
		t.Errorf("changes sent: %v, want %v", changes, want)
	}
	if first := slices.Index(sent, want[2]); slices.Contains(sent[:max(first, 0)], "GET /v1/ports/detail") {
		t.Errorf("the new ports were read: %v", sent)
	}
	acctest.NoChanges(t, w)
}

// Ironic may refuse a port that the list of ports does not show. The provider then deletes the new node.
func TestFakeHost_refusedPortLeavesNoNode(t *testing.T) {
	t.Parallel()
	var refusals atomic.Int32
	text := func(mac string) string {
		return fmt.Sprintf(
			`{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"A port with MAC address %s already exists.\", \"debuginfo\": null}"}`, mac)
	}
	s := site.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		if r.Method == http.MethodPost && r.URL.Path == "/v1/ports" && refusals.Add(1) == 1 {
			return &fakeironic.Rejection{Status: http.StatusConflict, Body: text("52:54:00:00:00:01")}
		}
		return nil
	}})
	w := acctest.NewWorkspace(t, hostConfig(s, `ports = { `+acctest.Quoted(s.MAC(1))+` = {} }`))
	acctest.Fails(t, w, acctest.Apply(), "Could not enroll node "+s.Name("h"), "A port with MAC address", "already exists")
	if host := acctest.InState(t, w, acctest.HostAddress); host != nil || s.Node(s.Name("h")) != nil {
		t.Errorf("state has %+v, Ironic %v, want neither", host, s.Node(s.Name("h")))
	}
	w.Must("apply", "-auto-approve")
	acctest.Destroy(t, s, w)
}

func TestFakeHost_plansAndCreationsShareTwoLists(t *testing.T) {
	t.Parallel()
	const hosts = 60
	s := site.StartFake(t, nil)
	w := acctest.NewWorkspace(t, s.Provider()+fmt.Sprintf(`
resource "metal_host" "h" {
  count        = %d
  name         = "host-${count.index}"
  target_state = "enroll"
  bmc          = { address = "ipmi://192.0.2.${count.index}" }
  ports        = { format("52:54:00:00:00:%%02x", count.index) = {} }
}
`, hosts))
	w.Must("apply", "-auto-approve", "-parallelism=60")
	defer w.Must("destroy", "-auto-approve", "-parallelism=60")
	sent := map[string]int{}
	for _, r := range s.Fake.Requests() {
		sent[r.Method+" "+r.Path]++
	}
	t.Log(sent)
	if sent["GET /v1/nodes"] != 2 || sent["GET /v1/ports"] != 2 || // one of each for the plan, and for the apply
		sent["POST /v1/nodes"] != hosts || sent["POST /v1/ports"] != hosts {
		t.Errorf("the apply sent %v", sent)
	}
	if all := len(s.Fake.Requests()); all > 3*hosts+13 { // POST of node and port, and the PATCH that ends the creation
		t.Errorf("%d requests for %d hosts that are only enrolled", all, hosts)
	}
}

// A renamed key of for_each would destroy and create the host in one apply, along with what runs on it. A machine in use never changes hands
// so: the plan asks for a moved block.
func TestFakeHost_renamedKeyNeedsAMovedBlock(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	config := func(key, more string) string {
		return s.Provider() + fmt.Sprintf(`
			locals { machines = { %q = %q, %q = %q } }
			resource "metal_host" "h" {
			  for_each       = local.machines
			  name           = %q
			  bmc            = { address = "ipmi://192.0.2.${each.value}" }
			  ports          = { "52:54:00:00:00:${each.value}" = {} }
			  resource_class = %q
			  target_state   = "available"
			}
			resource "metal_deployment" "d" {
			  for_each = local.machines
			  node_id  = metal_host.h[each.key].id
			  %s
			}`, key, "71", s.Name("b"), "72", "${each.key}", s.Class(), acctest.Image("a")) + more
	}
	w := acctest.NewWorkspace(t, config(s.Name("a"), ""))
	w.Must(acctest.Apply()...)
	before, other := s.Node(s.Name("a"))["uuid"], s.Node(s.Name("b"))

	w.Configure(config(s.Name("renamed"), ""))
	acctest.Fails(t, w, []string{"plan"}, "Node "+s.Name("a")+" is deployed", "a key was renamed: use for_each, or moved blocks")

	// With moved blocks, the rename is an update in place.
	moved := ""
	for _, resource := range []string{"metal_host.h", "metal_deployment.d"} {
		moved += fmt.Sprintf("\nmoved {\n  from = %s[%q]\n  to   = %s[%q]\n}\n", resource, s.Name("a"), resource, s.Name("renamed"))
	}
	w.Configure(config(s.Name("renamed"), moved))
	acctest.Mention(t, w.Must(acctest.Apply()...), "0 added, 1 changed, 0 destroyed")
	if now := s.Node(s.Name("renamed")); now["uuid"] != before || now["provision_state"] != "active" {
		t.Errorf("the node is %v, want %v, running", now, before)
	}
	if now := s.Node(s.Name("b")); now["uuid"] != other["uuid"] || now["provision_updated_at"] != other["provision_updated_at"] {
		t.Errorf("the other host was touched: it was %v and is %v", other["provision_updated_at"], now["provision_updated_at"])
	}
	acctest.Destroy(t, s, w)
}

// Two hosts exchange their names and MAC addresses in one apply. The BMC of another node is refused while planning, at the attribute, and
// so is an exchange of BMCs.
func TestAccHost_hostsExchangeWhatIsUnique(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	hosts := func(name1, mac1, bmc1, name2, mac2, bmc2 string) string {
		block := func(label, name, mac, b string) string {
			return fmt.Sprintf("resource \"metal_host\" %q {\n  name = %q\n  target_state = \"enroll\"\n  ports = { %q = {} }\n  %s\n}\n",
				label, s.Name(name), mac, bmc.Block("redfish://"+s.Name(b)+".example.com/redfish/v1/Systems/1"))
		}
		return s.Provider() + block("h1", name1, mac1, bmc1) + block("h2", name2, mac2, bmc2)
	}
	w := acctest.NewWorkspace(t, hosts("a", s.MAC(1), "m", "b", s.MAC(2), "n"))
	defer acctest.Destroy(t, s, w)
	w.Must(acctest.Apply()...)
	w.Configure(hosts("b", s.MAC(2), "m", "a", s.MAC(1), "n"))
	acctest.Mention(t, w.Must(acctest.Apply()...), "0 added, 2 changed, 0 destroyed")
	acctest.NoChanges(t, w)
	for bmcs, want := range map[[2]string][]string{
		{"m", "m"}: {"has the BMC", "Two nodes on one BMC are one machine"}, {"n", "m"}: {"This run gives node", "in turn"},
	} {
		w.Configure(hosts("b", s.MAC(2), bmcs[0], "a", s.MAC(1), bmcs[1]))
		acctest.Fails(t, w, []string{"plan"}, want...)
	}
	w.Configure(hosts("b", s.MAC(2), "m", "a", s.MAC(1), "n"))
}
