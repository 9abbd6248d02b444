package host

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/cabling"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/found"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/networkdata"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Settings is what a configuration makes of the settings, traits and maintenance of a node.
type Settings struct {
	Settings     ironic.Settings
	Secrets      map[string]any    // keys of driver_info that Ironic masks
	Capabilities map[string]string // entries of properties.capabilities
	Traits       []string
	Maintenance  *machine.Maintenance   // nil: it stays as it is
	Ends         map[string]cabling.End // what is expected of the cables
	Expects      bool                   // something is expected of the hardware

	// What the configuration that was applied last contains, and this one does not any more.
	Without                            []string // paths of settings
	WithoutCapabilities, WithoutTraits []string

	// of the configuration that was applied last: only they tell whether a value that Ironic masks has changed; nil: of this one
	Written     ironic.Settings
	WrittenInfo []string // keys of driver_info that it had, with secrets
	IsNew       bool     // this run creates the host: what the node had at its creation is as configured
	Resends     bool     // the secrets are sent, though Ironic has them

	KeepsRetired bool   // a node in quarantine stays retired, though the configuration does not say so
	DropsReason  bool   // a reason of the retirement is removed
	Inspects     string // fingerprint of the triggers that request an inspection; "": none do
	Forgets      bool   // the note of an inspection that triggers have requested is removed
}

// ChangeSettings gives the node the settings, traits and maintenance of a configuration. arrived reports whether Ironic has the settings:
// together with an error, it means that only what follows them has failed.
func ChangeSettings(ctx context.Context, m *machine.Machine, want *Settings) (arrived bool, err error) {
	edits := want.Edits(m.Node())
	if want.IsNew {
		m.Site().Run.TakesOver(&edits, m.Node())
	}
	if arrived, err = m.PatchHost(ctx, edits); err != nil {
		return arrived, err
	}
	// Ironic has reset interfaces that already had the configured value (reference/ironic.md#changing-interfaces)
	if edits.Changes("/driver") {
		if _, err := m.PatchHost(ctx, want.Edits(m.Node()).OfInterfaces()); err != nil {
			return true, err
		}
	}
	if len(edits.OfExtra()) > 0 { // Ironic loses one of two concurrent changes of extra
		if err := m.Refresh(ctx); err != nil {
			return true, err
		}
	}
	if err := changeTraits(ctx, m, want.Traits, want.WithoutTraits); err != nil || want.Maintenance == nil {
		return true, err
	}
	return true, m.SetMaintenance(ctx, *want.Maintenance)
}

func changeTraits(ctx context.Context, m *machine.Machine, wanted, without []string) error {
	add := slices.DeleteFunc(slices.Clone(wanted), func(trait string) bool { return slices.Contains(m.Node().Traits, trait) })
	if len(add)+len(without) == 0 {
		return nil
	}
	if err := m.Site().Ironic.SetTraits(ctx, m.Node().UUID, add, without); err != nil {
		return err
	}
	m.Changed(func(n *ironic.Node) {
		n.Traits = slices.DeleteFunc(slices.Concat(n.Traits, add), func(trait string) bool { return slices.Contains(without, trait) })
	})
	return nil
}

// Edits returns what a node does not have yet of the settings.
func (w *Settings) Edits(node *ironic.Node) ironic.Patch {
	has := w.settingsOn(node)
	edits := w.editsOf(has)
	w.editCapabilities(&edits, node)
	switch {
	case w.Inspects != "":
		RequestInspection(&edits, node, w.Inspects)
	case w.Forgets:
		forgetInspection(&edits, node)
	}
	cabling.EditNote(&edits, node, w.Ends)
	if !w.Expects {
		notes.NoteHardware(&edits, node, nil)
	}
	w.endQuarantine(&edits, node)
	found.MarkTaken(&edits, node, w.Settings.Text("name"))
	return edits
}

// editsOf returns the edits of single settings. The driver comes first, because Ironic checks interfaces against it. A driver that is not
// configured any more stays: a node needs one.
func (w *Settings) editsOf(has current) (edits ironic.Patch) {
	wanted := w.Settings.ByPath()
	for _, path := range slices.Concat([]string{"/driver"}, slices.Sorted(maps.Keys(wanted))) {
		if value, is := wanted[path]; is && !w.keeps(path) && !has.same(path, value) && !edits.Changes(path) {
			edits.Set(path, value)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.Secrets)) {
		if w.sends(key, has) {
			edits.Set("/driver_info/"+key, w.Secrets[key])
		}
	}
	for _, path := range w.Without {
		if path != "/driver" && !w.keeps(path) && has.at(path) != nil {
			edits.Remove(path)
		}
	}
	return edits
}

// keeps reports whether a setting would end a quarantine that stays.
func (w *Settings) keeps(path string) bool {
	return w.KeepsRetired && (path == "/retired" || path == "/retired_reason")
}

// sends reports whether a secret is sent: always, or if Ironic lacks it, because the configuration that was applied last had none there, or
// another client has removed it. A new node was enrolled with it.
func (w *Settings) sends(key string, has current) bool {
	return w.Resends || !w.IsNew && (has.at("/driver_info/"+key) == nil || !slices.Contains(w.WrittenInfo, key))
}

