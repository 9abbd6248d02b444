package machine_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// Words of Ironic for reasons of each blame.
const (
	noImage     = "Validation of image href http://h/a failed, reason: Got HTTP code 404 instead of 200 in response to HEAD request."
	noServer    = "Validation of image href http://h/a failed, reason: HTTPConnectionPool(host='h', port=80): Max retries exceeded"
	noRoom      = "Disk volume where '/var/lib/ironic' is located doesn't have enough disk space. Required 10 MiB, only 3 MiB available"
	noRamdisk   = "Image http://r/ironic-python-agent.kernel could not be found."
	noNetwork   = "UUID or name of cleaning network is not set in configuration or in node driver_info."
	brokenDisk  = "Writing image to device /dev/sda failed with exit code 1"
	neverCalled = "Timeout reached while waiting for callback for node n"
	noWorker    = "No free conductor workers available"
	noLogin     = "Failed to get power state. Error: HTTP GET https://b/redfish/v1 returned code 401. Base.1.0.GeneralError: Invalid"
)

// The second machine that fails for a reason that is not its own stops those that share what the reason speaks against: they get the same,
// or have the same conductor, image server, ramdisk or networks. Nothing is sent to them.
func TestInVain_stopsWhatSharesTheReason(t *testing.T) {
	t.Parallel()
	const image = "http://h/a sha256:1"
	driver := func(key, value string) map[string]any { return map[string]any{key: value} }
	for name, tt := range map[string]struct {
		words       [2]string // of the machines that fail
		gets        [3]string // the third machine is the one that is judged
		driver      [3]map[string]any
		conductor   string // of the third; "": that of the others
		sameMachine bool   // it fails twice
		state       string // of the third, which Ironic works on
		neutron     bool   // its network interface, and not that of the others
		goal        states.Goal
		stops       bool
	}{
		"the same image":           {words: [2]string{noImage, noImage}, gets: [3]string{image, image, image}, stops: true},
		"another image":            {words: [2]string{noImage, noImage}, gets: [3]string{image, image, "http://h/b"}},
		"two images":               {words: [2]string{noImage, noImage}, gets: [3]string{image, "http://h/b", image}},
		"one machine, twice":       {words: [2]string{noImage, noImage}, gets: [3]string{image, image, image}, sameMachine: true},
		"two reasons":              {words: [2]string{noImage, noRoom}, gets: [3]string{image, image, image}},
		"nothing is known of it":   {words: [2]string{noImage, noImage}, gets: [3]string{image, image, ""}},
		"a machine's own":          {words: [2]string{brokenDisk, brokenDisk}, gets: [3]string{image, image, image}},
		"unclear":                  {words: [2]string{neverCalled, neverCalled}, gets: [3]string{image, image, image}},
		"an unknown text":          {words: [2]string{"It broke.", "It broke."}, gets: [3]string{image, image, image}},
		"the same conductor":       {words: [2]string{noRoom, noRoom}, gets: [3]string{image, "", "http://h/b"}, stops: true},
		"another conductor":        {words: [2]string{noRoom, noRoom}, gets: [3]string{image, image, image}, conductor: "c2"},
		"the same image server":    {words: [2]string{noServer, noServer}, gets: [3]string{image, "http://h/b", "http://h/c"}, stops: true},
		"another image server":     {words: [2]string{noServer, noServer}, gets: [3]string{image, image, "http://other/a"}},
		"the same ramdisk":         {words: [2]string{noRamdisk, noRamdisk}, gets: [3]string{image, image, "http://h/b"}, stops: true},
		"the same networks":        {words: [2]string{noNetwork, noNetwork}, gets: [3]string{image, image, "http://h/b"}, stops: true},
		"what passes, and has not": {words: [2]string{noWorker, noWorker}, gets: [3]string{image, image, "http://h/b"}, stops: true},
		"another ramdisk": {words: [2]string{noRamdisk, noRamdisk}, gets: [3]string{image, image, image}, driver: [3]map[string]any{
			2: driver("deploy_kernel", "http://r/other.kernel"),
		}},
		"a host's own password":     {words: [2]string{noLogin, noLogin}, gets: [3]string{image, image, image}},
		"a machine at work":         {words: [2]string{noImage, noImage}, gets: [3]string{image, image, image}, state: "clean wait"},
		"another network interface": {words: [2]string{noNetwork, noNetwork}, gets: [3]string{image, image, image}, neutron: true},
		"another operation":         {words: [2]string{noNetwork, noNetwork}, gets: [3]string{image, image, image}, goal: states.GoalDeployed},
		"other networks": {words: [2]string{noNetwork, noNetwork}, gets: [3]string{image, image, image}, driver: [3]map[string]any{
			2: driver("cleaning_network", "other"),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := manageableFleet(3, time.Second)
				var ids []string
				for i, n := range fake.Nodes() {
					ids = append(ids, n.UUID)
					if tt.driver[i] != nil {
						fake.Set(n.UUID, "driver_info", tt.driver[i])
					}
				}
				if tt.sameMachine {
					ids[1] = ids[0]
				}
				words := tt.words[0]
				fake.Fail = func(fakeironic.Node, string) string { return words }
				client := sitetest.NewClient(fake)
				for i, id := range ids[:2] {
					words = tt.words[i]
					if _, err := client.Of(t.Context(), id, func(m *machine.Machine) error {
						m.Gets(tt.gets[i])
						return m.Reach(t.Context(), states.GoalAvailable, time.Hour)
					}); !failure.Is(err, failure.KindFailed) {
						t.Fatal(err)
					}
				}
				m, err := client.Machine(t.Context(), ids[2])
				if err != nil {
					t.Fatal(err)
				}
				if tt.conductor != "" {
					m.Node().Conductor = tt.conductor
				}
				m.Gets(tt.gets[2])
				if tt.neutron {
					m.Node().NetworkInterface = "neutron"
				}
				if tt.state != "" || tt.neutron || tt.goal != "" {
					m.Node().ProvisionState = cmp.Or(tt.state, m.Node().ProvisionState)
					if err := m.InVain(cmp.Or(tt.goal, states.GoalAvailable)); (err != nil) != tt.stops {
						t.Error(err)
					}
					return
				}
				fake.ResetRequests()
				err = m.Reach(t.Context(), states.GoalAvailable, time.Hour)
				if stops := failure.Is(err, machine.KindInVain); stops != tt.stops {
					t.Fatalf("stops: %t, %v", stops, err)
				}
				if !tt.stops {
					return
				}
				if n := ironictest.Count(fake, "PUT", "/v1/nodes/"+ids[2]+"/states/provision"); n > 0 {
					t.Errorf("%d verbs were sent to it", n)
				}
				summary, detail := failure.Explain("deploy node n", err)
				why := failure.As(err, machine.KindInVain).Why
				for _, want := range []string{"Node node-002", "node-000 and node-001, ", why.ID, why.Meaning, why.Next, "Nothing was"} {
					if !strings.Contains(detail, want) {
						t.Errorf("%s: %q does not say %q", summary, detail, want)
					}
				}
				if lines := strings.Count(detail, "\n"); summary != "Machine was not started" || lines > 4 {
					t.Errorf("%s, with %d lines: %s", summary, lines, detail)
				}
			})
		})
	}
}

