package sharing

import (
	"errors"
	"fmt"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// IsRefusal reports whether the guard has refused an operation, so that server and profile are unchanged.
func IsRefusal(err error) bool {
	return !is[*LeftoverError](err) && (is[*InUseError](err) || is[*UnguardedError](err) || is[*MismatchError](err) || is[*NameTakenError](err) || is[*OccupiedError](err) ||
		is[*NoTemplateError](err) || is[*LostProfileError](err) || is[*PreAllocatedError](err) || is[*NoProfileError](err))
}

// is reports whether err has an error of a type as a cause.
func is[E error](err error) bool {
	_, found := errors.AsType[E](err)
	return found
}

// InUseError says that OneView uses the hardware of a node: the profile on it is not Ironic's.
type InUseError struct {
	Node     string // name and UUID
	Hardware *oneview.Hardware
	Profile  *oneview.Profile // nil: it could not be read
	// Undeclared: dynamic_allocation is not set. If the node is pre-allocated, the profile may be its own.
	Undeclared bool
}

// Error returns Why, and says that nothing has changed.
func (e *InUseError) Error() string { return e.Why() + ". Server and profile are unchanged" }

// Why names the hardware and the profile, and says what to do.
func (e *InUseError) Why() string {
	profile := "server profile " + e.Hardware.ProfileURI
	if e.Profile != nil {
		profile = "server profile " + oneview.ProfileLabel(e.Profile)
	}
	text := fmt.Sprintf("node %s: its server hardware %s is used by OneView: %s is applied to it. "+
		"Wait until its user removes the profile, or choose another node: after a pass of metal oneview sync, an allocation with on_unusable = \"replace\" does", e.Node, oneview.HardwareLabel(e.Hardware), profile)
	if e.Undeclared {
		text += "; if the profile is the node's own, from pre-allocation, run metal oneview migrate for the node first"
	}
	return text
}

// UnguardedError says that a node shares its hardware with OneView, and that no OneView is configured to ask who uses it.
type UnguardedError struct {
	Node        string // name and UUID
	HardwareURI string
}

// Error returns Why, and says that nothing has changed.
func (e *UnguardedError) Error() string { return e.Why() + ". The server is unchanged" }

// Why says what to do.
func (e *UnguardedError) Why() string {
	return fmt.Sprintf("node %s shares its server hardware %s with OneView (driver_info.%s), and no OneView is configured to ask who uses the server. "+
		"Configure it (the oneview block of the provider, or ONEVIEW_ENDPOINT); or, if only Ironic uses the server, set driver_info.%s of the node to false", e.Node, e.HardwareURI, keyDynamic, keyDynamic)
}

// MismatchError says that a node, its hardware and a template do not match.
type MismatchError struct {
	Node     string
	Hardware *oneview.Hardware
	Reasons  []string // each names both sides
}

// Error lists the reasons.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("node %s cannot get a server profile on %s: %s", e.Node, oneview.HardwareLabel(e.Hardware), strings.Join(e.Reasons, "; "))
}

// NameTakenError says that there is another profile of the wanted name.
type NameTakenError struct {
	Node    string
	Profile *oneview.Profile
}

// Error names the other profile.
func (e *NameTakenError) Error() string {
	where := "which is applied to no hardware"
	if e.Profile.HardwareURI != "" {
		where = "which is applied to " + e.Profile.HardwareURI
	}
	return fmt.Sprintf("node %s: there is another server profile named %s, %s. Names are unique in OneView. Choose another name, "+
		"or delete that profile in OneView if it is not needed", e.Node, oneview.ProfileLabel(e.Profile), where)
}

// OccupiedError says that a server cannot be switched off, because its node may run a deployment or has an operation in progress.
type OccupiedError struct {
	Node   *ironic.Node
	Reason string // what requires switching the server off
}

// Error gives the node's state.
func (e *OccupiedError) Error() string {
	return fmt.Sprintf("node %s is in state %q: %s, which requires switching the server off. If the node is deployed, destroy its "+
		"metal_deployment first, or run metal undeploy if no configuration has it. To deploy it again, use terraform apply -replace=ADDRESS of its metal_deployment. "+
		"If Ironic has an operation in progress on it, try again afterwards", ironic.NodeLabel(e.Node), e.Node.ProvisionState, e.Reason)
}

// NoTemplateError says that no template for a node's server profile is configured.
type NoTemplateError struct {
	Node    string
	ToClean bool // the profile is for an automatic cleaning
}

// Error says where to configure it.
func (e *NoTemplateError) Error() string {
	text := fmt.Sprintf("node %s has no server profile template: properties.capabilities has no %s", e.Node, capabilityTemplate)
	if e.ToClean {
		text += ". Add it, or set automated_clean = false on the node to skip cleaning"
	}
	return text
}

// LostProfileError says that a node's temporary server profile for a cleaning or inspection was removed.
type LostProfileError struct {
	Node    string
	Purpose Purpose
}

// Error says what to do.
func (e *LostProfileError) Error() string {
	return fmt.Sprintf("node %s: its server profile for %s was removed while it waited for a slot, perhaps by metal oneview sync, which removes temporary "+
		"profiles that look unused. Without a profile the server would boot without OneView's networks. Nothing was sent to Ironic. Try again, which gets another profile",
		e.Node, strings.ToLower(string(e.Purpose)))
}

// LeftoverError says that a profile could be neither applied nor removed again.
type LeftoverError struct {
	ProfileURI, ProfileName string // the name may be empty
	Hardware                *oneview.Hardware
	Cause                   error // why it could not be applied
	CleanUp                 error // why it could not be removed
}

// Error names the profile that is left.
func (e *LeftoverError) Error() string {
	return fmt.Sprintf("%v. Server profile %q (%s) is left on server hardware %s, because it could not be removed: %v. "+
		"The next run tries to remove it. To remove it by hand, delete it in OneView; switch the server off first if OneView requires that, but only "+
		"if the server still has this profile, not that of another user",
		e.Cause, e.ProfileName, e.ProfileURI, oneview.HardwareLabel(e.Hardware), e.CleanUp)
}

// Unwrap returns both causes.
func (e *LeftoverError) Unwrap() []error { return []error{e.Cause, e.CleanUp} }

// PreAllocatedError says that a node is pre-allocated, so that Prepare cannot give it a profile.
type PreAllocatedError struct{ Node *ironic.Node }

// Error says what to do.
func (e *PreAllocatedError) Error() string {
	return fmt.Sprintf("node %s is pre-allocated (driver_info.%s is false): it always has a server profile, which the provider does not manage. "+
		"Move the node to dynamic allocation first, with metal oneview migrate", ironic.NodeLabel(e.Node), keyDynamic)
}

// NoProfileError says that a node with shared hardware cannot be deployed, because it has no server profile.
type NoProfileError struct{ Node string }

// Error says what to do.
func (e *NoProfileError) Error() string {
	return fmt.Sprintf("node %s has no server profile: its server would boot without OneView's networks, and other users could take it at any moment. "+
		"Add a metal_oneview_profile, and let the node's metal_deployment depend on it", e.Node)
}
