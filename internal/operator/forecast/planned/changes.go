package planned

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/forecast"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
)

const (
	available  = "available" // the target state before which Ironic cleans a machine
	switchedOn = "on"        // the power state
)

// configured are the attributes of a host that a manual cleaning applies.
var configured = []string{"bios_settings", "raid", "firmware"}

// bootSettings are the attributes of a host for which Ironic restarts the machine.
var bootSettings = []string{"boot_mode", "secure_boot"}

// host adds what happens to the machine of a host that is created or changed. A machine that is to be on is switched on at the end, because
// a cleaning leaves it off.
func (r *reader) host(s *planned, before, after, unknown values) {
	s.Machine, s.Prepares = r.hostMachine(s.Address, before, after), true
	on := after.text("power_state") == switchedOn
	if before == nil || s.change.Change.Actions.Replace() {
		r.newHost(s, after)
	} else {
		r.changedHost(s, before, after, unknown)
		offAfter := func(leg forecast.Leg) bool { return !slices.Contains(leg, forecast.Service) }
		on = on && (slices.ContainsFunc(s.Legs, offAfter) || before.text("power_state") != switchedOn)
	}
	if on {
		s.Legs = append(s.Legs, forecast.Leg{forecast.PowerOn})
	}
	for _, leg := range s.Legs {
		if !slices.Contains(leg, forecast.Verify) {
			s.Does += ", " + strings.ReplaceAll(string(leg[0]), "-", " ")
		}
	}
}

func (r *reader) newHost(s *planned, after values) {
	s.Does, s.Machine.New = "enroll", s.change.Change.Importing == nil
	if s.Machine.New {
		s.Legs = append(s.Legs, forecast.Leg{forecast.Verify})
	}
	has := func(name string) bool { return after[name] != nil }
	if slices.ContainsFunc(bootSettings, has) {
		s.Legs = append(s.Legs, forecast.Leg{forecast.PowerOn})
	}
	if after.text("target_state") == "enroll" {
		return
	}
	if inspects, _ := after["inspect"].(bool); inspects {
		s.Legs = append(s.Legs, forecast.Leg{forecast.Inspect})
	}
	if slices.ContainsFunc(configured, has) {
		s.Legs = append(s.Legs, forecast.Leg{forecast.Clean})
	}
	if after.text("target_state") == available {
		clean(s, after)
	}
}

func (r *reader) changedHost(s *planned, before, after, unknown values) {
	rises, mayBe := raises(before, after, unknown, "cleanings")
	if s.Does = "update"; !rises {
		return
	}
	s.Does, s.MayBe = "prepare", mayBe
	if isServiced(before, after) {
		s.Prepares, s.Legs = false, []forecast.Leg{{forecast.Service}}
		s.Turn = r.turn(rollout.Service, valuesOf(after["hardware_changes"]), serviceContent(after))
		return
	}
	differs := func(name string) bool { return before.differs(after, unknown, name) }
	boots := slices.ContainsFunc(bootSettings, differs)
	if boots {
		s.Legs = append(s.Legs, forecast.Leg{forecast.PowerOn})
	}
	prepares := false
	if differs("inspect_triggers") || differs("inspect") {
		prepares, s.Legs = true, append(s.Legs, forecast.Leg{forecast.Inspect})
	}
	if slices.ContainsFunc(configured, differs) {
		prepares, s.Legs = true, append(s.Legs, forecast.Leg{forecast.Clean})
	}
	if prepares && after.text("target_state") == available || !prepares && (!boots || differs("target_state")) {
		clean(s, after)
	}
}

// isServiced reports whether Ironic changes the hardware settings of a host in a service: something is deployed on its machine.
func isServiced(before, after values) bool {
	runs := slices.Contains([]string{"active", "servicing", "service wait", "service failed"}, before.text("provision_state"))
	return runs && valuesOf(after["hardware_changes"]).text("on_active") == "service"
}

// serviceContent identifies what a host gets in a service.
func serviceContent(host values) string {
	text, _ := json.Marshal([]any{host["bios_settings"], host["firmware"]})
	return string(text)
}

func clean(s *planned, host values) {
	if automated, is := host["automated_clean"].(bool); !is || automated {
		s.Legs = append(s.Legs, forecast.Leg{forecast.Clean})
	}
}

func (r *reader) hostMachine(address string, before, after values) *forecast.Target {
	id := cmp.Or(after.text("id"), before.text("id"))
	m := r.machines[address]
	if m == nil {
		m = r.nodeOf(cmp.Or(id, address))
	}
	r.machines[address] = m
	if name := after.text("name"); name != "" {
		r.machines[name] = m
	}
	describe(m, after)
	return m
}

// undeploy adds what happens to the machine of a deployment that is destroyed. after is that of its replacement.
func (r *reader) undeploy(s *planned, before, after values) {
	s.Machine = r.nodeOf(cmp.Or(before.text("id"), before.text("node_id")))
	s.Machine.Name = cmp.Or(before.text("node_name"), s.Machine.Name)
	if before.text("on_destroy") == "forget" {
		s.Does, s.Machine = "forget", nil
		return
	}
	s.Does = "undeploy, clean"
	s.Legs = []forecast.Leg{{forecast.Undeploy, forecast.Clean}}
	if s.change.Change.Actions.Replace() {
		s.Turn = r.turn(rollout.Replacement, after, contentOf(after))
		s.Turn.Node = after.text("node_id")
	}
}

