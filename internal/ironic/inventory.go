package ironic

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
)

// Inventory is the part of an inspection's result that Terraform shows.
type Inventory struct {
	Hostname   string `json:"hostname"`
	BMCAddress string `json:"bmc_address"`
	BMCv6      string `json:"bmc_v6address"`
	BMCMAC     string `json:"bmc_mac"`
	CPU        struct {
		Count        int64  `json:"count"`
		Architecture string `json:"architecture"`
		Model        string `json:"model_name"`
	} `json:"cpu"`
	Memory struct {
		PhysicalMB int64 `json:"physical_mb"`
	} `json:"memory"`
	System struct {
		Manufacturer string `json:"manufacturer"`
		Product      string `json:"product_name"`
		Serial       string `json:"serial_number"`
		Firmware     struct {
			Version string `json:"version"`
		} `json:"firmware"` // the BIOS
	} `json:"system_vendor"`
	Boot struct {
		PXEInterface string `json:"pxe_interface"`
	} `json:"boot"`
	Disks []struct {
		Name       string `json:"name"`
		Size       int64  `json:"size"` // bytes
		Model      string `json:"model"`
		Vendor     string `json:"vendor"`
		Serial     string `json:"serial"`
		WWN        string `json:"wwn"`
		Rotational *bool  `json:"rotational"`
		ByPath     string `json:"by_path"`
	} `json:"disks"`
	Interfaces []struct {
		Name       string          `json:"name"`
		MAC        string          `json:"mac_address"`
		IPv4       string          `json:"ipv4_address"`
		IPv6       string          `json:"ipv6_address"`
		HasCarrier *bool           `json:"has_carrier"`
		PCIAddress string          `json:"pci_address"`
		SpeedMbps  int64           `json:"speed_mbps"`
		Product    string          `json:"product"`
		Vendor     string          `json:"vendor"`
		LLDP       json.RawMessage `json:"lldp"`
	} `json:"interfaces"`

	Neighbours map[string]Neighbour `json:"-"` // by name of the network card
}

// Inventory returns the result of the last inspection of a node; nil if there is none or the API is older than 1.81.
func (c *Client) Inventory(ctx context.Context, id string) (*Inventory, error) {
	version, err := c.Microversion(ctx)
	if err != nil {
		return nil, err
	}
	if version < VersionInventory {
		return nil, nil //nolint:nilnil // a node without an inventory is usual
	}
	var answer struct {
		Inventory *Inventory `json:"inventory"`
		Data      pluginData `json:"plugin_data"`
	}
	err = c.Request(ctx, http.MethodGet, "nodes/"+id+"/inventory", nil, &answer)
	if IsNotFound(err) {
		return c.introspection(ctx, id)
	}
	answer.Inventory.addNeighbours(answer.Data)
	return answer.Inventory, lenient(err)
}

// lenient ignores an error about a value of the wrong type in an inventory, because any client can post one; the correct parts
// were read. It returns other errors.
func lenient(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return nil
	}
	return err
}

// introspection asks ironic-inspector, which keeps its results itself, on sites that still run it (up to 2025.1). It returns nil
// if there is no result.
func (c *Client) introspection(ctx context.Context, id string) (*Inventory, error) {
	if c.cfg.InspectorURL == "" {
		return nil, nil //nolint:nilnil // a site without ironic-inspector is usual
	}
	api, err := c.api(ctx)
	if err != nil {
		return nil, err
	}
	inspector := *api // the same credentials, another endpoint
	inspector.Type, inspector.Microversion = "baremetal-introspection", ""
	var answer struct {
		Inventory *Inventory `json:"inventory"`
		pluginData
	}
	endpoint := strings.TrimSuffix(strings.TrimRight(c.cfg.InspectorURL, "/"), "/v1") + "/v1/introspection/" + id + "/data"
	_, err = inspector.Get(ctx, endpoint, &answer, &gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}})
	if err = c.wrap(ctx, err); IsStatus(err, http.StatusNotFound, "not found for node") { // other 404s are errors of the setup
		return nil, nil //nolint:nilnil // a node without a result is usual
	}
	answer.Inventory.addNeighbours(answer.pluginData)
	return answer.Inventory, lenient(err)
}

// BootMAC returns the MAC address from which the machine booted its ramdisk, in lower case; "" if unknown. The ramdisk reports it
// like PXE firmware, such as 01-52-54-00-aa-bb-01, or as a plain MAC address.
func (i *Inventory) BootMAC() string {
	mac := strings.ToLower(strings.ReplaceAll(i.Boot.PXEInterface, "-", ":"))
	if len(mac) == len("01:52:54:00:aa:bb:01") {
		mac = mac[3:]
	}
	if !macPattern.MatchString(mac) {
		return ""
	}
	return mac
}

// BMCHosts returns the addresses of the BMC that the machine reports, in the form of the function BMCHosts.
func (i *Inventory) BMCHosts() []string {
	var hosts []string
	for _, text := range []string{i.BMCAddress, i.BMCv6} {
		if address, err := netip.ParseAddr(text); err == nil && !address.IsUnspecified() {
			hosts = append(hosts, address.Unmap().WithZone("").String())
		}
	}
	return hosts
}

// BMC returns the address of the BMC that the machine reports: IPv4, else IPv6, else "". The ramdisk writes 0.0.0.0 and ::/0 for
// an address that it did not find. BMC ignores everything that is not an IP address, because reports of machines are untrusted and
// the address is used in URLs together with a password.
func (i *Inventory) BMC() string {
	for _, text := range []string{i.BMCAddress, i.BMCv6} {
		if address, err := netip.ParseAddr(text); err == nil && !address.IsUnspecified() {
			return address.WithZone("").String()
		}
	}
	return ""
}

// Addresses returns the MAC addresses of the network cards in lower case.
func (i *Inventory) Addresses() []string {
	if i == nil {
		return nil
	}
	var addresses []string
	for _, nic := range i.Interfaces {
		addresses = append(addresses, strings.ToLower(nic.MAC))
	}
	return addresses
}
