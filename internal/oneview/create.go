package oneview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// create makes the profile, on hardware that was free a moment ago. Whatever it returns, the hardware tells what has become
// of it: a create whose answer was lost is not repeated before a profile of that name and on that hardware has been looked for
// while the appliance's patience lasts.
func (r *preparation) create(ctx context.Context, hardware *Hardware) error {
	if r.failure != nil {
		r.failure, r.posted = nil, time.Time{} // somebody had switched the server on in between
	}
	if !r.posted.IsZero() && time.Since(r.posted) < r.p.OneView.cfg.Patience {
		return nil // it may yet appear
	}
	if r.posts >= maxFailures {
		return fmt.Errorf("node %s: OneView accepts server profile %s, but makes none", ironic.NodeLabel(r.node), r.name)
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

// bind tells Ironic which hardware the node is, if it does not know: whoever releases it has to find it.
func (r *preparation) bind(ctx context.Context, hardware *Hardware) error {
	if known, _ := r.node.DriverInfo[keyHardware].(string); known != "" {
		return nil
	}
	var patch ironic.Patch
	patch.Set("/driver_info/"+keyHardware, hardware.URI)
	node, err := r.p.Ironic.PatchNode(ctx, r.node.UUID, patch)
	if err != nil {
		return fmt.Errorf("node %s: write driver_info.%s: %w", ironic.NodeLabel(r.node), keyHardware, err)
	}
	return r.adopt(node)
}

// isFinal reports whether the task that failed is the end of it. If the server is on, that was in its way: it was off right
// before.
func (r *preparation) isFinal(hardware *Hardware) bool {
	return r.failure != nil && (hardware.PowerState == PowerOff || r.posts >= maxFailures)
}

// post sends the profile and waits for the end of the task.
func (r *preparation) post(ctx context.Context, hardware *Hardware) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// An interruption does not keep the answer from coming: without it nobody would know of the profile.
	sending, sent := outlasting(ctx, graceToLearn)
	uri, err := r.p.OneView.postProfile(sending, r.draft)
	sent()
	if err != nil && !isUncertain(err) {
		return err // refused: nothing was made
	}
	r.posted = time.Now()
	r.posts++
	if err != nil || uri == "" {
		return err
	}
	r.task = uri
	err = r.watch(ctx, uri)
	var failed *TaskError
	var timeout *TimeoutError
	switch {
	case errors.As(err, &failed):
		r.failure = fmt.Errorf("node %s: apply server profile %s to %s: %w", ironic.NodeLabel(r.node), r.name, HardwareLabel(hardware), err)
		return nil
	case errors.As(err, &timeout), errors.Is(err, errTaskLost):
		return nil
	}
	return err
}

// graceToLearn is how long an interrupted run still asks what the profile that it has ordered is called.
const graceToLearn = 20 * time.Second

// outlasting is a context that ends some time after ctx does.
func outlasting(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return lasting, func() {
		stop()
		cancel()
	}
}

// watch waits for the end of the task that makes the profile. As soon as the task names the profile, caller and Ironic are
// told; an interruption does not keep that from happening.
func (r *preparation) watch(ctx context.Context, taskURI string) error {
	var gone error
	learn := func(ctx context.Context) func(task) {
		return func(now task) {
			if now.Resource.URI == "" || r.made != "" {
				return
			}
			r.made = now.Resource.URI
			if err := r.announce(ctx, r.made); ironic.IsNotFound(err) {
				gone = err // other trouble comes up again in the end
			}
		}
	}
	err := r.p.OneView.await(ctx, taskURI, r.deadline, learn(ctx))
	if ctx.Err() != nil && r.made == "" {
		grace, stop := context.WithTimeout(context.WithoutCancel(ctx), graceToLearn)
		defer stop()
		_ = r.p.OneView.await(grace, taskURI, r.deadline, func(now task) {
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

// plan checks that node, hardware and template belong together, and asks for a profile as the template wants it.
func (r *preparation) plan(ctx context.Context, hardware *Hardware) error {
	if err := r.mayStop("a server profile is to be applied to its server hardware"); err != nil {
		return err
	}
	if r.draft != nil {
		return nil
	}
	if r.binding.TemplateURI == "" {
		return &NoTemplateError{Node: ironic.NodeLabel(r.node)}
	}
	template, err := r.p.OneView.Template(ctx, r.binding.TemplateURI)
	if err != nil {
		return err
	}
	ports, err := r.p.Ironic.Ports(ctx, r.node.UUID)
	if err != nil {
		return err
	}
	reasons := slices.Concat(misfits(template, hardware), contradictions(r.binding, hardware, ironic.Addresses(ports)))
	if len(reasons) > 0 {
		return &MismatchError{Node: ironic.NodeLabel(r.node), Hardware: hardware, Reasons: reasons}
	}
	draft, err := r.p.OneView.newProfile(ctx, template.URI)
	if err != nil {
		return err
	}
	for _, key := range unsaved() {
		delete(draft, key)
	}
	draft.set("name", r.name)
	draft.set("description", marked(draft.text("description"), r.name, r.name, r.node.UUID))
	draft.set("serverHardwareUri", hardware.URI)
	r.draft = draft
	return nil
}

// unsaved are what the appliance says of a profile that is not saved yet, and does not want to be told (reference oneview.md
// 1.5). Everything else goes back as it came, the link to the template too: only of linked profiles does the appliance tell
// whether they still comply, and only those can it bring up to date.
func unsaved() []string {
	return []string{
		"templateCompliance", "uri", "serialNumber", "uuid", "taskUri", "inProgress", "state", "status", "modified", "created",
		"associatedServer", "eTag", "category",
	}
}

// misfits are the reasons why a template cannot be applied to hardware.
func misfits(t *Template, h *Hardware) []string {
	var reasons []string
	if normalURI(t.HardwareTypeURI) != normalURI(h.HardwareTypeURI) {
		reasons = append(reasons, fmt.Sprintf("template %s is for server hardware type %s, the hardware is of type %s",
			TemplateLabel(t), given(t.HardwareTypeURI), given(h.HardwareTypeURI)))
	}
	if normalURI(t.GroupURI) != normalURI(h.GroupURI) {
		reasons = append(reasons, fmt.Sprintf("template %s is for enclosure group %s, the hardware is in group %s",
			TemplateLabel(t), given(t.GroupURI), given(h.GroupURI)))
	}
	if !t.ManageBoot {
		reasons = append(reasons, fmt.Sprintf("template %s does not manage the boot order, which Ironic needs: set boot.manageBoot", TemplateLabel(t)))
	}
	if t.MACType != "Physical" {
		reasons = append(reasons, fmt.Sprintf("template %s gives MAC addresses of type %s, but Ironic knows the physical ones: set macType to Physical",
			TemplateLabel(t), given(t.MACType)))
	}
	return reasons
}

// contradictions are where a node says something else than its hardware. addresses are the MAC addresses of its ports.
func contradictions(b Binding, h *Hardware, addresses []string) []string {
	var reasons []string
	if b.HardwareTypeURI != "" && !sameURI(b.HardwareTypeURI, h.HardwareTypeURI) {
		reasons = append(reasons, fmt.Sprintf("the node's capabilities say %s %s, the hardware is of type %s",
			capabilityHardwareType, b.HardwareTypeURI, given(h.HardwareTypeURI)))
	}
	if b.GroupURI != "" && !sameURI(b.GroupURI, h.GroupURI) {
		reasons = append(reasons, fmt.Sprintf("the node's capabilities say %s %s, the hardware is in group %s", capabilityGroup, b.GroupURI, given(h.GroupURI)))
	}
	// Of rack servers OneView shows no ports.
	if len(addresses) > 0 && len(h.MACs) > 0 && !slices.ContainsFunc(addresses, h.HasMAC) {
		reasons = append(reasons, fmt.Sprintf("the node has ports %v, the hardware has %v: none is the same", addresses, h.MACs))
	}
	return reasons
}

// given is a value, or the word for none.
func given(value string) string {
	if value == "" {
		return "(none)"
	}
	return value
}
