package ironic

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// CleanStep is a step of a manual cleaning or of a service.
type CleanStep struct {
	Interface string         `json:"interface"`
	Step      string         `json:"step"`
	Args      map[string]any `json:"args,omitempty"`
}

// String returns the name of the step, such as "bios.apply_configuration".
func (s CleanStep) String() string { return s.Interface + "." + s.Step }

// BIOSSetting is a BIOS setting of a node as Ironic has last read it. Without a registry, Ironic knows only name and value.
type BIOSSetting struct {
	Name      string   `json:"name"`
	Value     any      `json:"value"`
	Type      string   `json:"attribute_type"` // such as "Enumeration"; "" without a registry
	Allowed   []string `json:"allowable_values"`
	Lower     *int64   `json:"lower_bound"`
	Upper     *int64   `json:"upper_bound"`
	MinLength *int64   `json:"min_length"`
	MaxLength *int64   `json:"max_length"`
	ReadOnly  bool     `json:"read_only"`

	ResetRequired *bool `json:"reset_required"` // nil without a registry
	Unique        *bool `json:"unique"`         // likewise
}

// Text returns the value as configurations write it.
func (s BIOSSetting) Text() string {
	switch value := s.Value.(type) {
	case nil:
		return ""
	case json.Number:
		return document.Digits(value)
	}
	return fmt.Sprint(s.Value)
}

// Has reports whether the machine has a value. Ironic writes booleans as 0 and 1.
func (s BIOSSetting) Has(value string) bool {
	have, unreadable := strconv.ParseBool(s.Text())
	want, invalid := strconv.ParseBool(value)
	if s.Type == "Boolean" && unreadable == nil && invalid == nil {
		return have == want
	}
	return s.Text() == value
}

// Is reports whether the setting has a value. A setting without a type may be of any, because Ironic may have read its value without the
// registry (reference/ironic.md#hardware-that-ironic-has-cached).
func (s BIOSSetting) Is(want string) bool {
	if s.Has(want) {
		return true
	}
	have := s.Text()
	if s.Type == "" || s.Type == "Integer" {
		a, err := strconv.ParseInt(have, 10, 64)
		b, bad := strconv.ParseInt(want, 10, 64)
		if err == nil && bad == nil {
			return a == b
		}
	}
	a, err := strconv.ParseBool(have)
	b, bad := strconv.ParseBool(want)
	return s.Type == "" && err == nil && bad == nil && a == b
}

// Written returns the value as configurations write it; "" if the BMC does not tell it. Ironic stores booleans as 0 and 1.
func (s BIOSSetting) Written() string {
	if truth, err := strconv.ParseBool(s.Text()); s.Type == "Boolean" && err == nil {
		return strconv.FormatBool(truth)
	}
	return s.Text()
}

// BIOS returns the BIOS settings of a node by name, with their registry if the API has it (1.74). Ironic answers with what it has read from
// the BMC last (reference/ironic.md#hardware-that-ironic-has-read).
func (c *Client) BIOS(ctx context.Context, id string) (map[string]BIOSSetting, error) {
	version, err := c.Microversion(ctx)
	if err != nil {
		return nil, err
	}
	path := "nodes/" + id + "/bios"
	if version >= api.VersionBIOSRegistry {
		path += "?detail=true"
	}
	var answer struct {
		BIOS []BIOSSetting `json:"bios"`
	}
	if err := c.Request(ctx, http.MethodGet, path, nil, &answer); err != nil {
		return nil, err
	}
	settings := map[string]BIOSSetting{}
	for _, setting := range answer.BIOS {
		settings[setting.Name] = setting
	}
	return settings, nil
}

// Component is a part of a machine with firmware, as Ironic has last read it. What Ironic does not know is empty.
type Component struct {
	Name    string `json:"component"` // such as "bios" or "nic:NAME"
	Version string `json:"current_version"`
	Initial string `json:"initial_version"` // when Ironic read it first
	// the version to which the firmware changed last, whoever installed it; "" if it never changed
	LastFlashed string `json:"last_version_flashed"`
	UpdatedAt   string `json:"updated_at"`

	// Since API 1.114.
	Vendor string `json:"vendor"`
	Model  string `json:"model"`
	Serial string `json:"serial_number"`
}

