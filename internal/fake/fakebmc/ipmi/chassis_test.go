package ipmi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
)

// redfish sends a request to the other face of the BMC, and returns the answer.
func redfish(t *testing.T, s *Server, method, path, body string) map[string]any {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, s.BMC.Path()+path, strings.NewReader(body))
	r.SetBasicAuth(s.BMC.Credentials())
	w := httptest.NewRecorder()
	s.Fake.ServeHTTP(w, r)
	if w.Code >= http.StatusBadRequest {
		t.Fatalf("%s %s: %s", method, path, w.Body)
	}
	var answer map[string]any
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
	}
	return answer
}

func details(b *fakebmc.BMC, kind fakebmc.Kind) []string {
	var all []string
	for _, e := range b.History(kind) {
		all = append(all, e.Detail)
	}
	return all
}

// Both faces command the same machine, and its history calls it the same.
func TestChassisControl_isThePowerOfRedfish(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		control byte
		redfish string
		on, now bool // power before and after
		boots   int
	}{
		{0, "ForceOff", true, false, 0},
		{1, "On", false, true, 1},
		{3, "ForceRestart", true, true, 1},
		{4, "Nmi", true, true, 0},
		{5, "GracefulShutdown", true, false, 0},
		{2, "PowerCycle", true, true, 1},
		{1, "On", true, true, 0},
		{0, "ForceOff", false, false, 0},
	} {
		s, c := start(t, fakebmc.Config{})
		c.admin()
		if tt.on {
			redfish(t, s, "POST", "/Actions/ComputerSystem.Reset", `{"ResetType": "On"}`)
		}
		events := len(s.BMC.History())
		c.want(ok, chassis, 2, tt.control)
		status := c.want(ok, chassis, 1)
		var commanded []string
		boots := 0
		for _, e := range s.BMC.History()[events:] {
			switch e.Kind { //nolint:exhaustive // what counts here
			case fakebmc.Commanded:
				commanded = append(commanded, e.Detail)
			case fakebmc.Booted:
				boots++
			}
		}
		if !slices.Equal(commanded, []string{tt.redfish}) || boots != tt.boots || s.BMC.On() != tt.now || (status[0] == 1) != tt.now {
			t.Errorf("%s of a machine with power %v: %v, status %x", tt.redfish, tt.on, s.BMC.History()[events:], status)
		}
	}
	_, c := start(t, fakebmc.Config{})
	c.admin()
	for _, control := range []byte{2, 3, 4, 5} {
		c.want(wrongState, chassis, 2, control) // without power
	}
	c.want(invalidField, chassis, 2, 6)
	c.want(invalidLength, chassis, 2)
	c.want(invalidCommand, 0x2c, 0)
}

// What a boot uses is one state, whichever face changed it.
func TestBootFlags_areTheOverrideOfRedfish(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		flags  [2]byte
		boot   string    // of Redfish: target, duration, mode
		source [2]string // of two boots
	}{
		{[2]byte{0xa0, 0x04}, "Pxe Once UEFI", [2]string{"Pxe", "None"}},
		{[2]byte{0xe0, 0x08}, "Hdd Continuous UEFI", [2]string{"Hdd", "Hdd"}},
		{[2]byte{0x80, 0x04}, "Pxe Once Legacy", [2]string{"Pxe", "None"}},
		{[2]byte{0xc0, 0x08}, "Hdd Continuous Legacy", [2]string{"Hdd", "Hdd"}},
		{[2]byte{0xa0, 0x18}, "BiosSetup Once UEFI", [2]string{"BiosSetup", "None"}},
		{[2]byte{0xa0, 0x3c}, "Usb Once UEFI", [2]string{"Usb", "None"}},
		{[2]byte{0x20, 0x00}, "None Disabled UEFI", [2]string{"None", "None"}},
	} {
		s, c := start(t, fakebmc.Config{})
		c.admin()
		c.want(ok, chassis, 8, bootFlags, tt.flags[0], tt.flags[1], 0, 0, 0)
		boot, _ := redfish(t, s, "GET", "", "")["Boot"].(map[string]any)
		if got := fmt.Sprint(boot["BootSourceOverrideTarget"], " ", boot["BootSourceOverrideEnabled"], " ",
			boot["BootSourceOverrideMode"]); got != tt.boot {
			t.Errorf("flags %x: Redfish says %s, want %s", tt.flags, got, tt.boot)
		}
		if got := c.want(ok, chassis, 9, bootFlags, 0, 0); !bytes.Equal(got, []byte{1, bootFlags, tt.flags[0], tt.flags[1], 0, 0, 0}) {
			t.Errorf("flags %x are read as %x", tt.flags, got)
		}
		c.want(ok, chassis, 2, 1)
		c.want(ok, chassis, 2, 3)
		if got := details(s.BMC, fakebmc.Booted); !slices.Equal(got, tt.source[:]) {
			t.Errorf("flags %x: booted %v, want %v", tt.flags, got, tt.source)
		}

		s, c = start(t, fakebmc.Config{})
		c.admin()
		words := strings.Fields(tt.boot)
		redfish(t, s, "PATCH", "",
			fmt.Sprintf(`{"Boot": {"BootSourceOverrideTarget": %q, "BootSourceOverrideEnabled": %q, "BootSourceOverrideMode": %q}}`,
				words[0], words[1], words[2]))
		if got := c.want(ok, chassis, 9, bootFlags, 0, 0); !bytes.Equal(got, []byte{1, bootFlags, tt.flags[0], tt.flags[1], 0, 0, 0}) {
			t.Errorf("Redfish's %s is read as %x", tt.boot, got)
		}
	}
}

