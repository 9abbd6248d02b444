package sharing

import (
	"errors"
	"fmt"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// Kinds of errors by which the guard refuses an operation: server and profile are unchanged.
const (
	KindInUse     failure.Kind = "in use"     // OneView uses the hardware: its profile is not Ironic's; see InUse
	kindUnguarded failure.Kind = "unguarded"  // a node shares its hardware, and no OneView is configured to ask who uses it
	KindMismatch  failure.Kind = "mismatch"   // a node, its hardware and a template do not match
	KindNameTaken failure.Kind = "name taken" // there is another profile of the wanted name
	// KindOccupied: the server must stay on, because its node may run a deployment or has an operation in progress.
	KindOccupied     failure.Kind = "occupied"
	kindNoTemplate   failure.Kind = "no template"   // no template for a node's server profile is configured
	kindLostProfile  failure.Kind = "lost profile"  // a temporary profile for a cleaning or inspection was removed
	kindPreAllocated failure.Kind = "pre-allocated" // a node always has a profile, so that Prepare cannot give it one
	kindNoProfile    failure.Kind = "no profile"    // a node with shared hardware cannot be deployed, because it has no profile
)

// KindLeftover is the kind of an error which says that a profile could be neither applied nor removed again.
const KindLeftover failure.Kind = "leftover"

// IsRefusal reports whether the guard has refused an operation, so that server and profile are unchanged.
func IsRefusal(err error) bool {
	return !failure.Is(err, KindLeftover) && failure.As(err, KindInUse, kindUnguarded, KindMismatch, KindNameTaken, KindOccupied,
		kindNoTemplate, kindLostProfile, kindPreAllocated, kindNoProfile) != nil
}

// InUse returns what an error of KindInUse says of the hardware and the profile, and what to do; "" for other errors.
func InUse(err error) string { return failure.AboutOf[string](err, KindInUse) }

// inUse returns the error for hardware that OneView uses. The profile is not known if it could not be read. If the node, whose
// dynamic_allocation is not set, is pre-allocated, the profile may be its own.
func (h Holding) inUse(node *ironic.Node, b Binding) error {
	profile := "server profile " + h.Hardware.ProfileURI
	if h.Profile != nil {
		profile = "server profile " + oneview.ProfileLabel(h.Profile)
	}
	why := fmt.Sprintf("node %s: its server hardware %s is used by OneView: %s is applied to it. Wait until its user removes the "+
		"profile, or choose another node: after a pass of metal oneview sync, an allocation with on_unusable = \"replace\" does",
		ironic.NodeLabel(node), oneview.HardwareLabel(h.Hardware), profile)
	if b.Mode == Undeclared {
		why += "; if the profile is the node's own, from pre-allocation, run metal oneview migrate for the node first"
	}
	return &failure.Error{Kind: KindInUse, Node: node, Fact: why + ". Server and profile are unchanged", About: why}
}

// Unguarded says that a node shares its hardware with OneView, that no OneView is configured to ask who uses it, and what to do.
func Unguarded(node, hardwareURI string) string {
	return fmt.Sprintf("node %s shares its server hardware %s with OneView (driver_info.%s), and no OneView is configured to ask who "+
		"uses the server. Configure it (the oneview block of the provider, or ONEVIEW_ENDPOINT); or, if only Ironic uses the server, set "+
		"driver_info.%s of the node to false",
		node, hardwareURI, keyDynamic, keyDynamic)
}

// mismatch returns the error for a node, its hardware and a template that do not match. Each reason names both sides.
func mismatch(node *ironic.Node, hardware *oneview.Hardware, reasons []string) error {
	return &failure.Error{
		Kind: KindMismatch, Node: node,
		Fact: fmt.Sprintf("node %s cannot get a server profile on %s: %s", ironic.NodeLabel(node), oneview.HardwareLabel(hardware),
			strings.Join(reasons, "; ")),
	}
}

func nameTaken(node *ironic.Node, profile *oneview.Profile) error {
	where := "which is applied to no hardware"
	if profile.HardwareURI != "" {
		where = "which is applied to " + profile.HardwareURI
	}
	return &failure.Error{
		Kind: KindNameTaken, Node: node,
		Fact: fmt.Sprintf("node %s: there is another server profile named %s, %s. Names are unique in OneView. Choose another name, "+
			"or delete that profile in OneView if it is not needed", ironic.NodeLabel(node), oneview.ProfileLabel(profile), where),
	}
}

// occupied returns the error for a server that cannot be switched off. The reason says what requires that.
func occupied(node *ironic.Node, reason string) error {
	return &failure.Error{
		Kind: KindOccupied, Node: node,
		Fact: fmt.Sprintf("node %s is in state %q: %s, which requires switching the server off. If the node is deployed, destroy its "+
			"metal_deployment first, or run metal undeploy if no configuration has it. To deploy it again, use terraform apply "+
			"-replace=ADDRESS of its metal_deployment. If Ironic has an operation in progress on it, try again afterwards",
			ironic.NodeLabel(node), node.ProvisionState, reason),
	}
}

// noTemplate returns the error for a node without a template. toClean: the profile is for an automatic cleaning.
func noTemplate(node *ironic.Node, toClean bool) error {
	fact := fmt.Sprintf("node %s has no server profile template: properties.capabilities has no %s", ironic.NodeLabel(node),
		capabilityTemplate)
	if toClean {
		fact += ". Add it, or set automated_clean = false on the node to skip cleaning"
	}
	return &failure.Error{Kind: kindNoTemplate, Node: node, Fact: fact}
}

func lostProfile(node *ironic.Node, purpose Purpose) error {
	return &failure.Error{
		Kind: kindLostProfile, Node: node,
		Fact: fmt.Sprintf("node %s: its server profile for %s was removed while it waited for a slot, perhaps by metal oneview sync, "+
			"which removes temporary profiles that look unused. Without a profile the server would boot without OneView's networks. "+
			"Nothing was sent to Ironic. Try again, which gets another profile",
			ironic.NodeLabel(node), strings.ToLower(string(purpose))),
	}
}

// leftover returns the error for a profile, whose name may be empty, that could not be applied because of cause, and not be removed
// because of cleanUp.
func leftover(profile *oneview.Profile, hardware *oneview.Hardware, cause, cleanUp error) error {
	return &failure.Error{
		Kind: KindLeftover, Err: errors.Join(cause, cleanUp),
		Fact: fmt.Sprintf("%v. Server profile %q (%s) is left on server hardware %s, because it could not be removed: %v. The next run "+
			"tries to remove it. To remove it by hand, delete it in OneView; switch the server off first if OneView requires that, but "+
			"only if the server still has this profile, not that of another user",
			cause, profile.Name, profile.URI, oneview.HardwareLabel(hardware), cleanUp),
	}
}
