package ipmi

import (
	"encoding/binary"
	"net"
	"time"
)

// sensorless is the only record of the SDR repository: the locator of the BMC itself. The machine has no sensors.
var sensorless = append([]byte{1, 0, 0x51, 0x12, 14, 0x20, 0, 0, 0xbf, 0, 0, 0, 7, 1, 0, 0xc3}, "BMC"...)

// getRepository says of the SDR repository: version, one record, free space, times, and what it supports.
func getRepository(*request) (completion, []byte) {
	return ok, []byte{0x51, 1, 0, 0xff, 0x0f, 0, 0, 0, 0, 0, 0, 0, 0, 0x02}
}

// getRecord answers with a part of the record, after the number of the next one: none.
func getRecord(r *request) (completion, []byte) {
	return part([]byte{0xff, 0xff}, sensorless, int(r.data[4]), int(r.data[5]))
}

// part answers with some bytes of data from an offset on, behind others.
func part(before, data []byte, offset, count int) (completion, []byte) {
	const outOfRange completion = 0xc9
	if offset > len(data) {
		return outOfRange, nil
	}
	return ok, append(before, data[offset:min(offset+count, len(data))]...)
}

func getTime(*request) (completion, []byte) {
	return ok, binary.LittleEndian.AppendUint32(nil, uint32(time.Now().Unix())) //nolint:gosec // until 2106, as in IPMI
}

// inventory is the FRU inventory: its header and the product.
func (s *Server) inventory() []byte {
	of := s.BMC.Config()
	product := []byte{1, 0, 25} // format, length, English
	for _, text := range []string{of.Manufacturer, of.Model, "", "", of.Serial, "", ""} {
		product = append(append(product, 0xc0|byte(len(text)&0x3f)), text[:min(len(text), 0x3f)]...)
	}
	product = append(product, 0xc1)
	for len(product)%8 != 7 {
		product = append(product, 0)
	}
	product[1] = byte(len(product)/8 + 1) //nolint:gosec // at most 8 texts of 63 bytes
	return append([]byte{1, 0, 0, 0, 1, 0, 0, 0xfe}, append(product, checksum(product))...)
}

func getInventorySize(r *request) (completion, []byte) {
	return ok, append(binary.LittleEndian.AppendUint16(nil, uint16(len(r.inventory()))), 0) //nolint:gosec // small
}

func readInventory(r *request) (completion, []byte) {
	code, data := part(nil, r.inventory(), int(binary.LittleEndian.Uint16(r.data[1:])), int(r.data[3]))
	return code, append([]byte{byte(len(data))}, data...)
}

// getChannel says that the channel is a network (802.3) with sessions.
func getChannel(*request) (completion, []byte) {
	return ok, []byte{channel, 4, 1, 0x80, 0xf2, 0x1b, 0, 0, 0}
}

func getChannelAccess(*request) (completion, []byte) { return ok, []byte{0x22, byte(administrator)} }

// getNetwork answers with a parameter of the network: its own address is fixed.
func getNetwork(r *request) (completion, []byte) {
	const revision = 0x11
	mac, _ := net.ParseMAC(r.BMC.Config().MACs[0])
	data, known := map[byte][]byte{
		0: {0}, 1: {0}, 2: {0, 0, 0, 0, 0}, 3: {127, 0, 0, 1}, 4: {1}, 5: mac, 6: {255, 0, 0, 0}, 12: {0, 0, 0, 0},
	}[r.data[1]]
	if !known {
		return notAvailable, nil
	}
	return ok, append([]byte{revision}, data...)
}

// The only user is the second; the first is that without a name, which IPMI has always.
const users, itself = 2, 2

func getUserAccess(r *request) (completion, []byte) {
	const enabled, messages = 0x40, 0x10
	if r.data[1]&0x3f == itself {
		return ok, []byte{users, enabled | 1, 0, messages | byte(administrator)}
	}
	return ok, []byte{users, 0x80 | 1, 0, 0x0f} // disabled, without access
}

func getUserName(r *request) (completion, []byte) {
	name := make([]byte, 16)
	if username, _ := r.BMC.Credentials(); r.data[0]&0x3f == itself {
		copy(name, username)
	}
	return ok, name
}
