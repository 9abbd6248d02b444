package ironic

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

// Node is Ironic's node. Attributes that are null in Ironic are zero here. gophercloud's type lacks boot_mode and secure_boot.
type Node struct {
	UUID                 string         `json:"uuid"`
	Name                 string         `json:"name"`
	PowerState           string         `json:"power_state"`
	TargetPowerState     string         `json:"target_power_state"`
	ProvisionState       string         `json:"provision_state"`
	TargetProvisionState string         `json:"target_provision_state"`
	Maintenance          bool           `json:"maintenance"`
	MaintenanceReason    string         `json:"maintenance_reason"`
	Fault                string         `json:"fault"`
	Health               string         `json:"health"`
	LastError            string         `json:"last_error"`
	Reservation          string         `json:"reservation"`
	Driver               string         `json:"driver"`
	DriverInfo           map[string]any `json:"driver_info"`
	DriverInternalInfo   map[string]any `json:"driver_internal_info"`
	Properties           map[string]any `json:"properties"`
	InstanceInfo         map[string]any `json:"instance_info"`
	InstanceUUID         string         `json:"instance_uuid"`
	InstanceName         string         `json:"instance_name"`
	ChassisUUID          string         `json:"chassis_uuid"`
	Extra                map[string]any `json:"extra"`
	ConsoleEnabled       bool           `json:"console_enabled"`
	RAIDConfig           map[string]any `json:"raid_config"`
	TargetRAIDConfig     map[string]any `json:"target_raid_config"`
	CleanStep            map[string]any `json:"clean_step"`
	DeployStep           map[string]any `json:"deploy_step"`
	ResourceClass        string         `json:"resource_class"`
	BIOSInterface        string         `json:"bios_interface"`
	BootInterface        string         `json:"boot_interface"`
	ConsoleInterface     string         `json:"console_interface"`
	DeployInterface      string         `json:"deploy_interface"`
	InspectInterface     string         `json:"inspect_interface"`
	ManagementInterface  string         `json:"management_interface"`
	NetworkInterface     string         `json:"network_interface"`
	PowerInterface       string         `json:"power_interface"`
	RAIDInterface        string         `json:"raid_interface"`
	RescueInterface      string         `json:"rescue_interface"`
	StorageInterface     string         `json:"storage_interface"`
	Traits               []string       `json:"traits"`
	VendorInterface      string         `json:"vendor_interface"`
	ConductorGroup       string         `json:"conductor_group"`
	ParentNode           string         `json:"parent_node"`
	Protected            bool           `json:"protected"`
	ProtectedReason      string         `json:"protected_reason"`
	Owner                string         `json:"owner"`
	Lessee               string         `json:"lessee"`
	Shard                string         `json:"shard"`
	Description          string         `json:"description"`
	Conductor            string         `json:"conductor"`
	AllocationUUID       string         `json:"allocation_uuid"`
	Retired              bool           `json:"retired"`
	RetiredReason        string         `json:"retired_reason"`
	NetworkData          map[string]any `json:"network_data"`
	AutomatedClean       *bool          `json:"automated_clean"`
	ServiceStep          map[string]any `json:"service_step"`
	FirmwareInterface    string         `json:"firmware_interface"`
	ProvisionUpdatedAt   time.Time      `json:"provision_updated_at"`
	InspectionStartedAt  *time.Time     `json:"inspection_started_at"`
	InspectionFinishedAt *time.Time     `json:"inspection_finished_at"`
	CreatedAt            time.Time      `json:"created_at"`
	UpdatedAt            time.Time      `json:"updated_at"`
	DisablePowerOff      bool           `json:"disable_power_off"`

	BootMode   string `json:"boot_mode"`   // "uefi" or "bios"; empty if Ironic does not know it
	SecureBoot *bool  `json:"secure_boot"` // nil if Ironic does not know it

	// ActingDeploy is the deploy interface that Ironic uses. DeployInterface is the one that a client has set: they differ while Ironic
	// uses another one in place of autodetect (reference/deploy-interfaces.md#autodetect).
	ActingDeploy string `json:"-"`

	Hidden Hidden `json:"-"`
}

// Hidden are the fields of a node that Ironic's policy does not show to this user, so that they are unknown. They are zero in the Node.
type Hidden struct {
	Reservation, LastError, DriverInfo, DriverInternalInfo bool
}

// keyOriginalDeploy is, in driver_internal_info, the deploy interface that a client has set, while Ironic uses another one in its place.
const keyOriginalDeploy = "original_deploy_interface"

// Autodetect is the deploy interface in whose place Ironic uses one that fits the image.
const Autodetect = "autodetect"

// HidesAutodetect reports whether the deploy interface of a node may be one that Ironic has chosen in place of autodetect, and the user has
// no right to see that.
func HidesAutodetect(n *Node) bool { return n.Hidden.DriverInternalInfo && n.InstanceUUID != "" }

