package host_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// onBMC is a configuration with a host that has a BMC and is not cleaned, because its machine boots nothing.
func onBMC(s *site.Site, b string, settings ...string) string {
	return s.Provider() + acctest.HostBlock(s.Name("h"), append([]string{b, "automated_clean = false"}, settings...)...)
}

// startOnBMC starts a machine with a BMC, and returns a workspace with the configuration of its host.
func startOnBMC(t *testing.T, settings ...string) (*site.Site, *bmc.Controller, *acctest.Workspace) {
	t.Helper()
	s := site.StartWithBMCs(t, nil)
	b := bmc.Start(t, s, "m", fakebmc.Config{})
	return s, b, acctest.NewWorkspace(t, onBMC(s, b.Block(), settings...))
}

// hostInState returns the host in a workspace's state, and fails a test that finds none.
func hostInState(t *testing.T, w *acctest.Workspace) map[string]any {
	t.Helper()
	host := acctest.InState(t, w, acctest.HostAddress)
	if host == nil {
		t.Fatalf("there is no host in state:\n%s", w.State())
	}
	return host.Values
}

// wantPower fails a test unless the machine is on or off.
func wantPower(t *testing.T, b *bmc.Controller, on bool) {
	t.Helper()
	site.Until(t, fmt.Sprintf("the power of the machine to be %v", on), func() bool { return b.On() == on })
}

// sushy, the library of Ironic, agrees with the fake BMC about everything that it can do. METAL_ACC_PYTHON is the command of a
// Python that has it.
func TestAccBMC_sushyAgrees(t *testing.T) {
	t.Parallel()
	python := strings.Fields(os.Getenv("METAL_ACC_PYTHON"))
	if len(python) == 0 {
		t.Skip("METAL_ACC_PYTHON is not set")
	}
	s := site.StartWithBMCs(t, nil)
	script, err := os.ReadFile("testdata/drive_bmc.py")
	if err != nil {
		t.Fatal(err)
	}
	for name, quirks := range map[string][]fakebmc.Quirk{
		"standard": nil, "HPE": {fakebmc.EjectBody}, "Lenovo": {fakebmc.PatchMedia}, "Supermicro": {fakebmc.TransferProtocol},
		"strict": {fakebmc.ETags},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bmc.Start(t, s, name, fakebmc.Config{Quirks: quirks})
			username, password := b.Credentials()
			cmd := exec.CommandContext(t.Context(), python[0], append(python[1:], "-", b.URL, "", b.Path(), username, password)...)
			cmd.Stdin = strings.NewReader(string(script)) // the Python may be in another root directory
			if output, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			if b.Count(fakebmc.Booted) < 5 || b.Count(fakebmc.Inserted) != 1 || b.Count(fakebmc.ManagerRestarted) != 1 {
				t.Errorf("the history is %v", b.History())
			}
		})
	}
}

// The command line of sushy shows and changes a machine, over https.
func TestAccBMC_sushyCLIAgrees(t *testing.T) {
	t.Parallel()
	python := strings.Fields(os.Getenv("METAL_ACC_PYTHON"))
	if len(python) == 0 {
		t.Skip("METAL_ACC_PYTHON is not set")
	}
	s := site.StartWithBMCs(t, nil)
	b := bmc.StartSecure(t, s, "m", fakebmc.Config{})
	username, password := b.Credentials()
	trust := []string{"--tls-certificates", b.CAFile}
	if slices.Contains(python, "chroot") {
		trust = []string{"--insecure"} // it does not see the file
	}
	sushy := func(mention string, args ...string) {
		t.Helper()
		args = append(append([]string{"-m", "sushycli.cmd.sushycli"}, args...), append(trust, "--service-endpoint", b.URL, "--username",
			username, "--password", password)...)
		cmd := exec.CommandContext(t.Context(), python[0], append(python[1:], args...)...)
		output, err := cmd.CombinedOutput()
		if strings.Contains(string(output), "No module named") {
			t.Skip("Debian's package python3-sushy-cli is not installed; for a chroot of tools/ironic-up, delete it")
		}
		if err != nil || !strings.Contains(string(output), mention) {
			t.Fatalf("sushycli %v does not say %q: %v\n%s", args, mention, err, output)
		}
	}
	system, manager := []string{"--system-id", b.Path()}, strings.Replace(b.Path(), "/Systems/", "/Managers/", 1)
	cd := []string{"--manager-id", manager, "--device-id", manager + "/VirtualMedia/Cd"}
	run := func(mention, command string, more ...string) {
		t.Helper()
		sushy(mention, append(strings.Fields(command), more...)...)
	}
	run(b.Path(), "system list")
	run("Contoso", "system inventory show", system...)
	run("OFF", "system power show", system...)
	run("", "system bios set ProcTurboMode=Disabled", system...)
	run("", "manager vmedia insert --image http://127.0.0.1/a.iso", cd...)
	run("", "system power on", system...)
	run("Disabled", "system bios show", system...)
	if !b.On() || b.Medium() != "http://127.0.0.1/a.iso" || b.Count(fakebmc.Configured) != 1 {
		t.Errorf("the history is %v", b.History())
	}
	run("", "manager vmedia eject", cd...)
	run("", "system power off", system...)
	if b.On() || b.Medium() != "" {
		t.Errorf("the history is %v", b.History())
	}
}

