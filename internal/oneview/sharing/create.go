package sharing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// create creates the profile, on hardware that was free a moment ago. If the answer is lost, the caller searches for the profile, by
// name and hardware, for as long as Patience, before it repeats the request.
func (r *preparation) create(ctx context.Context, hardware *oneview.Hardware) error {
	if r.failure != nil {
		r.failure, r.posted = nil, time.Time{} // another user had switched the server on in between
	}
	if !r.posted.IsZero() && time.Since(r.posted) < r.p.OneView.Patience() {
		return nil // the profile may still appear
	}
	if r.posts >= maxFailures {
		return fmt.Errorf("node %s: OneView accepted server profile %s, but did not create it", ironic.NodeLabel(r.node), r.name)
	}
	if err := r.plan(ctx, hardware); err != nil {
		return err
	}
	if r.binding.AppliedURI != "" {
		if err := r.p.retract(ctx, r.node.UUID, r.binding.AppliedURI); err != nil {
			return err
		}
		r.binding.AppliedURI = ""
	}
	if err := r.bind(ctx, hardware); err != nil {
		return err
	}
	if err := r.p.stop(ctx, hardware.URI, "", r.deadline); err != nil {
		return err
	}
	return r.post(ctx, hardware)
}

// bind writes the hardware into the node's driver_info, if it is missing, so that Release finds the hardware.
func (r *preparation) bind(ctx context.Context, hardware *oneview.Hardware) error {
	if known, _ := r.node.DriverInfo[keyHardware].(string); known != "" {
		return nil
	}
	var patch ironic.Patch
	patch.Set("/driver_info/"+keyHardware, hardware.URI)
	node, err := r.p.Site.PatchNode(ctx, r.node.UUID, patch)
	if err != nil {
		return fmt.Errorf("node %s: write driver_info.%s: %w", ironic.NodeLabel(r.node), keyHardware, err)
	}
	return r.adopt(node)
}

// isFinal reports whether the caller must not repeat a failed task. If the server is on now, another user has switched it on, and the
// task has failed for that reason: the caller tries again.
func (r *preparation) isFinal(hardware *oneview.Hardware) bool {
	return r.failure != nil && (hardware.PowerState == oneview.PowerOff || r.posts >= maxFailures)
}

func (r *preparation) post(ctx context.Context, hardware *oneview.Hardware) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// An interruption does not cancel the request: without its answer no run would know of the profile.
	sending, sent := rest.OutlastFor(ctx, graceToLearn)
	uri, err := r.p.OneView.PostProfile(sending, r.draft)
	sent()
	if err != nil && !oneview.IsUncertain(err) {
		return err // refused: there is no profile
	}
	r.posted = time.Now()
	r.posts++
	if err != nil || uri == "" {
		return err
	}
	r.task = uri
	err = r.watch(ctx, uri)
	switch {
	case fault.Is(err, oneview.KindTask):
		r.failure = fmt.Errorf("node %s: apply server profile %s to %s: %w", ironic.NodeLabel(r.node), r.name,
			oneview.HardwareLabel(hardware), err)
		return nil
	case fault.Is(err, oneview.KindTimeout), errors.Is(err, oneview.ErrTaskLost):
		return nil
	}
	return err
}

// graceToLearn is how long an interrupted run still polls for the URI of the profile that it has requested.
const graceToLearn = 20 * time.Second

// watch waits for the task that creates the profile. As soon as the task names the profile, watch tells the caller and Ironic, even
// after an interruption.
func (r *preparation) watch(ctx context.Context, taskURI string) error {
	var gone error
	learn := func(ctx context.Context) func(oneview.Task) {
		return func(now oneview.Task) {
			if now.Resource.URI == "" || r.made != "" {
				return
			}
			r.made = now.Resource.URI
			if err := r.announce(ctx, r.made); api.IsNotFound(err) {
				gone = err // other errors are reported at the end
			}
		}
	}
	err := r.p.OneView.Await(ctx, taskURI, r.deadline, learn(ctx))
	if ctx.Err() != nil && r.made == "" {
		grace, stop := context.WithTimeout(context.WithoutCancel(ctx), graceToLearn)
		defer stop()
		_ = r.p.OneView.Await(grace, taskURI, r.deadline, func(now oneview.Task) {
			learn(grace)(now)
			if r.made != "" {
				stop()
			}
		})
	}
	if gone != nil {
		return gone
	}
	return err
}

