package deploy_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/deployinterface"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// now is the time of all decisions.
var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// provisionStates are the provision states of Ironic.
var provisionStates = strings.Split("enroll|verifying|manageable|inspecting|inspect wait|inspect failed|cleaning|clean wait|clean "+
	"failed|clean hold|available|deploying|wait call-back|deploy failed|deploy hold|active|deleting|error|adopting|adopt "+
	"failed|rescuing|rescue wait|rescue|rescue failed|unrescuing|unrescue failed|servicing|service wait|service failed|service hold", "|")

// attributes are the names of the attributes that only have to be equal or not.
func attributes(w *deploy.Wish) map[string]*deploy.Text {
	return map[string]*deploy.Text{
		"node": &w.Node, "instance_name": &w.Name, "allocation": &w.Allocation, "rebuild_triggers": &w.Rebuild,
		"restart_triggers": &w.Restart, "rescue": &w.Rescue, "vifs": &w.VIFs, "ready_check": &w.ReadyCheck,
	}
}

// value reads a value of a table: "?" is not known yet, "-" is none.
func value[T ~string](text string) decide.Value[T] {
	switch text {
	case "?":
		return decide.Unknown[T]()
	case "-":
		return decide.Value[T]{}
	}
	return decide.Known(T(text))
}

// set changes a setting of a wish, by its name in the tables.
func set(w *deploy.Wish, name, to string) {
	attribute := attributes(w)[name]
	switch {
	case name == "destroy":
		w.Destroy = true
	case name == "adopt" && to == "?":
		w.AdoptOpen = true
	case name == "adopt":
		w.Adopt, w.LiveISO = true, decide.Value[deploy.LiveISO]{}
		w.Content["image"] = deploy.Text{}
	case name == "power_state":
		w.Power = value[deploy.PowerState](to)
	case name == "power_off_mode":
		w.OffMode = value[machine.OffMode](to)
	case name == "protected":
		w.Protected = decide.Value[bool]{V: to == "true", Set: to == "true" || to == "false"}
	case name == "on_change":
		w.OnChange = value[deploy.OnChange](to)
	case name == "on_destroy":
		w.OnDestroy = value[deploy.OnDestroy](to)
	case attribute != nil:
		*attribute = value[string](to)
	case slices.Contains(deploy.ContentNames(), name):
		w.Content[name] = value[string](to)
		if name == "image" && to != "-" {
			w.Adopt, w.LiveISO = false, decide.Value[deploy.LiveISO]{}
		}
	case name == "live_iso" && to == "?":
		w.LiveISO, w.Content["image"] = decide.Unknown[deploy.LiveISO](), deploy.Text{}
	case name == "live_iso":
		w.Adopt, w.Content["image"] = false, deploy.Text{}
		setISO(w, "url", to)
	default:
		setISO(w, name, to)
	}
	fill(w)
}

// setISO changes a part of the live ISO.
func setISO(w *deploy.Wish, name, to string) {
	parts := map[string]deploy.Text{}
	for part, value := range w.LiveISO.V.Parts {
		parts[part] = value
	}
	parts[name] = value[string](to)
	w.LiveISO = decide.Known(deploy.LiveISO{Parts: parts})
}