// A machine that waits for a slot when the second one fails is not started; one at which Ironic works already goes on.
func TestInVain_whileMachinesWaitForSlots(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(6, time.Minute)
		fake.Fail = func(fakeironic.Node, string) string { return noImage }
		client := sitetest.Run(fake, sitetest.UpTo(2))
		ended := make(chan error)
		for _, n := range fake.Nodes() {
			go func() {
				_, err := client.Of(t.Context(), n.UUID, func(m *machine.Machine) error {
					m.Gets("http://h/a")
					return m.Reach(t.Context(), states.GoalAvailable, time.Hour)
				})
				ended <- err
			}()
		}
		failed, stopped := 0, 0
		for range 6 {
			switch err := <-ended; {
			case failure.Is(err, failure.KindFailed):
				failed++
			case failure.Is(err, machine.KindInVain):
				stopped++
			default:
				t.Error(err)
			}
		}
		if failed < 2 || failed > 4 || failed+stopped != 6 { // two may begin before Ironic has said why the first two have failed
			t.Errorf("%d have failed, and %d were stopped", failed, stopped)
		}
	})
}

// The errors of machines that fail for one reason name each other, and what those that succeeded have not in common with them.
func TestFailed_saysWhatFailedAlike(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(16, time.Second)
		client := sitetest.NewClient(fake)
		var said []string
		for i, n := range fake.Nodes() {
			fake.Fail = func(fakeironic.Node, string) string { return "" }
			bmc := "https://192.0.2.1"
			if i >= 10 {
				bmc = "https://192.0.3.1"
				fake.Fail = func(fakeironic.Node, string) string { return brokenDisk }
			}
			fake.Set(n.UUID, "driver_info", map[string]any{"redfish_address": bmc})
			if _, err := client.Reach(t.Context(), n.UUID, states.GoalAvailable, time.Hour); err != nil {
				_, detail := failure.Explain("clean", err)
				said = append(said, detail)
			}
		}
		if len(said) != 6 {
			t.Fatalf("%d failed", len(said))
		}
		const too = "have failed for this reason, too: "
		for i, want := range []string{
			1: too + "node-010.\n",
			2: too + "node-010, node-011. 3 of 3 failed: BMC network 192.0.3.0/24; 0 of 10 elsewhere.",
			5: too + "node-010, node-011, node-012, node-013, node-014. 6 of 6 failed: BMC network 192.0.3.0/24; 0 of 10 elsewhere.",
		} {
			if i == 0 && strings.Contains(said[i], too) || !strings.Contains(said[i], want) {
				t.Errorf("%d: %s", i, said[i])
			}
		}
	})
}
