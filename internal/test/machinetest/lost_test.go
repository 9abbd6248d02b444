package machinetest_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// twoSyncs is longer than two intervals of what Ironic does regularly, as tools/ironic-up sets them.
const twoSyncs = 25 * time.Second

// longestSilence is how long a machine may not answer on a busy host. A restart takes longer.
const longestSilence = 20 * time.Second

// What the guide about lost records sets before conductors start on a backup, and its end.
const (
	beforeBackup = "force_power_state_during_sync = false\ncheck_provision_state_interval = 0\nrescue_callback_timeout = 0\n"
	afterBackup  = "force_power_state_during_sync = true\ncheck_provision_state_interval = 10\n"
)

// touches are the events of a machine that something was done to.
var touches = []fakebmc.Kind{
	fakebmc.Commanded, fakebmc.PoweredOn, fakebmc.PoweredOff, fakebmc.Booted, fakebmc.Inserted, fakebmc.Ejected,
}

// untouched is what stays while nothing is done to a machine.
type untouched struct {
	events  []fakebmc.Event
	reports []report // one for each boot
	disk    string   // its checksum
}

func (c *computer) untouched() untouched {
	return untouched{c.History(touches...), c.reports(), c.sum(c.Disk())}
}

// wantUntouched fails the test if something was done to the machine.
func (c *computer) wantUntouched(before untouched) {
	c.rack.t.Helper()
	now := c.untouched()
	if !slices.Equal(now.events, before.events) {
		c.rack.t.Errorf("events of %s: %v", c.Name(), now.events[len(before.events):])
	}
	if !slices.Equal(now.reports, before.reports) {
		c.rack.t.Errorf("%s has booted: %v", c.Name(), now.reports[len(before.reports):])
	}
	if now.disk != before.disk {
		c.rack.t.Errorf("the disk of %s has other bytes", c.Name())
	}
}

// watch connects to the port of the machine's image again and again. end fails the test unless the machine has answered all the time.
func (c *computer) watch() (end func()) {
	address, done, ended := net.JoinHostPort(c.leased(), "22"), make(chan struct{}), make(chan struct{})
	answers, longest, last := 0, time.Duration(0), time.Now()
	go func() {
		defer close(ended)
		for {
			if conn, err := net.DialTimeout("tcp", address, 2*time.Second); err == nil { //nolint:noctx // it ends soon
				conn.Close()
				answers++
				longest, last = max(longest, time.Since(last)), time.Now()
			}
			select {
			case <-done:
				longest = max(longest, time.Since(last))
				return
			case <-time.After(300 * time.Millisecond):
			}
		}
	}()
	return func() {
		c.rack.t.Helper()
		close(done)
		<-ended
		c.rack.t.Logf("%s has answered %d times, and was silent for at most %s", c.Name(), answers, longest.Round(time.Millisecond))
		if answers == 0 || longest > longestSilence {
			c.rack.t.Errorf("%s was silent for %s", c.Name(), longest)
		}
	}
}

// awaitSyncs waits until Ironic has done twice what it does regularly. It reads the power of each machine that is not in maintenance.
func (c *computer) awaitSyncs() {
	c.rack.t.Helper()
	begin := time.Now()
	c.rack.await("Ironic to read the power of "+c.Name(), func() bool {
		return slices.ContainsFunc(c.Server.Requests(), func(q fakebmc.Request) bool { return q.Time.After(begin.Add(twoSyncs)) })
	})
}

// logChanges logs what clients asked the BMC to change, but for log-ins, and how much they read.
func (c *computer) logChanges(what string) {
	reads := 0
	var changes []string
	for _, q := range c.Server.Requests() {
		switch {
		case q.Method == "GET":
			reads++
		case !strings.Contains(q.Path, "/Sessions"):
			changes = append(changes, fmt.Sprintf("%s %s %s", q.Method, q.Path, q.Body))
		}
	}
	c.rack.t.Logf("%s: %s was read %d times, and changed: %q", what, c.Name(), reads, changes)
}

