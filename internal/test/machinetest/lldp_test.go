package machinetest_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
)

// The switch that all machines are connected to.
const (
	leaf     = "leaf-1.example.com"
	leafMAC  = "52:54:00:ee:00:01"
	lldpType = 0x88cc // of an Ethernet frame
)

// Ports of the switch, as it spells them.
const (
	rightPort = "Eth1/1"
	wrongPort = "Eth1/9"
)

// plug connects the machine to a port of the switch, which from then on announces itself every second, also to a machine that is off. The
// frames leave by the machine's own TAP: a bridge forwards no LLDP.
func (c *computer) plug(port string) {
	t := c.rack.t
	t.Helper()
	if c.unplug != nil {
		c.unplug()
	}
	tap, err := net.InterfaceByName(c.place.tap)
	if err != nil {
		t.Fatal(err)
	}
	socket, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		defer func() { _ = syscall.Close(socket) }() // was only written to
		for again := time.NewTicker(time.Second); ; {
			select {
			case <-stop:
				again.Stop()
				return
			case <-again.C:
			}
			// A TAP of a machine that is off takes nothing.
			if err := syscall.Sendto(socket, announcement(port), 0, &syscall.SockaddrLinklayer{Ifindex: tap.Index}); err != nil &&
				!errors.Is(err, syscall.ENOBUFS) {
				t.Errorf("cannot announce the switch to %s: %v", tap.Name, err)
				return
			}
		}
	}()
	c.unplug = sync.OnceFunc(func() {
		close(stop)
		<-stopped
	})
	t.Cleanup(c.unplug)
}

// announcement returns the Ethernet frame by which a port of the switch announces itself.
func announcement(port string) []byte {
	mac, _ := net.ParseMAC(leafMAC) // it is one
	frame := append([]byte{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e}, mac...)
	frame = binary.BigEndian.AppendUint16(frame, lldpType)
	for _, tlv := range []struct {
		kind  uint16
		value []byte
	}{
		{1, append([]byte{4}, mac...)},  // chassis: a MAC address
		{2, append([]byte{5}, port...)}, // port: the name of an interface
		{3, []byte{0, 120}},             // seconds
		{4, []byte("to the rack")},
		{5, []byte(leaf)},
		{0, nil},
	} {
		frame = binary.BigEndian.AppendUint16(frame, tlv.kind<<9|uint16(len(tlv.value))) //nolint:gosec // a few bytes
		frame = append(frame, tlv.value...)
	}
	return frame
}

// shown is the HCL of an output with what a data source shows of the host, which wantShown reads.
func (c *computer) shown() string {
	return "data \"metal_host\" \"h\" {\n  id      = metal_host.h.id\n  include = [\"inventory\", \"neighbors\"]\n}\n" +
		"output \"shown\" {\n  value = { inventory = data.metal_host.h.inventory, neighbor = data.metal_host.h.neighbors[\"" +
		c.mac + "\"] }\n}\n"
}

// wantShown fails the test unless the output says that the machine has been inspected, and has heard a port of the switch.
func (c *computer) wantShown(w *acctest.Workspace, port string) {
	t := c.rack.t
	t.Helper()
	var got any
	if err := json.Unmarshal([]byte(w.Must("output", "-json", "shown")), &got); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	acctest.Mention(t, string(text), fmt.Sprintf(`"mac":%q`, c.mac), `"cpus":1`, `"memory_mb":2048`,
		fmt.Sprintf(`"serial_number":%q`, c.rack.Name("sn1")),
		fmt.Sprintf(`"port_id":%q`, port), fmt.Sprintf(`"switch_id":%q`, leafMAC), fmt.Sprintf(`"switch_name":%q`, leaf),
		`"port_description":"to the rack"`)
}
