package host_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// cables are the ports of a switch leaf-1 to which network cards are connected, by MAC address.
type cables struct {
	mu    sync.Mutex
	ports map[string]string // "": the switch is silent
}

// connect changes cables: pairs of a MAC address and a port.
func (c *cables) connect(pairs ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := 0; i < len(pairs); i += 2 {
		c.ports[pairs[i]] = pairs[i+1]
	}
}

// hears is the LLDP of the fake. A card without a cable here is one that the ramdisk does not listen at.
func (c *cables) hears(mac string) []any {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch port, known := c.ports[mac]; {
	case !known:
		return nil
	case port == "":
		return []any{}
	default:
		return fakeironic.Announcement("52:54:00:ee:00:01", "leaf-1.example.com", port)
	}
}

// startCabled starts a site whose machines hear their switches.
func startCabled(t *testing.T, parses bool) (*site.Site, *cables) {
	t.Helper()
	c := &cables{ports: map[string]string{}}
	return site.StartFake(t, &fakeironic.Server{LLDP: c.hears, ParsesLLDP: parses}), c
}

// ends is the attribute ports with what is expected of the cables: pairs of a MAC address and a port of leaf-1.
func ends(pairs ...string) string {
	var ports []string
	for i := 0; i < len(pairs); i += 2 {
		ports = append(ports, fmt.Sprintf(`%q = { expect_neighbor = { switch = "leaf-1", port = %q } }`, pairs[i], pairs[i+1]))
	}
	return "ports = { " + strings.Join(ports, ", ") + " }"
}

// inventories counts the requests for inventories since the last call.
func inventories(s *site.Site) (count int) {
	for _, r := range s.Fake.Requests() {
		if strings.HasSuffix(r.Path, "/inventory") {
			count++
		}
	}
	s.Fake.ResetRequests()
	return count
}

const (
	miscabled = "are not as expected"
	inspects  = "inspect = true"
)

// A plan after an inspection names each cable that is not as expected, and asks for an inventory only after an inspection.
func TestFakeHostCabling_isProved(t *testing.T) {
	t.Parallel()
	for _, parses := range []bool{false, true} {
		s, c := startCabled(t, parses)
		a, b, d := s.MAC(1), s.MAC(2), s.MAC(3)
		c.connect(a, "Ethernet1/2", b, "Ethernet1/1", d, "")
		config := func(trigger string) string {
			return withBMC(s, inspects, `inspect_triggers = { cables = `+acctest.Quoted(trigger)+` }`,
				ends(a, "Eth1/1", b, "eth1/2", d, "Ethernet1/3"))
		}
		w := acctest.NewWorkspace(t, config("1"))
		w.Must("apply", "-auto-approve")
		inventories(s)
		output, changes := w.Plan()
		acctest.Mention(t, output, miscabled, fmt.Sprintf("The cables of %s and %s are swapped (leaf-1 Eth1/1 and leaf-1 eth1/2); %s has "+
			"no link (expected: leaf-1 Ethernet1/3).", a, b, d))
		if count := inventories(s); changes || count != 0 {
			t.Errorf("the plan has changes: %t, and asked for %d inventories:\n%s", changes, count, output)
		}
		acctest.NoDrift(t, w)

		c.connect(a, "Ethernet1/1", b, "Ethernet1/12", d, "Ethernet1/3")
		first := s.Node(s.Name("h"))["inspection_finished_at"]
		site.Until(t, "another second: inspections of the same second are one", func() bool {
			return time.Now().UTC().Format(time.DateTime) > strings.Replace(site.Text(first), "T", " ", 1)[:len(time.DateTime)]
		})
		w.Configure(config("2"))
		w.Must("apply", "-auto-approve")
		output, _ = w.Plan()
		acctest.Mention(t, output, miscabled, b+" is connected to leaf-1.example.com Ethernet1/12, not to leaf-1 eth1/2.")
		acctest.NeverMention(t, output, a+" ", d+" ")

		w.Configure(strings.Replace(config("2"), "eth1/2", "Ethernet1/13", 1)) // the inspection is older than that
		output, _ = w.Plan()
		acctest.Mention(t, output, "are to be inspected again", "expect_neighbor has changed since")
		acctest.NeverMention(t, output, miscabled)
		w.Configure(strings.Replace(config("2"), "eth1/2", "Ethernet1/12", 1))
		output = w.Must("apply", "-auto-approve")
		acctest.NeverMention(t, output, "Cables")
		acctest.NoChanges(t, w)
		acctest.NoDrift(t, w)
		note, _ := s.Node(s.Name("h"))["extra"].(map[string]any)["terraform_metal_cabling"].(map[string]any)
		if len(note) != 3 {
			t.Errorf("the note is %v", note)
		}
		w.Configure(withBMC(s, inspects, fmt.Sprintf("ports = { %q = {} }", a)))
		w.Must("apply", "-auto-approve")
		left := s.Node(s.Name("h"))["extra"].(map[string]any)["terraform_metal_cabling"]
		if left != nil {
			t.Errorf("the note stays: %v", left)
		}
		acctest.NoChanges(t, w)
		acctest.Destroy(t, s, w)
	}
}

// The plan of the host that is planned last says that its cable and one of another host are swapped.
func TestFakeHostCabling_namesCablesOfTwoHosts(t *testing.T) {
	t.Parallel()
	s, c := startCabled(t, false)
	a, b := s.MAC(1), s.MAC(2)
	c.connect(a, "swp2", b, "swp1")
	host := func(name, mac, port, more string) string {
		return fmt.Sprintf("resource \"metal_host\" %q {\n  name = %q\n  bmc = { address "+
			"= \"redfish-virtualmedia://192.0.2.%d/redfish/v1/Systems/1\", username = \"root\", password = \"calvin\" }\n  inspect "+
			"= true\n  %s\n  %s\n}\n", name, s.Name(name), name[0], ends(mac, port), more)
	}
	w := acctest.NewWorkspace(t, s.Provider()+host("a", a, "swp1", "")+host("b", b, "swp2", "depends_on = [metal_host.a]"))
	w.Must("apply", "-auto-approve")
	defer acctest.Destroy(t, s, w)
	output, _ := w.Plan()
	acctest.Mention(t, output, miscabled, a+" is connected to leaf-1.example.com swp2, not to leaf-1 swp1",
		fmt.Sprintf("The cables of %s and of %s of host %s are swapped (leaf-1 swp2 and leaf-1 swp1)", b, a, s.Name("a")))
}

// Without LLDP there is no false alarm. The plan says once how to get it.
func TestFakeHostCabling_needsLLDP(t *testing.T) {
	t.Parallel()
	s, _ := startCabled(t, false)
	w := acctest.NewWorkspace(t, s.Provider()+fmt.Sprintf(`
resource "metal_host" "h" {
  for_each = { %q = "swp1", %q = "swp2" }
  name     = "host-${each.value}"
  driver   = "fake-hardware"
  inspect  = true
  ports    = { (each.key) = { expect_neighbor = { switch = "leaf-1", port = each.value } } }
}
`, s.MAC(1), s.MAC(2)))
	w.Must("apply", "-auto-approve")
	defer acctest.Destroy(t, s, w)
	output, _ := w.Plan()
	acctest.Mention(t, output, "Cables are not proved", "ipa-collect-lldp=1")
	acctest.NeverMention(t, output, miscabled)
	if count := strings.Count(output, "ipa-collect-lldp"); count != 1 {
		t.Errorf("the plan says %d times how to collect LLDP:\n%s", count, output)
	}
}
