package deployment

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// importPhase says how far the import of a deployment has come.
type importPhase string

const (
	notImported importPhase = ""          // or this resource has deployed the machine since
	importing   importPhase = "importing" // the plan that imports: its apply touches no machine
	unapplied   importPhase = "unapplied" // the import is over, and no apply has recorded a configuration
	applied     importPhase = "applied"   // an apply has recorded one that lacks some of what Ironic does not tell
)

// history is what private state says of the import of a deployment. The first refresh after the import ends the phase importing. Terraform
// does not tell a provider that a plan was empty, and stores nothing of it.
type history struct {
	Phase importPhase        `json:"phase"`
	Unset []string           `json:"unset,omitempty"` // of untold: what no apply has recorded
	Told  provision.Settings `json:"told"`            // what the node had when it was imported
}

// historyKey is the key of the history in private state.
const historyKey = "imported"

// untold are the attributes of which Ironic does not tell what the machine was deployed with.
func untold() []string { return []string{"config_drive", "deploy_steps"} }

func writeHistory(ctx context.Context, private framework.SettablePrivate, h history) diag.Diagnostics {
	if h.Phase == notImported {
		return private.SetKey(ctx, historyKey, nil)
	}
	text, _ := json.Marshal(h) // strings always marshal
	return private.SetKey(ctx, historyKey, text)
}

// readHistory returns the history that writeHistory has stored; zero if there is none.
func readHistory(ctx context.Context, private framework.GettablePrivate, diags *diag.Diagnostics) (h history) {
	text, problems := private.GetKey(ctx, historyKey)
	diags.Append(problems...)
	_ = json.Unmarshal(text, &h) // a zero history is fine if there is none
	return h
}

// afterRead returns the history after a refresh. first reports whether it is the one that belongs to the import.
func (h history) afterRead(node *ironic.Node, first bool) history {
	switch {
	case first:
		return history{Phase: importing, Unset: untold(), Told: provision.SettingsOf(node)}
	case h.Phase == importing:
		h.Phase = unapplied
	}
	return h
}

// afterApply returns the history after an apply that has recorded a configuration. deployed reports whether the machine runs that.
func (h history) afterApply(recorded *model, deployed bool) history {
	if h.Phase == notImported || deployed {
		return history{}
	}
	content := recorded.content()
	h.Unset = slices.DeleteFunc(slices.Clone(h.Unset), func(name string) bool { return !content[name].IsNull() })
	if len(h.Unset) == 0 {
		return history{}
	}
	return history{Phase: applied, Unset: h.Unset}
}

// records reports whether an apply only records the planned value of an attribute, because the machine may run that value. set reports
// whether the state has a value, and known whether the plan knows all of it.
func (h history) records(name string, set, known bool, plan, state provision.Deployment) bool {
	switch {
	case h.Phase == importing:
		return true
	case set:
		return h.Phase == unapplied && known && plan.Image != nil && state.Image != nil && name == "image" && !plan.Image.Differs(*state.Image)
	case slices.Contains(h.Unset, name):
		return true
	}
	return h.Phase == unapplied && known && !h.Told.Contradict(name, plan)
}

// baseline returns the state with which a plan is compared: what the apply only records is that of the plan. differs reports whether
// there is anything to record.
func (h history) baseline(ctx context.Context, plan, state *model) (base *model, differs bool) {
	was := *state
	if h.Phase == notImported {
		return &was, false
	}
	wanted, _ := plan.deployment(ctx)
	told, _ := state.deployment(ctx)
	prior, names := state.content(), map[string]bool{}
	for name, value := range plan.content() {
		names[name] = h.records(name, !prior[name].IsNull(), framework.FullyKnown(ctx, value), wanted, told)
	}
	was.takeContent(plan, names)
	if h.Phase == importing || (h.Phase == unapplied && state.RebuildTriggers.IsNull()) {
		was.RebuildTriggers = plan.RebuildTriggers
	}
	if h.Phase == importing || (h.Phase == unapplied && state.RestartTriggers.IsNull()) {
		was.RestartTriggers = plan.RestartTriggers
	}
	return &was, !was.sameContent(ctx, state) || !was.RebuildTriggers.Equal(state.RebuildTriggers)
}

// takeContent copies the named attributes of the content from another model.
func (m *model) takeContent(other *model, names map[string]bool) {
	if names["image"] {
		m.Image = other.Image
	}
	if names["config_drive"] {
		m.ConfigDrive = other.ConfigDrive
	}
	if names["deploy_steps"] {
		m.DeploySteps = other.DeploySteps
	}
	if names["capabilities"] {
		m.Capabilities = other.Capabilities
	}
	if names["traits"] {
		m.Traits = other.Traits
	}
	if names["root_device"] {
		m.RootDevice = other.RootDevice
	}
	if names["instance_info"] {
		m.InstanceInfo = other.InstanceInfo
	}
}

// keepsMachine reports whether no plan replaces the deployment, because no apply has followed its import.
func (h history) keepsMachine() bool { return h.Phase == importing || h.Phase == unapplied }

// warnRecorded warns if the apply records values of an imported machine, and does not deploy them.
func (p inPlace) warnRecorded(diags *diag.Diagnostics) {
	if !p.records {
		return
	}
	detail := "The apply records the configuration of node %s in the state, and does not touch the machine. If the node runs another image, the next plan shows that. "
	if !p.imported {
		detail = "Ironic does not tell whether node %s runs the values that the state lacks. The apply records them, and deploys nothing for them. "
	}
	diags.AddWarning("Imported deployment is recorded only", fmt.Sprintf(detail+"Ironic does not return values such as a config drive, so the state takes the first ones from the configuration; "+
		"a later change of them rebuilds the machine. To deploy the node again, use terraform apply -replace.", p.label()))
}