// fill derives the parts of a wish that repeat others.
func fill(w *deploy.Wish) {
	w.Ports, w.Deployment = nil, deploy.Deployment{}
	for id := range strings.FieldsSeq(w.VIFs.V) {
		w.Ports = append(w.Ports, deploy.VIF{ID: id})
	}
	w.Deployment.InstanceInfo = map[string]any{"rebuild_triggers": w.Rebuild}
	for name, value := range w.Content {
		w.Deployment.InstanceInfo[name] = value.V
	}
	switch info := w.Content["instance_info"].V; {
	case strings.HasPrefix(info, "by "):
		w.Deployment.InstanceInfo["deploy_interface"] = strings.TrimPrefix(info, "by ")
	case info == "a ramdisk":
		maps.Copy(w.Deployment.InstanceInfo, map[string]any{"kernel": "k", "ramdisk": "r", "ironic_ramdisk_deploy": true})
	}
	if image := w.Content["image"]; !image.IsNull() {
		w.Deployment.Image = &deploy.Image{URL: image.V}
	}
	if !w.LiveISO.Set {
		return
	}
	iso := &w.LiveISO.V
	content := func(name string) map[string]string {
		if part := iso.Parts[name]; part.Set {
			return map[string]string{"c": part.V}
		}
		return nil
	}
	iso.Want = bootiso.NewWant(bootiso.Artifacts{
		URL: "http://images/" + iso.Parts["url"].V, SharedContent: content("shared_content"), HostContent: content("host_content"),
		Contains: content("contains"),
	})
	iso.Want.Installing, iso.Want.Registered = iso.Parts["installing"].V == "true", iso.Parts["registered"].V != "false"
	if policy := iso.Parts["reboot_policy"]; policy.Set {
		iso.Want.Policy = bootiso.Policy(policy.V)
	}
	if built := iso.Parts["built_at"]; built.Set {
		iso.Want.BuiltAt, _ = time.Parse(time.RFC3339, built.V)
	}
	want := iso.Want
	w.Deployment.LiveISO = &want
}

// changed returns a wish with other settings: "name=value, name=value".
func changed(was deploy.Wish, settings string) deploy.Wish {
	content := map[string]deploy.Text{}
	for name, value := range was.Content {
		content[name] = value
	}
	was.Content = content
	for setting := range strings.SplitSeq(settings, ", ") {
		if name, to, _ := strings.Cut(setting, "="); name != "the same" {
			set(&was, name, to)
		}
	}
	return was
}

// runningMachine returns a machine that runs a wish: what the state, private state and the last read say of it.
func runningMachine(runs string) deploy.Seen {
	w := changed(deploy.Wish{Content: map[string]deploy.Text{}, OnDestroy: decide.Known(deploy.DestroyUndeploys)}, "node=uuid-1, "+runs)
	s := deploy.Seen{
		Was: w, ID: "uuid-1", Instance: "reservation", State: "active", Power: decide.Known(deploy.PowerOn), Name: w.Name,
		Attempts: decide.Known[int64](1), Label: "n1", Now: now,
		Sight: deploy.Sight{Name: "n1", Content: w.Deployment.Digest(), Boot: bootiso.Candidate{Label: "n1", Powered: true}},
		Runs:  deploy.Footprint{Mark: w.Deployment.Digest(), Image: w.Content["image"].V},
	}
	if w.ReadyCheck.Set {
		s.Ready = decide.Known(true)
	}
	if w.LiveISO.Set {
		record := bootiso.NewRecord(w.LiveISO.V.Want.Artifacts, now.Add(-time.Hour), nil)
		s.Sight.Boot.Booted, s.Boot = &record, decide.Known(bootiso.Status{Action: bootiso.None})
		s.Last = deploy.Wanted{Image: "i", Artifacts: w.LiveISO.V.Want.WithoutURL()}
	}
	return s
}

