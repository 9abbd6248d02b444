package qemu

import (
	"encoding/json"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
)

func TestMachine_bootsFirstFromTheSourceOfTheOverride(t *testing.T) {
	t.Parallel()
	for source, first := range map[string]string{
		"None": "scsi-hd", "Hdd": "scsi-hd", "Cd": "scsi-cd", "UsbCd": "scsi-cd",
		"Pxe": "virtio-net",
	} {
		m := &Machine{config: Config{Dir: "/nowhere"}}
		devices := slices.DeleteFunc(m.arguments(fakebmc.Boot{Source: source, Mode: "UEFI"}), func(argument string) bool {
			return !strings.Contains(argument, "bootindex=")
		})
		if len(devices) != 3 {
			t.Fatalf("%s: devices with an order are %v, want three", source, devices)
		}
		index := func(argument string) string { return argument[strings.Index(argument, "bootindex="):] }
		lowest := slices.MinFunc(devices, func(a, b string) int { return strings.Compare(index(a), index(b)) })
		if !strings.HasPrefix(lowest, first) {
			t.Errorf("%s boots first from %s, want %s", source, lowest, first)
		}
	}
}

func TestMachine_hasTheFirmwareOfItsBootMode(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]bool{"UEFI": true, "Legacy": false} {
		line := strings.Join((&Machine{}).arguments(fakebmc.Boot{Mode: mode}), " ")
		if got := strings.Contains(line, firmware); got != want {
			t.Errorf("%s: UEFI firmware %v, want %v", mode, got, want)
		}
		if withoutROM := strings.Contains(line, "romfile="); withoutROM != want {
			t.Errorf("%s: a network card without ROM %v, want %v", mode, withoutROM, want)
		}
	}
}

// startQEMU is the side of QEMU that speaks QMP: it greets, and answers each command with what reply returns.
func startQEMU(t *testing.T, reply func(command string) string) (*monitor, net.Conn) {
	t.Helper()
	m, end, err := newMonitor()
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	conn, err := net.FileConn(end)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(); <-m.ended })
	go m.read()
	if _, err := conn.Write([]byte(`{"QMP": {"version": {}}}`)); err != nil {
		t.Fatal(err)
	}
	go func() {
		decoder := json.NewDecoder(conn)
		for {
			var command struct{ Execute string }
			if decoder.Decode(&command) != nil {
				return
			}
			_, _ = conn.Write([]byte(reply(command.Execute)))
		}
	}()
	return m, conn
}

func TestMonitor_returnsTheErrorOfACommand(t *testing.T) {
	t.Parallel()
	m, _ := startQEMU(t, func(command string) string {
		if command == "eject" {
			return `{"event": "DEVICE_TRAY_MOVED"}{"error": {"class": "GenericError", "desc": "Tray is locked"}}`
		}
		return `{"return": {}}`
	})
	if err := m.execute("system_powerdown", nil); err != nil {
		t.Error(err)
	}
	if err := m.execute("eject", nil); err == nil || !strings.Contains(err.Error(), "eject: Tray is locked") {
		t.Errorf("the error is %v", err)
	}
}

func TestMonitor_tellsARestartFromAPowerOff(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]bool{"guest-reset": true, "guest-shutdown": false} {
		m, conn := startQEMU(t, func(string) string { return `{"return": {}}` })
		if _, err := conn.Write([]byte(`{"event": "SHUTDOWN", "data": {"guest": true, "reason": "` + reason + `"}}`)); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		if got := m.wait(); got != want {
			t.Errorf("%s: restarted %v, want %v", reason, got, want)
		}
	}
}

// A spoiled disk fails writes, and nothing else.
func TestMachine_spoiledDiskFailsWrites(t *testing.T) {
	t.Parallel()
	m := &Machine{config: Config{DataBytes: 1 << 30}}
	const rule = "inject-error.0.iotype=write"
	if line := strings.Join(m.arguments(fakebmc.Boot{}), " "); strings.Contains(line, rule) {
		t.Errorf("a new disk fails: %s", line)
	}
	m.SpoilData(true)
	if line := strings.Join(m.arguments(fakebmc.Boot{}), " "); strings.Count(line, rule) != 1 || !strings.Contains(line, "serial=-data") {
		t.Errorf("a spoiled disk is %s", line)
	}
}
