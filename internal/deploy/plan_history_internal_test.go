package deploy

import (
	"slices"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

func TestFormerNames(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		former   []string
		was, now string
		want     []string
	}{
		"the first look":         {nil, "", "a", nil},
		"the same name":          {nil, "a", "a", nil},
		"a new name":             {nil, "a", "b", []string{"a"}},
		"another one":            {[]string{"a"}, "b", "c", []string{"a", "b"}},
		"the former name again":  {[]string{"a"}, "b", "a", []string{"b"}},
		"nothing new since then": {[]string{"a"}, "b", "b", []string{"a"}},
	} {
		if got := FormerNames(tt.former, tt.was, tt.now); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// A config drive that follows a rename of the node deploys nothing, unless something else does.
func TestDecision_keepsName(t *testing.T) {
	t.Parallel()
	none, trigger := Text{}, decide.Known("1")
	drive := func(hostname, data string) Wish {
		return Wish{
			Content: map[string]Text{attrConfigDrive: decide.Known(hostname + data)},
			Drive:   map[string]Text{"hostname": decide.Known(hostname), "user_data": decide.Known(data)},
		}
	}
	for name, tt := range map[string]struct {
		names    []string
		drive    Wish
		triggers Text
		keeps    bool
	}{
		"it follows the rename":               {[]string{"n1"}, drive("n2", "host n2"), none, true},
		"it follows one of several":           {[]string{"n0", "n1"}, drive("n2", "host n2"), none, true},
		"no rename":                           {nil, drive("n2", "host n2"), none, false},
		"another name than that of the node":  {[]string{"n1"}, drive("n3", "host n3"), none, false},
		"it follows in one place only":        {[]string{"n1"}, drive("n2", "host n1"), none, false},
		"something else changes, too":         {[]string{"n1"}, drive("n2", "host n2\n"), none, false},
		"the machine is deployed anew anyway": {[]string{"n1"}, drive("n2", "host n2"), trigger, false},
		"nothing changes":                     {[]string{"n0"}, drive("n1", "host n1"), none, true},
	} {
		wish := tt.drive
		wish.Rebuild = tt.triggers
		was := drive("n1", "host n1")
		was.Rebuild = decide.Known("before")
		if wish.Rebuild.IsNull() {
			wish.Rebuild = was.Rebuild
		}
		p := Decide(wish, Seen{Was: was, State: "active", Names: tt.names, Sight: Sight{Name: "n2"}})
		want := tt.drive.Content[attrConfigDrive]
		if tt.keeps {
			want = was.Content[attrConfigDrive]
		}
		if got := p.Forecast.Wish.Content[attrConfigDrive]; got != want {
			t.Errorf("%s: the plan has the config drive %q, want %q", name, got.V, want.V)
		}
		if rebuilds := Has(p.Steps, DoRebuild); rebuilds == tt.keeps {
			t.Errorf("%s: the plan rebuilds the machine: %v", name, rebuilds)
		}
	}
}

func TestHistory_recordsWhatMayRun(t *testing.T) {
	t.Parallel()
	v1, v2 := Deployment{Image: &Image{URL: "v1"}}, Deployment{Image: &Image{URL: "v2"}}
	traits := Deployment{Traits: []string{"CUSTOM_A"}}
	told := SettingsOf(&ironic.Node{InstanceInfo: map[string]any{"traits": []any{"CUSTOM_A"}}})
	fresh := History{Phase: Unapplied, Unset: untold()}
	for name, tt := range map[string]struct {
		history     History
		attribute   string
		set, known  bool
		plan, state Deployment
		want        bool
	}{
		"no import":                           {History{}, "config_drive", false, true, v1, v1, false},
		"the import itself, another image":    {History{Phase: Importing}, "image", true, true, v2, v1, true},
		"the import itself, an unknown image": {History{Phase: Importing}, "image", true, false, v2, v1, true},
		"the image that runs":                 {fresh, "image", true, true, v1, v1, true},
		"another image":                       {fresh, "image", true, true, v2, v1, false},
		"an image that is not known yet":      {fresh, "image", true, false, v1, v1, false},
		"an image where Ironic tells none":    {fresh, "image", false, true, v1, Deployment{}, true},
		"no image any more":                   {fresh, "image", true, true, Deployment{}, v1, false},
		"the image, once applied":             {History{Phase: Applied, Unset: untold()}, "image", true, true, v1, v1, false},
		"the first drive":                     {fresh, "config_drive", false, true, v1, v1, true},
		"the first drive, not known yet":      {fresh, "config_drive", false, false, v1, v1, true},
		"the first drive, after other applies": {
			History{Phase: Applied, Unset: []string{"config_drive"}},
			"config_drive", false,
			true, v1, v1, true,
		},
		"a drive after one that was removed": {
			History{Phase: Applied, Unset: []string{"deploy_steps"}},
			"config_drive", false, true,
			v1, v1, false,
		},
		"another drive":                      {fresh, "config_drive", true, true, v1, v1, false},
		"the traits that Ironic tells":       {History{Phase: Unapplied, Told: told}, "traits", false, true, traits, v1, true},
		"traits that the node does not have": {fresh, "traits", false, true, traits, v1, false},
		"traits that are not known yet":      {History{Phase: Unapplied, Told: told}, "traits", false, false, traits, v1, false},
		"traits that Ironic tells, after an apply": {
			History{Phase: Applied, Told: told, Unset: untold()},
			"traits", false, true,
			traits, v1, false,
		},
		"the first instance_info": {fresh, "instance_info", false, true, v1, v1, true},
	} {
		wish, was := Wish{Deployment: tt.plan, Content: map[string]Text{tt.attribute: {Unknown: !tt.known}}},
			Wish{Deployment: tt.state, Content: map[string]Text{tt.attribute: {Set: tt.set}}}
		if got := tt.history.records(tt.attribute, wish, was); got != tt.want {
			t.Errorf("%s: recorded only = %v, want %v", name, got, tt.want)
		}
	}
}

func TestHistory_ends(t *testing.T) {
	t.Parallel()
	node := &ironic.Node{}
	without := Wish{}
	with := Wish{Content: map[string]Text{attrConfigDrive: {Unknown: true}, attrDeploySteps: {Unknown: true}}}
	imported := History{}.AfterRead(node, true)
	later := imported.AfterRead(node, false)
	for name, tt := range map[string]struct {
		got   History
		phase ImportPhase
		unset []string
	}{
		"no import":                  {History{}.AfterRead(node, false), NotImported, nil},
		"the read of the import":     {imported, Importing, untold()},
		"the next read":              {later, Unapplied, untold()},
		"and the one after that":     {later.AfterRead(node, false), Unapplied, untold()},
		"an apply with the import":   {imported.AfterApply(without, false), Applied, untold()},
		"an apply that sets all":     {later.AfterApply(with, false), NotImported, nil},
		"an apply that deploys":      {later.AfterApply(without, true), NotImported, nil},
		"a read after an apply":      {later.AfterApply(without, false).AfterRead(node, false), Applied, untold()},
		"an apply without an import": {History{}.AfterApply(without, false), NotImported, nil},
		"a second apply with a drive": {later.AfterApply(without,
			false).AfterApply(Wish{Content: map[string]Text{attrConfigDrive: {Unknown: true}}}, false), Applied, []string{"deploy_steps"}},
	} {
		if tt.got.Phase != tt.phase || !slices.Equal(tt.got.Unset, tt.unset) {
			t.Errorf("%s: phase %q, unset %v; want %q, %v", name, tt.got.Phase, tt.got.Unset, tt.phase, tt.unset)
		}
	}
}
