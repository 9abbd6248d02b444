package failure

import (
	"fmt"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// OrAskIPMI is the end of an advice: how to find out why a command over IPMI failed; "" if none did. Ironic says the same of a BMC that is
// silent, busy, or refuses the login (reference/ironic.md#ipmi).
func OrAskIPMI(node *ironic.Node) string {
	if !strings.Contains(node.LastError, "IPMI call failed") {
		return ""
	}
	text := func(key string) string {
		if value := node.DriverInfo[key]; value != nil {
			return fmt.Sprint(value)
		}
		return ""
	}
	command := "ipmitool -v -I lanplus"
	for _, option := range []struct{ flag, key string }{
		{"-H", "ipmi_address"}, {"-p", "ipmi_port"}, {"-L", "ipmi_priv_level"}, {"-C", "ipmi_cipher_suite"}, {"-U", "ipmi_username"},
	} {
		if value := text(option.key); value != "" {
			command += " " + option.flag + " '" + strings.ReplaceAll(value, "'", `'\''`) + "'"
		}
	}
	return "\n\nOver IPMI, Ironic does not say why. Ask the BMC from the conductor's host, with the password in the environment variable " +
		"IPMI_PASSWORD:\n\n" +
		"  " + command + " -E power status\n\n" +
		"\"RAKP 2 HMAC is invalid\" means a wrong password, \"unauthorized name\" a wrong username, \"Get Auth Capabilities error\" no " +
		"answer: check the address, the port (UDP 623 unless the address has another), and that IPMI over LAN is enabled there."
}