func TestAccBMC_enrollsWithTheRightPassword(t *testing.T) {
	t.Parallel()
	_, b, w := startOnBMC(t, acctest.Target("available"))
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
	acctest.NoDrift(t, w)
	if state := hostInState(t, w)["provision_state"]; state != "available" || b.Count(fakebmc.LoginRefused)+b.Count(fakebmc.Commanded) > 0 {
		t.Errorf("the host is %v; the BMC saw %v", state, b.History())
	}
	w.Must("destroy", "-auto-approve")
}

func TestAccBMC_enrollsByHostNameAndOverIPv6(t *testing.T) {
	t.Parallel()
	for name, listen := range map[string]string{"localhost": "127.0.0.1:0", "[::1]": "[::1]:0"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.StartWithBMCs(t, nil)
			b := bmc.StartAt(t, s, listen, "m", fakebmc.Config{})
			w := acctest.NewWorkspace(t, onBMC(s, strings.Replace(b.Block(), "127.0.0.1", name, 1)))
			w.Must(acctest.Apply()...)
			acctest.NoChanges(t, w)
			w.Must("destroy", "-auto-approve")
		})
	}
}

// Ironic logs in again after its session has ended, and waits for a BMC that is busy.
func TestAccBMC_sessionEndsAndBMCIsBusy(t *testing.T) {
	t.Parallel()
	s, b, w := startOnBMC(t)
	w.Must(acctest.Apply()...)
	b.Server.ExpireSessions()
	hits := func() int { return 1 }
	if s.Fake == nil { // the fake Ironic does not repeat requests
		hits, _ = b.Server.Inject(fakebmc.Fault{Method: http.MethodGet, Path: "/Systems/", Status: http.StatusServiceUnavailable})
	}
	w.Configure(onBMC(s, b.Block(), `power_state = "on"`))
	w.Must(acctest.Apply()...)
	wantPower(t, b, true)
	if hits() != 1 {
		t.Errorf("the BMC was busy %d times", hits())
	}
	w.Must("destroy", "-auto-approve")
}