// seeing returns what is seen of a machine in some condition: "fact, fact". A fact that is no other is a provision state.
func seeing(s deploy.Seen, facts string) deploy.Seen {
	for fact := range strings.SplitSeq(facts, ", ") {
		by, method, _ := strings.Cut(fact, " by ")
		switch by {
		case "deployed":
			s.Sight.Deploy = deployinterface.Name(method)
			continue
		case "detected":
			s.Sight.Deploy, s.Sight.Detected = deployinterface.Name(method), deployinterface.Name(method)
			continue
		}
		switch fact {
		case "new":
			s = deploy.Seen{New: true, Now: now}
		case "protected":
			s.Protected = true
		case "not named":
			s.Name = deploy.Text{}
		case "off":
			s.Power = decide.Known(deploy.PowerOff)
		case "ready", "not ready":
			s.Ready = decide.Known(fact == "ready")
		case "importing":
			s.Past, s.Attempts = deploy.History{Phase: deploy.Importing, Unset: []string{"config_drive", "deploy_steps"}},
				decide.Known[int64](0)
		case "imported":
			s.Past, s.Attempts = deploy.History{Phase: deploy.Unapplied, Unset: []string{"config_drive", "deploy_steps"}},
				decide.Known[int64](0)
		case "import applied":
			s.Past, s.Attempts = deploy.History{Phase: deploy.Applied, Unset: []string{"config_drive", "deploy_steps"}},
				decide.Known[int64](0)
		case "creation interrupted before Ironic began":
			s.Unbegun = true
		case "host destroyed":
			s.HostEnds = true
		case "host replaced":
			s.LosesNode = true
		case "allocation replaced":
			s.LosesReservation = true
		case "to be called n2":
			s.PlannedName = "n2"
		case "another run has restarted for 2", "this run has restarted for 2":
			s.Sight.Restart = deploy.Restarted{Triggers: deploy.TriggersDigest(decide.Known("2")), At: now}
			if strings.HasPrefix(fact, "this") {
				s.Restart = s.Sight.Restart
			}
		case "no BMC":
			s.Sight.Boot.Powered = false
		case "waits for a restart by hand":
			s.Sight.Boot.Asked = true
		case "in maintenance":
			s.Sight.Boot.Barred = "it is in maintenance"
		case "no record of the boot":
			s.Sight.Boot.Booted = nil
		case "not refreshed":
			s.Sight = deploy.Sight{}
		case "booted 4 times":
			s.Sight.Boot.Booted.Boots = 4
		case "an earlier run deploys the wish", "an earlier run has deployed the wish":
			// see decideAll
		default:
			s.State = ironic.State(fact)
			s.Sight.Boot.Rescued = deploy.RescueOf(s.State) != deploy.NotRescued
		}
	}
	forgetReady(&s)
	return s
}

// forgetReady does what a refresh does with ready.
func forgetReady(s *deploy.Seen) {
	if s.State != "active" || s.Was.Power.V == deploy.PowerOff || !s.Was.Rescue.IsNull() {
		s.Ready = decide.Value[bool]{}
	}
}

// costs are the costs of steps in the tables.
var costs = map[decide.Cost]string{decide.Free: "", decide.Restart: " (restart)", decide.Clean: " (clean)", decide.Wipe: " (wipe)"}

// steps writes the steps of a plan as the tables do.
func steps(p deploy.Plan) string {
	var all []string
	for _, s := range p.Steps {
		text := string(s.Do) + costs[s.Cost]
		if s.Maybe {
			text += "?"
		}
		all = append(all, text)
	}
	if len(p.Replaces) > 0 {
		all = append(all, "replaced for "+strings.Join(p.Replaces, "+"))
	}
	return cmp.Or(strings.Join(all, ", "), "-")
}

// notices writes the summaries of the notices of a plan; a refusal begins with "!".
func notices(p deploy.Plan) string {
	var all []string
	for _, n := range p.Notices {
		if n.Severity == decide.Refusal {
			n.Summary = "!" + n.Summary
		}
		all = append(all, n.Summary)
	}
	return cmp.Or(strings.Join(all, ", "), "-")
}

// counters writes the counters that a plan shows, of a state that has none: rebuilds/restarts.
func counters(p deploy.Plan) string {
	one := func(v decide.Value[int64]) string {
		if v.Unknown {
			return "?"
		}
		return fmt.Sprint(v.V)
	}
	return one(p.Forecast.Rebuilds) + "/" + one(p.Forecast.Restarts)
}

// decideAll decides each row of a table: a wish, what is seen, what happens, the notices, and the counters rebuilds/restarts.
func decideAll(t *testing.T, runs, table string) {
	t.Helper()
	for line := range strings.Lines(strings.TrimSpace(table)) {
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) != 5 {
			t.Fatalf("the row has %d cells, not 5: %s", len(cells), line)
		}
		s := seeing(runningMachine(runs), cells[1])
		if strings.Contains(cells[1], "an earlier run") {
			s.Sight.Content = changed(s.Was, cells[0]).Deployment.Digest()
		}
		was := s.Was
		if s.New {
			was = changed(deploy.Wish{Content: map[string]deploy.Text{}}, "node=uuid-1, "+runs)
		}
		p := deploy.Decide(changed(was, cells[0]), s)
		got := []string{steps(p), notices(p), counters(p)}
		if !slices.Equal(got, cells[2:]) {
			t.Errorf("wished: %s; seen: %s\n got %s\nwant %s", cells[0], cells[1], strings.Join(got, " | "), strings.Join(cells[2:], " | "))
		}
	}
}
