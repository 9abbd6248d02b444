package deployment

import (
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

func TestHistory_recordsWhatMayRun(t *testing.T) {
	t.Parallel()
	v1, v2 := provision.Deployment{Image: &provision.Image{URL: "v1"}}, provision.Deployment{Image: &provision.Image{URL: "v2"}}
	traits := provision.Deployment{Traits: []string{"CUSTOM_A"}}
	told := provision.SettingsOf(&ironic.Node{InstanceInfo: map[string]any{"traits": []any{"CUSTOM_A"}}})
	fresh := history{Phase: unapplied, Unset: untold()}
	for name, tt := range map[string]struct {
		history     history
		attribute   string
		set, known  bool
		plan, state provision.Deployment
		want        bool
	}{
		"no import":                                {history{}, "config_drive", false, true, v1, v1, false},
		"the import itself, another image":         {history{Phase: importing}, "image", true, true, v2, v1, true},
		"the import itself, an unknown image":      {history{Phase: importing}, "image", true, false, v2, v1, true},
		"the image that runs":                      {fresh, "image", true, true, v1, v1, true},
		"another image":                            {fresh, "image", true, true, v2, v1, false},
		"an image that is not known yet":           {fresh, "image", true, false, v1, v1, false},
		"an image where Ironic tells none":         {fresh, "image", false, true, v1, provision.Deployment{}, true},
		"no image any more":                        {fresh, "image", true, true, provision.Deployment{}, v1, false},
		"the image, once applied":                  {history{Phase: applied, Unset: untold()}, "image", true, true, v1, v1, false},
		"the first drive":                          {fresh, "config_drive", false, true, v1, v1, true},
		"the first drive, not known yet":           {fresh, "config_drive", false, false, v1, v1, true},
		"the first drive, after other applies":     {history{Phase: applied, Unset: []string{"config_drive"}}, "config_drive", false, true, v1, v1, true},
		"a drive after one that was removed":       {history{Phase: applied, Unset: []string{"deploy_steps"}}, "config_drive", false, true, v1, v1, false},
		"another drive":                            {fresh, "config_drive", true, true, v1, v1, false},
		"the traits that Ironic tells":             {history{Phase: unapplied, Told: told}, "traits", false, true, traits, v1, true},
		"traits that the node does not have":       {fresh, "traits", false, true, traits, v1, false},
		"traits that are not known yet":            {history{Phase: unapplied, Told: told}, "traits", false, false, traits, v1, false},
		"traits that Ironic tells, after an apply": {history{Phase: applied, Told: told, Unset: untold()}, "traits", false, true, traits, v1, false},
		"the first instance_info":                  {fresh, "instance_info", false, true, v1, v1, true},
	} {
		if got := tt.history.records(tt.attribute, tt.set, tt.known, tt.plan, tt.state); got != tt.want {
			t.Errorf("%s: recorded only = %v, want %v", name, got, tt.want)
		}
	}
}

func TestHistory_ends(t *testing.T) {
	t.Parallel()
	node := &ironic.Node{}
	drive := map[string]attr.Type{"hostname": types.StringType}
	without := &model{ConfigDrive: types.ObjectNull(drive), DeploySteps: types.ListNull(types.StringType)}
	with := &model{ConfigDrive: types.ObjectUnknown(drive), DeploySteps: types.ListUnknown(types.StringType)}
	imported := history{}.afterRead(node, true)
	later := imported.afterRead(node, false)
	for name, tt := range map[string]struct {
		got   history
		phase importPhase
		unset []string
	}{
		"no import":                   {history{}.afterRead(node, false), notImported, nil},
		"the read of the import":      {imported, importing, untold()},
		"the next read":               {later, unapplied, untold()},
		"and the one after that":      {later.afterRead(node, false), unapplied, untold()},
		"an apply with the import":    {imported.afterApply(without, false), applied, untold()},
		"an apply that sets all":      {later.afterApply(with, false), notImported, nil},
		"an apply that deploys":       {later.afterApply(without, true), notImported, nil},
		"a read after an apply":       {later.afterApply(without, false).afterRead(node, false), applied, untold()},
		"an apply without an import":  {history{}.afterApply(without, false), notImported, nil},
		"a second apply with a drive": {later.afterApply(without, false).afterApply(&model{ConfigDrive: with.ConfigDrive, DeploySteps: without.DeploySteps}, false), applied, []string{"deploy_steps"}},
	} {
		if tt.got.Phase != tt.phase || !slices.Equal(tt.got.Unset, tt.unset) {
			t.Errorf("%s: phase %q, unset %v; want %q, %v", name, tt.got.Phase, tt.got.Unset, tt.phase, tt.unset)
		}
	}
}