// The error of a wrong password says what Ironic said and what to do. The next apply, with the right one, verifies the host.
func TestAccBMC_wrongPasswordIsAnError(t *testing.T) {
	t.Parallel()
	s := site.StartWithBMCs(t, nil)
	b := bmc.Start(t, s, "m", fakebmc.Config{})
	wrong := bmc.Block(b.Address("redfish"), `username = "admin"`, `password_wo = "not-this-one"`, "password_wo_version = 1")
	w := acctest.NewWorkspace(t, onBMC(s, wrong))
	output := acctest.Fails(t, w, acctest.Apply(), `is in state "enroll"`, "returned code 401", "The BMC refuses the login. Check bmc.username and bmc.password_wo")
	if strings.Contains(output+w.State(), "not-this-one") {
		t.Error("the password is in the output or in state")
	}
	_, password := b.Credentials()
	w.Configure(onBMC(s, bmc.Block(b.Address("redfish"), `username = "admin"`, `password_wo = `+acctest.Quoted(password),
		"password_wo_version = 2")))
	w.Must(acctest.Apply()...)
	if state := hostInState(t, w)["provision_state"]; state != "manageable" {
		t.Errorf("the host is %v", state)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// A password that was changed at the BMC and then in the configuration works from the apply on.
func TestAccBMC_passwordIsRotated(t *testing.T) {
	t.Parallel()
	s := site.StartWithBMCs(t, nil)
	b := bmc.Start(t, s, "m", fakebmc.Config{})
	config := func(password string, version int, settings ...string) string {
		return onBMC(s, bmc.Block(b.Address("redfish"), `username = "admin"`, "password_wo = "+acctest.Quoted(password),
			fmt.Sprintf("password_wo_version = %d", version)), settings...)
	}
	_, old := b.Credentials()
	w := acctest.NewWorkspace(t, config(old, 1))
	w.Must(acctest.Apply()...)
	b.SetPassword("new-password")
	w.Configure(config("new-password", 2, `power_state = "on"`))
	w.Must(acctest.Apply()...)
	wantPower(t, b, true)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// verify_ca refuses a BMC whose certificate Ironic's host does not trust. A CA file in driver_info makes it trusted.
func TestAccBMC_certificateIsVerified(t *testing.T) {
	t.Parallel()
	s := site.StartWithBMCs(t, nil)
	b := bmc.StartSecure(t, s, "m", fakebmc.Config{})
	w := acctest.NewWorkspace(t, onBMC(s, b.Block("verify_ca = true")))
	acctest.Fails(t, w, acctest.Apply(), `is in state "enroll"`, "Unable to connect", "TLS to the BMC fails. Set bmc.verify_ca")
	w.Configure(onBMC(s, b.Block("verify_ca = false")))
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")

	if strings.Contains(os.Getenv("METAL_ACC_PYTHON"), "chroot") {
		return // Ironic does not see the file
	}
	username, password := b.Credentials()
	address := strings.Replace(b.URL, "127.0.0.1", "localhost", 1)
	w.Configure(s.Provider() + acctest.HostBlock(s.Name("h"), `driver = "redfish"`, fmt.Sprintf(
		`driver_info = { redfish_address = %q, redfish_system_id = %q, redfish_username = %q, redfish_verify_ca = %q }
  driver_info_wo = { redfish_password = %q }
  driver_info_wo_version = 1`, address, b.Path(), username, b.CAFile, password)))
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// A BMC that is gone is an error of the enrollment, and the next apply finishes it when the BMC is back. A host can be deleted
// while its BMC is gone.
func TestAccBMC_isGoneAndComesBack(t *testing.T) {
	t.Parallel()
	_, b, w := startOnBMC(t, `power_state = "on"`)
	plug := b.Server.Unplug()
	acctest.Fails(t, w, acctest.Apply(), `is in state "enroll"`, "Unable to connect", "The conductor cannot reach the BMC")
	plug()
	w.Must(acctest.Apply()...)
	wantPower(t, b, true)
	acctest.NoChanges(t, w)
	b.Server.Unplug()
	w.Must("destroy", "-auto-approve")
	wantPower(t, b, true)
}

func TestAccBMC_powerFollowsTheConfiguration(t *testing.T) {
	t.Parallel()
	s := site.StartWithBMCs(t, nil)
	b := bmc.Start(t, s, "m", fakebmc.Config{Machine: &fakebmc.Simulated{StartTime: 500 * time.Millisecond}})
	w := acctest.NewWorkspace(t, onBMC(s, b.Block()))
	w.Must(acctest.Apply()...)
	for _, power := range []string{"on", "off", "on"} {
		w.Configure(onBMC(s, b.Block(), "power_state = "+acctest.Quoted(power)))
		w.Must(acctest.Apply()...)
		wantPower(t, b, power == "on")
		acctest.NoChanges(t, w)
	}
	var commands []string
	for _, e := range b.History(fakebmc.Commanded) {
		commands = append(commands, e.Detail)
	}
	if !slices.Equal(commands, []string{"On", "ForceOff", "On"}) || b.Count(fakebmc.Booted) != 2 {
		t.Errorf("the BMC was sent %v; its history is %v", commands, b.History())
	}
	w.Must("destroy", "-auto-approve")
}

// A graceful shutdown that the operating system ignores is an error of Ironic's, and the machine stays on.
func TestAccBMC_gracefulShutdown(t *testing.T) {
	t.Parallel()
	s := site.StartWithBMCs(t, nil)
	obeys, ignores := &fakebmc.Simulated{ShutdownTime: time.Second}, &fakebmc.Simulated{IgnoresShutdown: true}
	for name, machine := range map[string]*fakebmc.Simulated{"obeys": obeys, "ignores": ignores} {
		b := bmc.Start(t, s, name, fakebmc.Config{Machine: machine})
		node := site.AddNode(t, s, name, b.Node("ipxe"))
		path := "nodes/" + node + "/states/power"
		s.Must(http.MethodPut, path, map[string]any{"target": "power on"})
		s.Await(node, "power_state", "power on")
		wantPower(t, b, true)
		s.Must(http.MethodPut, path, map[string]any{"target": "soft power off", "timeout": 5})
		want := "power off"
		if machine.IgnoresShutdown {
			want = "power on"
		}
		s.Await(node, "target_power_state", nil)
		after := s.Await(node, "power_state", want)
		if refused := after["last_error"] != nil; refused != machine.IgnoresShutdown {
			t.Errorf("%s: last_error is %v", name, after["last_error"])
		}
		wantPower(t, b, machine.IgnoresShutdown)
	}
}

// Another client restarts a machine through Ironic, and sets what it boots.
func TestAccBMC_bootDeviceAndRestart(t *testing.T) {
	t.Parallel()
	s := site.StartWithBMCs(t, nil)
	b := bmc.Start(t, s, "m", fakebmc.Config{})
	node := site.AddNode(t, s, "n", b.Node("ipxe"))
	power := func(target string) {
		t.Helper()
		s.Must(http.MethodPut, "nodes/"+node+"/states/power", map[string]any{"target": target})
		s.Await(node, "target_power_state", nil)
		s.Await(node, "power_state", "power on")
	}
	want := []string{"None", "None"}
	power("power on")
	if s.Fake == nil { // the fake Ironic does not set the boot device at a BMC
		s.Must(http.MethodPut, "nodes/"+node+"/management/boot_device", map[string]any{"boot_device": "pxe", "persistent": false})
		s.Await(node, "power_state", "power on")
		want = []string{"None", "Pxe", "None"}
		power("rebooting")
	}
	power("rebooting")
	var boots []string
	for _, e := range b.History(fakebmc.Booted) {
		boots = append(boots, e.Detail)
	}
	if !slices.Equal(boots, want) {
		t.Errorf("the machine has booted %v, want %v; %v", boots, want, b.History())
	}
}

// A machine that another person has switched off is a difference of power_state, unless Ironic switches it back first.
func TestAccBMC_powerThatAnotherSwitched(t *testing.T) {
	t.Parallel()
	s, b, w := startOnBMC(t, `power_state = "on"`)
	w.Must(acctest.Apply()...)
	wantPower(t, b, true)
	b.Command("ForceOff")
	if s.Fake != nil { // it has no loop that reads the power of all machines
		s.Fake.Set(s.Name("h"), "power_state", "power off")
		w.Must(acctest.Apply()...)
	}
	wantPower(t, b, true)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// Ironic changes boot mode and secure boot through the BMC, and reads them from it when it verifies it.
func TestAccBMC_bootModeAndSecureBootChange(t *testing.T) {
	t.Parallel()
	s, b, w := startOnBMC(t)
	defer acctest.Destroy(t, s, w)
	for _, settings := range []struct {
		mode   string
		secure bool
	}{{"uefi", false}, {"bios", false}, {"uefi", true}, {"uefi", false}} {
		w.Configure(onBMC(s, b.Block(), "boot_mode = "+acctest.Quoted(settings.mode), fmt.Sprintf("secure_boot = %t", settings.secure)))
		w.Must(acctest.Apply()...)
		acctest.NoChanges(t, w)
		if found := lacks("", s.Node(s.Name("h")),
			map[string]any{"boot_mode": settings.mode, "secure_boot": settings.secure}); len(found) > 0 {
			t.Errorf("the node in Ironic: %v", found)
		}
	}
}

func TestAccBMC_gracefulPowerOffAsksTheMachine(t *testing.T) {
	t.Parallel()
	s, b, w := startOnBMC(t, `power_state = "on"`)
	defer acctest.Destroy(t, s, w)
	w.Must(acctest.Apply()...)
	w.Configure(onBMC(s, b.Block(), `power_state = "off"`, `power_off_mode = "graceful"`))
	acctest.NeverMention(t, w.Must(acctest.Apply()...), "Power was cut")
	acctest.NoChanges(t, w)
	if s.Fake == nil {
		wantPower(t, b, false)
		if last := b.History(fakebmc.Commanded); len(last) == 0 || !strings.Contains(last[len(last)-1].Detail, "GracefulShutdown") {
			t.Errorf("the BMC was told %v", last)
		}
	}
}