// NodeLabel returns the text by which messages identify a node: its name and UUID.
func NodeLabel(n *Node) string {
	if n.Name == "" {
		return n.UUID
	}
	return n.Name + " (" + n.UUID + ")"
}

// plainName is a name that neither a shell nor metal takes for anything else, such as a flag or the home of a user.
var plainName = regexp.MustCompile(`^[0-9A-Za-z._][0-9A-Za-z._~-]*$`)

// NodeArgument returns how a command that people copy names a node: by its name; by its UUID if the name is not plain.
func NodeArgument(n *Node) string {
	if plainName.MatchString(n.Name) {
		return n.Name
	}
	return n.UUID
}

// InternalTime returns a time in driver_internal_info, to the second; zero if there is none.
func InternalTime(n *Node, key string) time.Time {
	text, _ := n.DriverInternalInfo[key].(string)
	at, _ := time.Parse("2006-01-02T15:04:05", strings.SplitN(strings.TrimSuffix(text, "Z"), ".", 2)[0]) // zero on an error
	return at
}

// Capabilities returns the entries of capabilities in a node's properties, such as "boot_mode:uefi,cpu_vt:true".
func Capabilities(properties map[string]any) map[string]string {
	out := map[string]string{}
	text, _ := properties["capabilities"].(string)
	for entry := range strings.SplitSeq(text, ",") {
		if name, value, ok := strings.Cut(entry, ":"); ok {
			out[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return out
}

// HardwareInterfaces are the kinds of hardware interfaces; the node's field is <kind>_interface.
var HardwareInterfaces = []string{
	"bios", "boot", "console", "deploy", "firmware", "inspect", "management", "network", "power", "raid", "rescue", "storage", "vendor",
}

// InterfacesOf returns a node's hardware interfaces by kind. An interface that the API does not show is empty.
func InterfacesOf(n *Node) map[string]string {
	return map[string]string{
		"bios": n.BIOSInterface, "boot": n.BootInterface, "console": n.ConsoleInterface, "deploy": n.DeployInterface,
		"firmware": n.FirmwareInterface, "inspect": n.InspectInterface, "management": n.ManagementInterface,
		"network": n.NetworkInterface, "power": n.PowerInterface, "raid": n.RAIDInterface, "rescue": n.RescueInterface,
		"storage": n.StorageInterface, "vendor": n.VendorInterface,
	}
}

// hiddenMark begins what Ironic answers in place of a hidden value.
const hiddenMark = "** "

func hideText(text *string) bool {
	hidden := strings.HasPrefix(*text, hiddenMark)
	if hidden {
		*text = ""
	}
	return hidden
}

func hideMap(m *map[string]any) bool {
	text, _ := (*m)["content"].(string)
	hidden := strings.HasPrefix(text, hiddenMark)
	if hidden {
		*m = nil
	}
	return hidden
}

// Masked stands in Ironic's answers for a secret value (reference/ironic.md#masked-secrets).
const Masked = "******"

// secretWords are the words by which Ironic recognises keys whose values it masks (reference/ironic.md#masked-secrets).
var secretWords = []string{"password", "secret", "token", "passphrase", "credential"}

// kgKey is the key of driver_info for the key of a BMC, a secret that Ironic does not mask (reference/ironic.md#ipmi).
const kgKey = "ipmi_hex_kg_key"

// IsSecretKey reports whether the value of a key of driver_info is a secret.
func IsSecretKey(key string) bool {
	key = strings.ToLower(key)
	return key == kgKey || slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(key, word) })
}

// redacted returns a node of an answer without the fields in which Ironic says that it hides them (reference/ironic.md#hidden-fields),
// without the secrets that Ironic repeats in its messages, and with the key that Ironic does not mask masked. Lists would take longer if
// Node decoded itself: each node would be read three times.
func (c *Client) redacted(n *Node) *Node {
	n.Hidden = Hidden{
		Reservation: hideText(&n.Reservation), LastError: hideText(&n.LastError),
		DriverInfo: hideMap(&n.DriverInfo), DriverInternalInfo: hideMap(&n.DriverInternalInfo),
	}
	n.ActingDeploy = n.DeployInterface
	if original, _ := n.DriverInternalInfo[keyOriginalDeploy].(string); original != "" {
		n.DeployInterface = original
	}
	if n.DriverInfo[kgKey] != nil {
		n.DriverInfo[kgKey] = Masked
	}
	n.LastError, n.MaintenanceReason = c.words(n.LastError), c.Redact(n.MaintenanceReason)
	return n
}

// words returns a message of Ironic without secrets, and printable, because it becomes an attribute that plans show.
func (c *Client) words(text string) string { return rest.Printable(c.Redact(text)) }