func TestBootFlags_ofABMCThatForgets(t *testing.T) {
	t.Parallel()
	s, c := start(t, fakebmc.Config{Quirks: []fakebmc.Quirk{fakebmc.OnceOnly}})
	c.admin()
	c.want(ok, chassis, 8, bootFlags, 0xe0, 4, 0, 0, 0)
	c.want(ok, chassis, 2, 1)
	c.want(ok, chassis, 2, 3)
	if got := details(s.BMC, fakebmc.Booted); !slices.Equal(got, []string{"Pxe", "None"}) {
		t.Errorf("booted %v", got)
	}
}

func TestBootOptions(t *testing.T) {
	t.Parallel()
	_, c := start(t, fakebmc.Config{})
	c.admin()
	c.want(ok, chassis, 8, setInProgress, 1)
	c.want(ok, chassis, 8, acknowledge, 1, 1)
	c.want(ok, chassis, 8, validClearing, 8)
	c.want(ok, chassis, 8, 0x80|validClearing) // marks it as locked
	if got := c.want(ok, chassis, 9, validClearing, 0, 0); !bytes.Equal(got, []byte{1, validClearing, 8}) {
		t.Errorf("parameter 3 is %x", got)
	}
	if got := c.want(ok, chassis, 9, partition, 0, 0); !bytes.Equal(got, []byte{1, partition, 0}) {
		t.Errorf("parameter 1 is %x", got)
	}
	c.want(notAvailable, chassis, 8, 100, 1)
	c.want(notAvailable, chassis, 9, 100, 0, 0)
	c.want(invalidLength, chassis, 8, bootFlags, 0xa0)
	c.want(invalidField, chassis, 8, bootFlags, 0xa0, 0x38, 0, 0, 0) // reserved
}

// The flags are valid for a minute after the last command, unless parameter 3 keeps them, or a boot has made them the machine's own.
func TestBootFlags_end(t *testing.T) {
	t.Parallel()
	const persistent, once = 0xe0, 0xa0
	for name, tt := range map[string]struct {
		flags byte
		run   func(c *client)
		want  string // source of the boot after another 50 seconds
	}{
		"in time":          {once, func(*client) {}, "Pxe"},
		"too late":         {once, func(*client) { time.Sleep(11 * time.Second) }, "None"},
		"too late for all": {persistent, func(*client) { time.Sleep(11 * time.Second) }, "None"},
		"kept": {once, func(c *client) {
			c.want(ok, chassis, 8, validClearing, keepFlags)
			c.want(ok, chassis, 8, bootFlags, once, 4, 0, 0, 0)
			time.Sleep(50 * time.Second)
		}, "Pxe"},
		"kept afterwards": {once, func(c *client) {
			c.want(ok, chassis, 8, validClearing, keepFlags)
			time.Sleep(50 * time.Second)
		}, "Pxe"},
		"prolonged by a command": {once, func(c *client) {
			time.Sleep(30 * time.Second)
			c.want(ok, chassis, 2, 0)
		}, "Pxe"},
		"persistent after a boot": {persistent, func(c *client) {
			c.want(ok, chassis, 2, 1)
			time.Sleep(50 * time.Second)
			c.want(ok, chassis, 1)
		}, "Pxe"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, c := start(t, fakebmc.Config{})
				c.admin()
				c.want(ok, chassis, 8, bootFlags, tt.flags, 4, 0, 0, 0)
				tt.run(c)
				time.Sleep(50 * time.Second)
				c.admin()
				c.want(ok, chassis, 2, 0)
				if boot, _ := redfish(t, s, "GET", "", "")["Boot"].(map[string]any); boot["BootSourceOverrideTarget"] != tt.want {
					t.Errorf("Redfish says %v", boot)
				}
				c.want(ok, chassis, 2, 1)
				if got := s.BMC.LastBoot().Source; got != tt.want {
					t.Errorf("booted %s, want %s", got, tt.want)
				}
			})
		})
	}
}