// TestMetal_lostRecordsAreRestoredBesideRunningMachines loses the records of a machine that runs from its disk, of one that runs from a live
// ISO, and of one that is off: with the whole database, and with a backup from the middle of the deployments. Other tests must not run: the
// records of their machines would be lost, too.
func TestMetal_lostRecordsAreRestoredBesideRunningMachines(t *testing.T) {
	r := startRack(t, provisioning)
	s := loss{rack: r, disk: r.machine(1), live: r.machine(2), idle: r.machine(3)}
	s.w = r.workspace(s.config(false))
	defer acctest.Destroy(t, r.Site, s.w)
	r.step("deploy, and back the database up in the middle", func() {
		running := s.w.Start(acctest.Apply()...)
		r.await("Ironic to work on the deployment", func() bool { return site.IsBusy(r.Site, r.Name("h"), site.BusyDeploying()) })
		r.backUp()
		t.Logf("in the backup: %s", r.sql("SELECT name, provision_state, power_state, reservation FROM backup.nodes"))
		if output, code := running.Wait(); code != 0 {
			t.Fatalf("exit %d: %s", code, output)
		}
		s.disk.await("one")
		s.live.await("live-one")
	})
	s.w.Configure(s.config(true))
	s.w.Must(acctest.Apply()...) // nothing is cleaned by that
	acctest.NoChanges(t, s.w)

	s.disk.awaitSyncs()
	s.restore("lost database", r.loseDatabase)
	r.sql("UPDATE backup.nodes SET provision_state = 'clean wait', target_provision_state = 'available' WHERE name = '" + r.Name("h") + "'")
	s.restore("older backup", func() {
		r.configure("clean_callback_timeout = 1\n" + beforeBackup)
		r.restoreBackup()
		s.idle.awaitSyncs()
	})
	r.configure(patient) // for the tests that follow
}

// loss is three machines whose records Ironic loses.
type loss struct {
	*rack
	w                *acctest.Workspace
	disk, live, idle *computer
}

// config returns the configuration of the machines. cleans: the idle one is cleaned when it becomes available.
func (s *loss) config(cleans bool, settings ...string) string {
	host := func(name string, c *computer, cleans bool) string {
		return fmt.Sprintf("resource \"metal_host\" %q {\n  name = %q\n  automated_clean = %t\n  resource_class = %q\n  %s\n  %s\n  %s\n}\n",
			name, s.Name(name), cleans, s.Class(), acctest.Target("available"), c.hardware(), c.ports())
	}
	return s.Provider(settings...) + host("h", s.disk, false) + host("live", s.live, false) + host("idle", s.idle, cleans) +
		acctest.Allocation(s.Site, "candidate_nodes = [metal_host.h.id]") +
		s.disk.deployment("metal_allocation.a.node_id", "one", "first", "allocation_id = metal_allocation.a.id") + fmt.Sprintf(`
resource "metal_deployment" "live" {
  node_id = metal_host.live.id
  live_iso = {
    url          = %q
    host_content = { image = "one" }
    quiet_period = "0s"
  }
}
`, s.image("one.iso"))
}

// restore loses the records and restores them. In between, when the hosts are restored, the machine with the live ISO is switched on, which
// was off: Ironic must not bring it back to that. Nothing else is done to the machines.
func (s *loss) restore(what string, lose func()) {
	s.t.Helper()
	all := []*computer{s.disk, s.live, s.idle}
	for _, c := range all {
		c.Server.ResetRequests()
	}
	disk, idle := s.disk.untouched(), s.idle.untouched()
	endDisk := s.disk.watch()
	lose()
	s.live.Command("ForceOff")
	s.w.Configure(s.config(true, `lost_records = "restore"`))
	s.step(what+": restore the hosts", func() {
		s.w.Must(append(acctest.Apply(), "-target=metal_host.h", "-target=metal_host.live", "-target=metal_host.idle")...)
	})
	boots := len(s.live.reports())
	s.live.Command("On")
	s.await("the live ISO to boot", func() bool { return len(s.live.reports()) > boots })
	live, endLive := s.live.untouched(), s.live.watch()
	s.step(what+": restore what is left", func() { acctest.Mention(s.t, s.w.Must(acctest.Apply()...), "Lost deployment is restored") })
	acctest.NoChanges(s.t, s.w)
	s.w.Configure(s.config(true))
	s.step(what+": return", func() { acctest.Mention(s.t, s.w.Must(acctest.Apply()...), "Restored host returns") })
	for range 2 {
		for _, c := range all {
			c.awaitSyncs()
		}
		s.configure(afterBackup)
	}
	acctest.NoChanges(s.t, s.w)
	endDisk()
	endLive()
	for i, before := range []untouched{disk, live, idle} {
		all[i].wantUntouched(before)
		all[i].logChanges(what)
	}
}
