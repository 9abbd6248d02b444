package driverinfo

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
)

// AddressKey returns the key of driver_info that holds the BMC's address, or "" if there is none.
func AddressKey(info map[string]any) string {
	for _, key := range slices.Sorted(maps.Keys(info)) {
		if strings.HasSuffix(key, "_address") {
			return key
		}
	}
	return ""
}

// BMCAddress returns the host of the BMC, or "" if there is none.
func BMCAddress(info map[string]any) string {
	text, _ := info[AddressKey(info)].(string)
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		return u.Hostname()
	}
	if host, _, err := net.SplitHostPort(text); err == nil {
		return host
	}
	return text
}

// DescribeBMC returns the address of the BMC of a node with a driver and a boot interface, in the form that ParseBMC reads if it knows the
// driver.
func DescribeBMC(driver, boot string, info map[string]any) string {
	text := func(key string) string { s, _ := info[key].(string); return s }
	switch {
	case (driver == "redfish" || driver == "idrac") && text("redfish_address") != "":
		transport, host, found := strings.Cut(text("redfish_address"), "://")
		if !found { // Ironic then uses https
			host = transport
		}
		scheme := redfishScheme(driver, boot)
		if transport == "http" {
			scheme += "+http"
		}
		return scheme + "://" + strings.TrimRight(host, "/") + text("redfish_system_id")
	case driver == "ipmi" && text("ipmi_address") != "":
		u := url.URL{Scheme: "ipmi", Host: text("ipmi_address")}
		switch port := info["ipmi_port"]; {
		case port != nil:
			u.Host = net.JoinHostPort(u.Host, fmt.Sprint(port))
		case strings.Contains(u.Host, ":"):
			u.Host = "[" + u.Host + "]"
		}
		if level := text("ipmi_priv_level"); level != "" {
			u.RawQuery = "privilegelevel=" + url.QueryEscape(level)
		}
		return u.String()
	}
	return driver + "://" + BMCAddress(info)
}

func redfishScheme(driver, boot string) string {
	switch {
	case driver == "idrac" && boot == "idrac-redfish-virtual-media":
		return "idrac-virtualmedia"
	case driver == "idrac":
		return "idrac-redfish"
	case boot == "redfish-virtual-media":
		return "redfish-virtualmedia"
	case boot == "redfish-https":
		return "redfish-uefihttp"
	}
	return "redfish"
}
