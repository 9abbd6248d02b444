package oneview

import (
	"fmt"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// InUseError says that hardware is used by OneView: a profile is applied to it that is not Ironic's.
type InUseError struct {
	Node     string // name and UUID
	Hardware *Hardware
	Profile  *Profile // nil: it could not be read
	// Undeclared: the node does not say whether it is pre-allocated; if it is, the profile may be its own.
	Undeclared bool
}

// Error is Why, and says that nothing has happened.
func (e *InUseError) Error() string { return e.Why() + ". Nothing was done to either" }

// Why names the hardware and the profile, and says what to do.
func (e *InUseError) Why() string {
	profile := "server profile " + e.Hardware.ProfileURI
	if e.Profile != nil {
		profile = "server profile " + ProfileLabel(e.Profile)
	}
	text := fmt.Sprintf("node %s: its server hardware %s is used by OneView: %s is applied to it. "+
		"Wait until its user removes the profile, or choose another node", e.Node, HardwareLabel(e.Hardware), profile)
	if e.Undeclared {
		text += "; if the profile is the node's own, from pre-allocation, run metal-oneview migrate for the node first"
	}
	return text
}

// UnguardedError says that a node shares its hardware with OneView, and that there is no OneView to ask whose it is.
type UnguardedError struct {
	Node        string // name and UUID
	HardwareURI string
}

// Error is Why, and says that nothing has happened.
func (e *UnguardedError) Error() string { return e.Why() + ". Nothing was done to it" }

// Why says what to do.
func (e *UnguardedError) Why() string {
	return fmt.Sprintf("node %s shares its server hardware %s with OneView (driver_info.%s), and the provider has no oneview block, nor is there "+
		"ONEVIEW_ENDPOINT in the environment: nobody can tell whose server it is. Configure oneview; or, if the server is "+
		"Ironic's alone, set driver_info.%s of the node to false", e.Node, e.HardwareURI, keyDynamic, keyDynamic)
}

// MismatchError says that a node, its hardware and a template do not belong together.
type MismatchError struct {
	Node     string
	Hardware *Hardware
	Reasons  []string // each names both sides
}

// Error lists the reasons.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("node %s cannot get a server profile on %s: %s", e.Node, HardwareLabel(e.Hardware), strings.Join(e.Reasons, "; "))
}

// NameTakenError says that there is another profile of the wanted name.
type NameTakenError struct {
	Node    string
	Profile *Profile
}

// Error names the other profile.
func (e *NameTakenError) Error() string {
	where := "which is applied to no hardware"
	if e.Profile.HardwareURI != "" {
		where = "which is applied to " + e.Profile.HardwareURI
	}
	return fmt.Sprintf("node %s: there is another server profile named %s, %s. Names are unique in OneView: choose another name, "+
		"or have that profile deleted if nobody needs it", e.Node, ProfileLabel(e.Profile), where)
}

// OccupiedError says that a node cannot spare its machine: something may run on it, or Ironic is at work on it.
type OccupiedError struct {
	Node   *ironic.Node
	Reason string // what would have to be done
}

// Error gives the node's state.
func (e *OccupiedError) Error() string {
	return fmt.Sprintf("node %s is in state %q: %s, which takes switching the server off. If something is deployed on it, destroy its "+
		"metal_deployment first, or undeploy it; to have it deployed anew, use terraform apply -replace=ADDRESS of its metal_deployment. "+
		"If Ironic is at work on it, try again when that is over", ironic.NodeLabel(e.Node), e.Node.ProvisionState, e.Reason)
}

// NoTemplateError says that there is nothing to make a node's server profile from.
type NoTemplateError struct {
	Node    string
	ToClean bool // the profile is for the cleaning that makes the node available
}

// Error says where it is missing.
func (e *NoTemplateError) Error() string {
	text := fmt.Sprintf("node %s: no server profile template is given: properties.capabilities has no %s", e.Node, capabilityTemplate)
	if e.ToClean {
		text += "; add it, or set automated_clean = false on the node if it is not to be cleaned"
	}
	return text
}

// LostProfileError says that a node had a server profile to be cleaned or inspected with, and that it is gone.
type LostProfileError struct {
	Node    string
	Purpose Purpose
}

// Error says what to do.
func (e *LostProfileError) Error() string {
	return fmt.Sprintf("node %s: its server profile for %s was removed while it waited for its turn, as metal-oneview sync does when it takes one for "+
		"left over. Without one the server would boot without OneView's networks. Nothing was sent; apply again, and it gets another one",
		e.Node, strings.ToLower(string(e.Purpose)))
}

// LeftoverError says that a profile could not be applied, and could not be removed again either.
type LeftoverError struct {
	ProfileURI, ProfileName string // the name may be empty
	Hardware                *Hardware
	Cause                   error // why it could not be applied
	CleanUp                 error // why it could not be removed
}

// Error says exactly what is left.
func (e *LeftoverError) Error() string {
	return fmt.Sprintf("%v. What is left: server profile %q (%s) on server hardware %s, because it could not be removed again: %v. "+
		"The next run tries to remove it; by hand, switch the server off and delete the profile in OneView",
		e.Cause, e.ProfileName, e.ProfileURI, HardwareLabel(e.Hardware), e.CleanUp)
}

// Unwrap returns both causes.
func (e *LeftoverError) Unwrap() []error { return []error{e.Cause, e.CleanUp} }

// PreAllocatedError says that a node is not one that gets its profile when it needs one.
type PreAllocatedError struct{ Node *ironic.Node }

// Error says what to do.
func (e *PreAllocatedError) Error() string {
	return fmt.Sprintf("node %s is pre-allocated (driver_info.%s is false): it has a server profile all the time, which is not managed here. "+
		"Move it to dynamic allocation first, with metal-oneview migrate", ironic.NodeLabel(e.Node), keyDynamic)
}
