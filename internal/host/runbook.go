package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// Runbook is what was looked up of the cleaning runbook of a host.
type Runbook struct {
	Found     *ironic.Procedure // nil: it does not exist, or the user may not see it
	Hidden    string            // why the user may not see it; "": the user may
	Open      bool              // this plan changes it, and not all of it is known yet
	First     bool              // no other host of this run has named it before
	Server    api.Microversion
	Traits    decide.Value[[]string] // of the node, after the apply
	Project   string                 // that owns the host, or else that of the user; "": none
	HasTraits bool                   // runbooks have traits in this API. Before, the name is the only one
}

// traits returns the traits of the runbook. The node must have at least one of them.
func (r *Runbook) traits() []string {
	if r.HasTraits {
		return r.Found.Traits
	}
	return []string{r.Found.Name}
}

// fits reports whether the node has one of the traits, or may have one.
func (r *Runbook) fits() bool {
	return !r.Traits.Set || slices.ContainsFunc(r.traits(), func(trait string) bool { return slices.Contains(r.Traits.V, trait) })
}

// deploySteps are steps of Ironic that deploy or service a machine, and are none of a cleaning.
var deploySteps = []string{
	"deploy.boot_instance", "deploy.deploy", "deploy.execute_bootc_install", "deploy.inject_files", "deploy.prepare_instance_boot",
	"deploy.switch_to_tenant_network",
	"deploy.tear_down_agent", "deploy.write_image", "vendor.trigger_servicewait",
}

// steps returns the steps that are none of a cleaning, and whether one erases.
func (r *Runbook) steps() (wrong []string, erases bool) {
	for _, step := range r.Found.Steps {
		name := step.Interface + "." + step.Step
		if slices.Contains(deploySteps, name) {
			wrong = append(wrong, name)
		}
		erases = erases || step.Interface == "deploy" && strings.HasPrefix(step.Step, "erase_")
	}
	return wrong, erases
}

// consequence says what Ironic does with a host whose cleaning runbook it cannot use.
const consequence = "Where the site honours cleaning_runbook, Ironic then does not make the host available, and after an undeployment " +
	"it leaves the node in state deleting until a conductor is restarted, even if automated_clean is false."

// decideRunbook checks the runbook by which Ironic is to clean the host, if the plan sets it, changes what it must fit, or cleans the host.
func (p *plan) decideRunbook() {
	name, at := p.Runbook, decide.At(machine.KeyRunbook)
	sets := p.seen.New || name != p.seen.Runbook
	if !name.Set || !sets && !p.TraitsChange && (!p.Has(DoWalk) || !p.mayBecomeAvailable()) {
		return
	}
	if p.ask(AskRunbook); p.seen.Runbooks == nil {
		return
	}
	r := p.seen.Runbooks
	switch {
	case r.Found == nil && r.Hidden != "":
		p.warn(at, "Cleaning runbook is not checked", fmt.Sprintf("The user may not see runbook %s, so the plan cannot tell whether it "+
			"exists and fits host %s. %s %s", name.V, p.Label, consequence, r.Hidden))
	case r.Found == nil:
		p.refuse(at, "Cleaning runbook does not exist", fmt.Sprintf("Ironic has no runbook %s. %s Create it, for example with "+
			"metal_runbook, or correct cleaning_runbook.", name.V, consequence))
		return
	case !r.Open:
		p.checkRunbook(r)
	}
	if sets && r.First {
		p.warnRunbook(r)
	}
}

func (p *plan) checkRunbook(r *Runbook) {
	name, at := p.Runbook.V, decide.At(machine.KeyRunbook)
	if !r.fits() {
		p.refuse(at, "Cleaning runbook does not fit the host", fmt.Sprintf("Ironic runs runbook %s only on nodes with one of its "+
			"traits%s, and host %s has none of them after this apply. %s Add one of them to traits of the host, or to those "+
			"of the runbook.",
			name, inList(r.traits()), p.Label, consequence))
	}
	wrong, erases := r.steps()
	if len(wrong) > 0 {
		p.refuse(at, "Cleaning runbook has steps that do not clean", fmt.Sprintf("Runbook %s has the steps %s, which are none of a "+
			"cleaning: it would end in state clean failed. Remove them from the runbook.", name, strings.Join(wrong, ", ")))
	}
	if !erases && r.First {
		p.warn(at, "Cleaning runbook erases nothing",
			fmt.Sprintf("No step of runbook %s erases a disk: the next user of the machine finds the data of the last one. Add "+
				"deploy.erase_devices, deploy.erase_devices_express or deploy.erase_devices_metadata, unless that is wanted.", name))
	}
	if owner := r.Found.Owner; owner != "" && !r.Found.Public && owner != r.Project && r.First {
		p.warn(at, "Cleaning runbook belongs to others", fmt.Sprintf("Runbook %s belongs to project %s, and is not public. Ironic does "+
			"not check that for cleanings, but that project can change or delete the runbook.", name, owner))
	}
}

// inList returns " (a, b)"; "" for an empty list.
func inList(items []string) string {
	if len(items) == 0 {
		return ""
	}
	return " (" + strings.Join(items, ", ") + ")"
}

// warnRunbook says what Ironic does not tell about the site.
func (p *plan) warnRunbook(r *Runbook) {
	at := decide.At(machine.KeyRunbook)
	if r.Server < api.VersionCleaningRunbook {
		p.warn(at, "Ironic ignores the cleaning runbook", fmt.Sprintf("Ironic cleans machines by a runbook since 2025.2 (API %s), and "+
			"this one has API %s. It cleans them as if cleaning_runbook were not set.", api.VersionCleaningRunbook, r.Server))
		return
	}
	p.warn(at, "Cleaning runbook may have no effect",
		fmt.Sprintf("Ironic uses runbook %s only if the site sets [conductor]automated_cleaning_step_source to runbook or hybrid, and "+
			"automated_cleaning_runbook_from_node to true. The API does not tell whether it does: ask its operator.", p.Runbook.V))
}