// Components returns the firmware components of a node by name (API 1.86).
func (c *Client) Components(ctx context.Context, id string) (map[string]Component, error) {
	var answer struct {
		Firmware []Component `json:"firmware"`
	}
	if err := c.Request(ctx, http.MethodGet, "nodes/"+id+"/firmware", nil, &answer); err != nil {
		return nil, err
	}
	components := map[string]Component{}
	for _, component := range answer.Firmware {
		components[component.Name] = component
	}
	return components, nil
}

// Firmware returns the versions of a node's firmware by component, such as "bios" (API 1.86).
func (c *Client) Firmware(ctx context.Context, id string) (map[string]string, error) {
	components, err := c.Components(ctx, id)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for name, component := range components {
		versions[name] = component.Version
	}
	return versions, nil
}

// Validity says whether Ironic could use a hardware interface of a node.
type Validity struct {
	OK     bool   `json:"result"`
	Reason string `json:"reason"` // why not
}

// Validate lets Ironic validate the hardware interfaces of a node, and returns the results by kind. An interface that lacks its function,
// such as no-raid, is not OK. Ironic may ask the server of the node's image for it (reference/ironic.md#validation).
func (c *Client) Validate(ctx context.Context, id string) (map[string]Validity, error) {
	var results map[string]Validity
	if err := c.Request(ctx, http.MethodGet, "nodes/"+id+"/validate", nil, &results); err != nil {
		return nil, err
	}
	for kind, result := range results {
		result.Reason = c.words(result.Reason)
		results[kind] = result
	}
	return results, nil
}

// LogicalDisk is a volume of a RAID configuration. Zero values are left to Ironic.
type LogicalDisk struct {
	Level         string `json:"raid_level"`
	SizeGB        any    `json:"size_gb"` // GiB, or "MAX"
	Name          string `json:"volume_name,omitempty"`
	Root          bool   `json:"is_root_volume,omitempty"`
	DiskCount     int64  `json:"number_of_physical_disks,omitempty"`
	DiskType      string `json:"disk_type,omitempty"`
	InterfaceType string `json:"interface_type,omitempty"`
	Controller    string `json:"controller,omitempty"`
	PhysicalDisks []any  `json:"physical_disks,omitempty"` // names, or objects with hints
	Shared        bool   `json:"share_physical_disks,omitempty"`
}

// SetRAID stores the volumes that the step raid.create_configuration creates on a node.
func (c *Client) SetRAID(ctx context.Context, id string, volumes []LogicalDisk) error {
	defer c.nodes.Invalidate(id)
	return c.Request(ctx, http.MethodPut, "nodes/"+id+"/states/raid", map[string]any{"logical_disks": volumes}, nil)
}

// Console says how to reach the console of a node.
type Console struct {
	Enabled bool
	Type    string // such as "socat" or "vnc"; "" if Ironic tells none, as with the interface fake
	URL     string // a secret: that of a graphical console contains its token
}

// Console asks the conductor for the console of a node. With the interface ipmitool-socat, Ironic 39.0 then ends the session of a user who
// is connected (reference/ironic.md#consoles).
func (c *Client) Console(ctx context.Context, id string) (Console, error) {
	var answer struct {
		Enabled bool `json:"console_enabled"`
		Info    struct {
			Type string `json:"type"`
			URL  string `json:"url"`
		} `json:"console_info"`
	}
	err := c.Request(ctx, http.MethodGet, "nodes/"+id+"/states/console", nil, &answer)
	return Console{answer.Enabled, answer.Info.Type, answer.Info.URL}, err
}

// Names of console interfaces, or the ends of such names.
const (
	ConsoleNone      = "no-console"
	ConsoleSocat     = "ipmitool-socat"
	consoleGraphical = "-graphical"
)

// IsGraphical reports whether a console interface shows the screen of a machine. Ironic ends such a console by itself
// (reference/ironic.md#consoles).
func IsGraphical(console string) bool { return strings.HasSuffix(console, consoleGraphical) }

