package sitetest

import (
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Candidate is a node of a number, with a BMC and a port of its own.
func Candidate(n int) host.Candidate {
	return host.Candidate{
		UUID: ironic.NewUUID(), Name: fmt.Sprintf("rack1-%02d", n),
		DriverInfo: map[string]any{"redfish_address": fmt.Sprintf("https://192.0.2.%d", n), "redfish_system_id": "/redfish/v1/Systems/1"},
		Addresses:  []string{fmt.Sprintf("52:54:01:00:00:%02x", n)},
	}
}

// InAnHour is a deadline that no test reaches.
func InAnHour() time.Time { return time.Now().Add(time.Hour) }