// plan checks that node, hardware and template match, and reads the profile that the template defines.
func (r *preparation) plan(ctx context.Context, hardware *oneview.Hardware) error {
	if err := r.mayStop("a server profile must be applied to its server hardware"); err != nil {
		return err
	}
	if r.draft != nil {
		return nil
	}
	if r.binding.TemplateURI == "" {
		return noTemplate(r.node, r.ends)
	}
	template, err := r.p.OneView.Template(ctx, r.binding.TemplateURI)
	if err != nil {
		return err
	}
	ports, err := r.p.Site.Ironic.Ports(ctx, r.node.UUID)
	if err != nil {
		return err
	}
	reasons := slices.Concat(misfits(template, hardware), contradictions(r.binding, hardware, ironic.Addresses(ports)))
	if len(reasons) > 0 {
		return mismatch(r.node, hardware, reasons)
	}
	draft, err := r.p.OneView.NewProfile(ctx, template.URI)
	if err != nil {
		return err
	}
	for _, key := range unsaved() {
		delete(draft, key)
	}
	draft.Set("name", r.name)
	draft.Set("description", withMark(draft.Text("description"), r.name, r.name, r.node.UUID))
	draft.Set("serverHardwareUri", hardware.URI)
	r.draft = draft
	return nil
}

// unsaved are the members of a new profile that the appliance refuses in a request (reference/oneview.md#unsaved-profiles). All
// others are sent back unchanged. That includes the link to the template, because the appliance checks and updates only
// linked profiles.
func unsaved() []string {
	return []string{
		"templateCompliance", "uri", "serialNumber", "uuid", "taskUri", "inProgress", "state", "status", "modified", "created",
		"associatedServer", "eTag", "category",
	}
}

func misfits(t *oneview.Template, h *oneview.Hardware) []string {
	var reasons []string
	if oneview.URIKey(t.HardwareTypeURI) != oneview.URIKey(h.HardwareTypeURI) {
		reasons = append(reasons, fmt.Sprintf("template %s is for server hardware type %s, the hardware is of type %s",
			oneview.TemplateLabel(t), given(t.HardwareTypeURI), given(h.HardwareTypeURI)))
	}
	if oneview.URIKey(t.GroupURI) != oneview.URIKey(h.GroupURI) {
		reasons = append(reasons, fmt.Sprintf("template %s is for enclosure group %s, the hardware is in group %s",
			oneview.TemplateLabel(t), given(t.GroupURI), given(h.GroupURI)))
	}
	if !t.ManageBoot {
		reasons = append(reasons, fmt.Sprintf("template %s does not manage the boot order, which Ironic needs: set boot.manageBoot",
			oneview.TemplateLabel(t)))
	}
	if t.MACType != "Physical" {
		reasons = append(reasons, fmt.Sprintf("template %s gives MAC addresses of type %s, but Ironic knows the physical ones: set "+
			"macType to Physical",
			oneview.TemplateLabel(t), given(t.MACType)))
	}
	return reasons
}

// contradictions returns the differences between a node and its hardware. addresses are the MAC addresses of its ports.
func contradictions(b Binding, h *oneview.Hardware, addresses []string) []string {
	var reasons []string
	if b.HardwareTypeURI != "" && !oneview.SameURI(b.HardwareTypeURI, h.HardwareTypeURI) {
		reasons = append(reasons, fmt.Sprintf("the node's capabilities say %s %s, the hardware is of type %s",
			capabilityHardwareType, b.HardwareTypeURI, given(h.HardwareTypeURI)))
	}
	if b.GroupURI != "" && !oneview.SameURI(b.GroupURI, h.GroupURI) {
		reasons = append(reasons, fmt.Sprintf("the node's capabilities say %s %s, the hardware is in group %s", capabilityGroup, b.GroupURI,
			given(h.GroupURI)))
	}
	// OneView shows no ports of rack servers.
	if len(addresses) > 0 && len(h.MACs) > 0 && !slices.ContainsFunc(addresses, h.HasMAC) {
		reasons = append(reasons, fmt.Sprintf("the node has ports %v, the hardware has %v: none is the same", addresses, h.MACs))
	}
	return reasons
}

// given returns a value, or "none" for an empty one.
func given(value string) string {
	return cmp.Or(value, "(none)")
}