// deploy adds what happens to the machine of a deployment that is created or changed.
func (r *reader) deploy(s *planned, before, after, unknown values) {
	s.Does = "update"
	s.Attempts = after.number("max_attempts")
	created := before == nil || s.change.Change.Actions.Replace()
	if created {
		s.Machine = r.deployed(s, after)
		if adopts, _ := after["adopt"].(bool); adopts || s.change.Change.Importing != nil {
			s.Does = "adopt"
			return
		}
		s.Does, s.Legs = "deploy", []forecast.Leg{{forecast.Deploy}}
		s.Turn = r.turn(rollout.FirstDeployment, after, contentOf(after))
		s.Turn.Node = after.text("node_id")
		return
	}
	s.Machine = r.nodeOf(cmp.Or(before.text("id"), before.text("node_id")))
	s.Machine.Name = cmp.Or(before.text("node_name"), s.Machine.Name)
	rebuilds, mayRebuild := raises(before, after, unknown, "rebuilds")
	restarts, mayRestart := raises(before, after, unknown, "restarts")
	switch {
	case rebuilds:
		s.Does, s.MayBe, s.Legs = "rebuild", mayRebuild, []forecast.Leg{{forecast.Deploy}}
		s.Turn = r.turn(rollout.Rebuild, after, contentOf(after))
	case restarts:
		s.Does, s.MayBe, s.Legs = "restart", mayRestart, []forecast.Leg{{forecast.Restart}}
		s.Turn = r.turn(rollout.Restart, after, contentOf(after))
	case after.text("power_state") == switchedOn && before.text("power_state") != switchedOn:
		s.Does, s.Legs = "power on", []forecast.Leg{{forecast.PowerOn}}
		if after["ready_check"] != nil {
			s.Legs = []forecast.Leg{{forecast.Restart}}
		}
	}
}

// deployed returns the machine of a new deployment. If its node is not known yet, the host or the allocation that it refers to says more.
func (r *reader) deployed(s *planned, after values) *forecast.Target {
	if ref := after.text("node_id"); ref != "" {
		return r.nodeOf(ref)
	}
	where := r.blocks.of(s.change)
	for _, on := range where.refersTo("node_id") {
		for _, address := range []string{on.instance, on.resource + keyOf(s.Address), on.resource} {
			c := r.changeOf(address)
			if c == nil || c.Change == nil {
				continue
			}
			switch c.Type {
			case "metal_host":
				return r.hostMachine(c.Address, valuesOf(c.Change.Before), valuesOf(c.Change.After))
			case "metal_allocation", "metal_allocation_group":
				return r.unknown(s.Address, c.Address, valuesOf(c.Change.After).text("resource_class"))
			}
		}
		if class := r.classOf(on.resource); class != "" {
			return r.unknown(s.Address, on.resource, class)
		}
	}
	return r.unknown(s.Address, "another value", "")
}

// unknown is the machine of a deployment whose node is not known before the apply.
func (r *reader) unknown(address, of, class string) *forecast.Target {
	m := &forecast.Target{Class: class, Unknown: "known after apply, from " + of}
	m.ID, m.Name = address, "(known after apply)"
	return m
}

// classOf returns the class of all instances of a resource; "" if they differ.
func (r *reader) classOf(resource string) (class string) {
	for _, c := range r.plan.ResourceChanges {
		if resourceOf(c.Address) != resource || c.Change == nil {
			continue
		}
		of := valuesOf(c.Change.After).text("resource_class")
		if class != "" && class != of {
			return ""
		}
		class = of
	}
	return class
}

// turn returns what a rollout asks for, with the defaults of the provider block. of has the attribute rollout.
func (r *reader) turn(change rollout.Change, of values, content string) *forecast.Turn {
	s := rollout.Settings{}
	if v := valuesOf(of["rollout"]); v != nil {
		s = settingsOf(v)
	}
	return &forecast.Turn{Settings: s.Or(r.settings.Rollout), Change: change, Content: content}
}

func settingsOf(v values) rollout.Settings {
	s := rollout.Settings{Group: v.text("group"), MaxUnavailable: v.number("max_unavailable")}
	s.Pause, _ = time.ParseDuration(v.text("pause")) // the provider has checked it
	for name, to := range map[string]**int{"canary": &s.Canary, "max_failures": &s.MaxFailures} {
		if v[name] != nil {
			n := v.number(name)
			*to = &n
		}
	}
	return s
}

// contentOf identifies what a deployment writes or boots, as package deploy does; "": not known.
func contentOf(after values) string {
	if image := valuesOf(after["image"]); image.text("url") != "" {
		return image.text("url") + " " + image.text("checksum")
	}
	if iso := valuesOf(after["live_iso"]); iso != nil {
		return bootiso.Artifacts{URL: iso.text("url"), Version: iso.text("version")}.Identity()
	}
	return ""
}