// endQuarantine adds the removal of the note and its reason to the edits of a node, if the configuration decides about the retirement from
// now on.
func (w *Settings) endQuarantine(edits *ironic.Patch, node *ironic.Node) {
	retired, decides := w.Settings["retired"]
	if !decides || w.KeepsRetired || states.Deployed(node) {
		return
	}
	notes.EndQuarantine(edits, node)
	if retired == true && w.DropsReason && node.RetiredReason != "" && !edits.Changes("/retired_reason") { // with false, Ironic removes it
		edits.Remove("/retired_reason")
	}
}

// editCapabilities merges capabilities into the one string that holds them.
func (w *Settings) editCapabilities(edits *ironic.Patch, node *ironic.Node) {
	const path = "/properties/capabilities"
	now := ironic.Capabilities(node.Properties)
	next := maps.Clone(now)
	for _, name := range w.WithoutCapabilities {
		delete(next, name)
	}
	maps.Copy(next, w.Capabilities)
	switch text := joinCapabilities(next); {
	case text == joinCapabilities(now):
	case text == "":
		edits.Remove(path)
	default:
		edits.Set(path, text)
	}
}

func joinCapabilities(m map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, name+":"+m[name])
	}
	return strings.Join(parts, ",")
}

// Enrollment returns the settings with which the node of a new host is created.
func (w *Settings) Enrollment() ironic.Settings {
	s := w.Settings.Clone()
	for key, value := range w.Secrets {
		s.SetKey("driver_info", key, value)
	}
	if text := joinCapabilities(w.Capabilities); text != "" {
		s.SetKey("properties", "capabilities", text)
	}
	if len(w.Ends) > 0 {
		s.SetKey("extra", notes.KeyCabling, w.Ends)
	}
	return s
}

// current is a node as JSON. Because Ironic masks some values, it also has the values that the last apply wrote.
type current struct {
	node    map[string]any
	written map[string]any // by path
}

// settingsOn returns the present settings of a node. If Ironic hides driver_info, it has what the last apply has written, masked.
func (w *Settings) settingsOn(node *ironic.Node) current {
	has := current{node: map[string]any{}, written: w.Written.ByPath()}
	if w.Written == nil { // the node was just enrolled
		has.written = w.Settings.ByPath()
	}
	if text, err := json.Marshal(node); err == nil {
		_ = document.Decode(text, &has.node) // it was just marshalled
	}
	info := node.DriverInfo
	if node.Hidden.DriverInfo {
		info = map[string]any{}
		for _, key := range w.WrittenInfo {
			info[key] = ironic.Masked
		}
	}
	has.node["driver_info"] = info
	if w.Settings.Text(deployInterface) == ironic.Autodetect && ironic.HidesAutodetect(node) {
		has.node[deployInterface] = ironic.Autodetect
	}
	return has
}

// deployInterface is the setting that Ironic rewrites while it deploys a machine with autodetect.
const deployInterface = "deploy_interface"

// at returns the node's value at a path; nil if there is none, or one that means the same.
func (has current) at(path string) any {
	var value any = has.node
	for step := range strings.SplitSeq(path[1:], "/") {
		m, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = m[step]
	}
	if meansNone(path, value) {
		return nil
	}
	return value
}

// meansNone reports whether a value means the same as null: an attribute's empty string or false. Exceptions are
// automated_clean, where false differs from null, and values inside maps.
func meansNone(path string, value any) bool {
	return value == nil || strings.Count(path, "/") == 1 && (value == "" || value == false && path != "/automated_clean")
}

// same reports whether the node has a value already. A number equals the string that spells it, except in extra, which keeps
// the types of its values.
func (has current) same(path string, want any) bool {
	have := has.at(path)
	if have == ironic.Masked {
		return ironic.SameJSON(has.written[path], want)
	}
	if have == nil {
		return meansNone(path, want)
	}
	if text, ok := ironic.Scalar(have); ok && fmt.Sprint(want) == text && !strings.HasPrefix(path, "/extra/") {
		return true
	}
	return ironic.SameJSON(have, want)
}

// WarnBondModes warns of network data with a bond mode that this version of Ironic calls by another name. It does not refuse it, because a
// distributor may have corrected that version.
func WarnBondModes(networkData any, server api.Microversion) []decide.Notice {
	var lines []string
	for _, fault := range networkdata.CheckBondModes(networkData, server) {
		lines = append(lines, "  "+fault.Path+": "+fault.Must)
	}
	if len(lines) == 0 {
		return nil
	}
	return []decide.Notice{decide.Warn(decide.At("network_data"), "Bond mode has another name in this Ironic",
		"Ironic 21.4 calls the bond mode of LACP 802.1ad, by mistake, and Ironic 39.0 calls it 802.3ad. "+
			fmt.Sprintf("The apply will fail, unless this Ironic (API %s) was patched:\n\n%s\n\nThe software in the ramdisk gets the name "+
				"as it is written here, and may not know 802.1ad.", server, strings.Join(lines, "\n")))}
}