// SetConsole enables or disables the console of a node. Ironic answers before that has ended, and a failure shows in last_error only. It
// does nothing if the console is that way already, so the request can be repeated.
func (c *Client) SetConsole(ctx context.Context, id string, enabled bool) error {
	defer c.nodes.Invalidate(id)
	return c.Request(ctx, http.MethodPut, "nodes/"+id+"/states/console", map[string]any{"enabled": enabled}, nil)
}

// Driver is a hardware type that conductors have enabled, with the interfaces that nodes get which name none.
type Driver struct {
	Name string `json:"name"`

	// by kind: the interfaces that conductors have enabled for it, and the default; a kind is missing if Ironic does not tell
	Enabled  map[string][]string `json:"-"`
	Defaults map[string]string   `json:"-"`
}

// UnmarshalJSON reads a driver. Ironic has a field of its own for each kind of interface.
func (d *Driver) UnmarshalJSON(data []byte) error {
	type plain Driver
	if err := json.Unmarshal(data, (*plain)(d)); err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	d.Enabled, d.Defaults = map[string][]string{}, map[string]string{}
	for _, kind := range HardwareInterfaces {
		var enabled []string
		if field := fields["enabled_"+kind+"_interfaces"]; field != nil && json.Unmarshal(field, &enabled) == nil && len(enabled) > 0 {
			d.Enabled[kind] = enabled
		}
		if name := ""; json.Unmarshal(fields["default_"+kind+"_interface"], &name) == nil && name != "" {
			d.Defaults[kind] = name
		}
	}
	return nil
}

// Drivers returns the drivers that the site's conductors have enabled, by name.
func (c *Client) Drivers(ctx context.Context) ([]Driver, error) {
	var answer struct {
		Drivers []Driver `json:"drivers"`
	}
	if err := c.Request(ctx, http.MethodGet, "drivers?detail=true", nil, &answer); err != nil {
		return nil, err
	}
	slices.SortFunc(answer.Drivers, func(a, b Driver) int { return cmp.Compare(a.Name, b.Name) })
	return answer.Drivers, nil
}

// Conductor is a conductor as it has registered in Ironic's database.
type Conductor struct {
	Hostname  string    `json:"hostname"`
	Group     string    `json:"conductor_group"`
	Alive     bool      `json:"alive"`      // by the clock of the API
	UpdatedAt time.Time `json:"updated_at"` // of its last sign of life, by its own clock
}

// Conductors returns the conductors, by host name (API 1.49).
func (c *Client) Conductors(ctx context.Context) ([]Conductor, error) {
	all, err := api.List[Conductor](ctx, c.Conn, "conductors", "conductors", url.Values{"detail": {"true"}})
	slices.SortFunc(all, func(a, b Conductor) int { return cmp.Compare(a.Hostname, b.Hostname) })
	return all, err
}

// Event is an entry of the history of a node.
type Event struct {
	CreatedAt time.Time `json:"created_at"`
	Severity  string    `json:"severity"` // INFO or ERROR
	Type      string    `json:"event_type"`
	Event     string    `json:"event"` // in Ironic's words
	Conductor string    `json:"conductor"`
	User      string    `json:"user"` // ID; "" if Ironic does not know it

	// Since API 1.115; before, State is "" and Seconds is nil.
	State   string `json:"state"`            // the provision state at that time
	Seconds *int   `json:"duration_seconds"` // since provision_updated_at (reference/ironic.md#history-of-a-node)
}

// IsError reports whether the entry is about a failure.
func (e *Event) IsError() bool { return e.Severity == "ERROR" }

// History returns the history of a node, the oldest entry first (API 1.78).
func (c *Client) History(ctx context.Context, id string) ([]Event, error) {
	var answer struct {
		History []Event `json:"history"`
	}
	if err := c.Request(ctx, http.MethodGet, "nodes/"+id+"/history?detail=true", nil, &answer); err != nil {
		return nil, err
	}
	for i := range answer.History {
		answer.History[i].Event = c.words(answer.History[i].Event)
	}
	return answer.History, nil
}
