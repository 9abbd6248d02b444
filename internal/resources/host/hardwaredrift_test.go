package host_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// lost is the title of the warning about settings that a machine has lost.
const lost = "Hardware differs from the configuration"

// reset lets a machine lose its BIOS settings and its firmware, and Ironic read that when another client moves the node.
func reset(s *site.Site, later time.Duration) {
	s.Fake.ResetBIOS(s.Name("h"))
	s.Fake.SetFirmware(s.Name("h"), "bios", "2.18.0")
	move(s, s.Name("h"), later)
}

// move lets a node have moved at a time from now.
func move(s *site.Site, node string, later time.Duration) {
	s.Fake.Set(node, "provision_updated_at", time.Now().Add(later).UTC().Format(time.RFC3339))
}

// asked counts the requests for BIOS settings and firmware since the last call.
func asked(s *site.Site) (count int) {
	for _, r := range s.Fake.Requests() {
		if strings.HasSuffix(r.Path, "/bios") || strings.HasSuffix(r.Path, "/firmware") {
			count++
		}
	}
	s.Fake.ResetRequests()
	return count
}

// A plan warns of settings that the machine has lost, and asks Ironic only after the node has moved.
func TestFakeHostDrift_warns(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	settings := []string{acctest.Target("available"), virtualization, newFirmware}
	w := acctest.NewWorkspace(t, withBMC(s, append(settings, `hardware_drift = "warn"`)...))
	w.Must("apply", "-auto-approve")
	defer acctest.Destroy(t, s, w)
	asked(s)
	acctest.NoChanges(t, w)
	acctest.NoDrift(t, w)
	s.Fake.ResetBIOS(s.Name("h"))
	if output, _ := w.Plan(); asked(s) != 0 || strings.Contains(output, lost) {
		t.Errorf("the plan has asked for hardware though the node has not moved:\n%s", output)
	}

	reset(s, time.Minute)
	output, changes := w.Plan()
	acctest.Mention(t, output, lost, "Host "+s.Name("h")+
		`: BIOS setting ProcVirtualization is "Disabled", not "Enabled"; the firmware of bios has version "2.18.0", not "2.19.1".`,
		`No plan is made to correct that, because hardware_drift is "warn".`)
	if count := asked(s); changes || count != 2 {
		t.Errorf("the plan has changes: %t, and %d requests asked for hardware, want 2:\n%s", changes, count, output)
	}
	w.Must("apply", "-auto-approve")
	if count := asked(s); count != 2 {
		t.Errorf("%d requests asked for hardware, want 2", count)
	}
	output, _ = w.Plan()
	acctest.Mention(t, output, lost)
	if count := asked(s); count != 0 {
		t.Errorf("%d requests asked for hardware again", count)
	}
	acctest.NoDrift(t, w)
	w.Configure(withBMC(s, acctest.Target("available"), `bios_settings = { ProcVirtualization = "Enabled", BootMode = "Bios" }`,
		newFirmware, `hardware_drift = "warn"`))
	output, _ = w.Plan()
	acctest.Mention(t, output, lost, "The change of bios_settings sets all of them")

	w.Configure(withBMC(s, append(settings, `hardware_drift = "ignore"`)...))
	output = w.Must("apply", "-auto-approve")
	acctest.NeverMention(t, output, lost)
	acctest.NoChanges(t, w)
}

// A plan sets what the machine has lost again, with the steps and the warnings of any change. Applied from a file it does the same.
func TestFakeHostDrift_isCorrected(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	settings := []string{acctest.Target("available"), virtualization, newFirmware}
	w := acctest.NewWorkspace(t, withBMC(s, settings...))
	w.Must("apply", "-auto-approve")
	defer acctest.Destroy(t, s, w)
	reset(s, time.Minute)
	w.Configure(withBMC(s, append(settings, `hardware_drift = "plan"`)...))
	output := w.Must("apply", "-auto-approve")
	acctest.Mention(t, output, lost, `The next plan sets bios_settings and firmware again, because of hardware_drift = "plan".`)
	acctest.NeverMention(t, output, "Host leaves the pool")

	site.ForgetVerbs(s)
	changes := w.Save()
	if after := changes[acctest.HostAddress]; fmt.Sprint(after.After["cleanings"]) != "2" || after.Unknown["pending_changes"] != true {
		t.Errorf("the plan has %v", after)
	}
	output = w.Must("plan", "-refresh=false")
	acctest.Mention(t, output, lost, "The apply sets bios_settings and firmware again.", "Host leaves the pool")
	s.Fake.ResetRequests()
	w.Must("apply", "saved")
	wantBIOS(t, s, map[string]string{"ProcVirtualization": "Enabled"})
	wantSteps(t, s, w, "bios.apply_configuration", "firmware.update")
	wantPending(t, w)
	acctest.NoChanges(t, w)
	acctest.NoDrift(t, w)

	s.Fake.ResetBIOS(s.Name("h")) // the next loss is corrected, too, and only what is lost is sent
	move(s, s.Name("h"), 2*time.Minute)
	s.Fake.ResetRequests()
	w.Must("apply", "-auto-approve")
	wantSteps(t, s, w, "bios.apply_configuration")
	acctest.NoChanges(t, w)
}

// A setting that the machine does not keep is set once, and then only named.
func TestFakeHostDrift_isCorrectedOnce(t *testing.T) {
	t.Parallel()
	skips := false
	s := site.StartFake(t, &fakeironic.Server{Skips: func(string) bool { return skips }})
	w := acctest.NewWorkspace(t, withBMC(s, virtualization, `hardware_drift = "plan"`))
	w.Must("apply", "-auto-approve")
	defer acctest.Destroy(t, s, w)
	skips = true
	reset(s, time.Minute)
	acctest.Fails(t, w, []string{"apply", "-auto-approve"}, "Ironic reported success, but the BIOS setting ProcVirtualization is",
		"The next plans name the difference, and do not set it again")
	for range 2 {
		output, changes := w.Plan()
		acctest.Mention(t, output, lost, "The provider has set ProcVirtualization before, and afterwards Ironic reported the "+
			"same difference")
		if changes {
			t.Errorf("the setting is set again:\n%s", output)
		}
		w.Must("apply", "-auto-approve")
	}
	skips = false
	w.Configure(withBMC(s, `bios_settings = { ProcVirtualization = "Disabled" }`, `hardware_drift = "plan"`))
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	w.Configure(withBMC(s, virtualization, `hardware_drift = "plan"`)) // it is tried again
	w.Must("apply", "-auto-approve")
	wantBIOS(t, s, map[string]string{"ProcVirtualization": "Enabled"})
	acctest.NoChanges(t, w)
}

// The provider block has the default, and a host may say otherwise.
func TestFakeHostDrift_hasADefault(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	config := func(settings ...string) string {
		return strings.Replace(withBMC(s, append(settings, virtualization)...), s.Provider(), s.Provider(`hardware_drift = "plan"`), 1)
	}
	w := acctest.NewWorkspace(t, config())
	w.Must("apply", "-auto-approve")
	defer acctest.Destroy(t, s, w)
	reset(s, time.Minute)
	output, _ := w.Plan()
	acctest.Mention(t, output, lost, "The apply sets bios_settings again.", "Hardware change restarts the machine")
	w.Configure(config(`hardware_drift = "warn"`))
	output = w.Must("apply", "-auto-approve")
	acctest.Mention(t, output, lost)
	acctest.NeverMention(t, output, "Hardware change restarts the machine")
}
