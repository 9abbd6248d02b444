package simulate_test

import (
	"fmt"
	"slices"
	"strconv"
)

const (
	fleetClass = "fleet"
	userSecret = "s3cret-user-data"
)

// wish is what the user of a life wants: hosts, and reservations with what runs on them. A configuration follows from it.
type wish struct {
	site  *site
	names int // so far
	hosts []*hostWish
	uses  []*useWish
	order object // rollout of all deployments; nil: none
}

type hostWish struct {
	address, name, description string
	ports                      []string
	trait, switched            bool
	secretVersion              int
	// how often the user has changed the BIOS setting, which Ironic does in a service; zero: the host has no setting
	bios  int
	freed bool // of its use since the last apply: an allocation fails while the node is undeployed
}

// useWish is an allocation, with a deployment unless it is bare.
type useWish struct {
	address, name string
	host          *hostWish // nil: any of the fleet
	note          string
	image         int
	drive, bare   bool   // with a config drive; without a deployment
	power, mode   string // power_state and power_off_mode
	ready         temper // "": it is not checked
	rebuild       int    // values of rebuild_triggers and restart_triggers
	restart       int
	replaced      bool   // a change replaces the deployment
	node          string // that the deployment reserves itself; "": an allocation does
}

// configuration returns the configuration of the wish, to be applied.
func (w *wish) configuration() configuration {
	config := configuration{}
	for _, h := range w.hosts {
		h.freed = false
		config["metal_host."+h.address] = w.serviced(h, h.settings())
	}
	for _, u := range w.uses {
		if u.node == "" {
			config["metal_allocation."+u.address] = u.allocation()
		}
		if !u.bare {
			config["metal_deployment."+u.address] = w.inOrder(u, u.deployment())
		}
	}
	return config
}

func (h *hostWish) settings() object {
	settings := object{
		"name": h.name, "driver": "fake-hardware", "resource_class": "own", "target_state": "available", "extra": object{"rack": "r1"},
		"driver_info_wo": object{"redfish_password": secret}, "driver_info_wo_version": strconv.Itoa(h.secretVersion),
	}
	if h.description != "" {
		settings["description"] = h.description
	}
	if h.trait {
		settings["traits"] = []any{"CUSTOM_FAST"}
	}
	if h.switched {
		settings["power_state"] = "off"
	}
	if len(h.ports) > 0 {
		ports := object{}
		for _, mac := range h.ports {
			ports[mac] = object{}
		}
		settings["ports"] = ports
	}
	return settings
}

func (u *useWish) allocation() object {
	settings := object{"name": u.name, "resource_class": fleetClass}
	if u.host != nil {
		settings["resource_class"] = "own"
		settings["candidate_nodes"] = []any{reference{"metal_host." + u.host.address, "id"}}
	}
	if u.note != "" {
		settings["extra"] = object{"note": u.note}
	}
	return settings
}

func (u *useWish) deployment() object {
	settings := object{
		"node_id":       reference{"metal_allocation." + u.address, "node_id"},
		"image":         imageAt(fmt.Sprintf("http://images.test/v%d", u.image)),
		"allocation_id": reference{"metal_allocation." + u.address, "id"},
	}
	if u.node != "" {
		settings["node_id"] = u.node
		delete(settings, "allocation_id")
	}
	if u.drive {
		settings["config_drive"] = object{"hostname": u.name, "user_data_wo": userSecret, "user_data_wo_version": "1"}
	}
	if u.power != "" {
		settings["power_state"] = u.power
	}
	if u.ready != "" {
		settings["ready_check"] = readyCheck(u.ready, u.name)
	}
	if u.mode != "" {
		settings["power_off_mode"] = u.mode
	}
	if u.rebuild > 0 {
		settings["rebuild_triggers"] = object{"n": fmt.Sprint(u.rebuild)}
	}
	if u.restart > 0 {
		settings["restart_triggers"] = object{"n": fmt.Sprint(u.restart)}
	}
	return settings
}

// usedBy returns the use of a host; nil if there is none.
func (w *wish) usedBy(h *hostWish) *useWish {
	for _, u := range w.uses {
		if u.host == h {
			return u
		}
	}
	return nil
}

const (
	mostHosts = 2
	mostUses  = 2
)

// change changes the wish at random, and says how.
func (w *wish) change() string {
	for {
		if said := w.tryChange(w.site.below(12)); said != "" {
			return said
		}
	}
}

// tryChange returns "" if the change is not possible now.
func (w *wish) tryChange(which int) string {
	switch which {
	case 0, 1:
		return w.addHost()
	case 2, 3, 4:
		return w.addUse()
	case 5:
		return w.removeHost()
	case 6:
		return w.removeUse()
	case 7, 8:
		return w.changeHost()
	}
	return w.changeUse()
}

func (w *wish) next(prefix string) string {
	w.names++
	return fmt.Sprintf("%s%d", prefix, w.names)
}

func (w *wish) addHost() string {
	if len(w.hosts) == mostHosts {
		return ""
	}
	h := &hostWish{address: w.next("h"), switched: w.site.below(2) == 0, trait: w.site.below(2) == 0, secretVersion: 1}
	h.name = h.address
	for range w.site.below(2) {
		h.ports = append(h.ports, fmt.Sprintf("52:54:01:00:00:%02x", w.names))
	}
	w.hosts = append(w.hosts, h)
	return "add host " + h.address
}

func (w *wish) addUse() string {
	if len(w.uses) == mostUses {
		return ""
	}
	u := &useWish{
		address: w.next("u"), image: 1, mode: w.offMode(), drive: w.site.below(3) == 0, bare: w.site.below(5) == 0,
		ready: tempers[w.site.below(len(tempers))],
	}
	u.name = u.address
	if free := slices.IndexFunc(w.hosts, func(h *hostWish) bool {
		return !h.freed && w.usedBy(h) == nil
	}); free >= 0 && w.site.below(2) == 0 {
		u.host = w.hosts[free]
	}
	u.replaced = w.order != nil && w.site.below(3) == 0
	w.uses = append(w.uses, u)
	return "add use " + u.address
}

// offMode returns a value of power_off_mode. A machine that ignores soft requests is not asked with soft, which fails then.
func (w *wish) offMode() string {
	modes := []string{"", "hard", "graceful", "graceful", "soft"}
	if w.site.fake.IgnoresSoftOff != nil {
		modes = modes[:4]
	}
	return modes[w.site.below(len(modes))]
}

func (w *wish) removeHost() string {
	if len(w.hosts) == 0 {
		return ""
	}
	h := w.hosts[w.site.below(len(w.hosts))]
	w.hosts = slices.DeleteFunc(w.hosts, func(other *hostWish) bool { return other == h })
	w.uses = slices.DeleteFunc(w.uses, func(u *useWish) bool { return u.host == h })
	return "remove host " + h.address
}

func (w *wish) removeUse() string {
	if len(w.uses) == 0 {
		return ""
	}
	u := w.uses[w.site.below(len(w.uses))]
	if u.host != nil {
		u.host.freed = true
	}
	w.uses = slices.DeleteFunc(w.uses, func(other *useWish) bool { return other == u })
	return "remove use " + u.address
}

func (w *wish) changeHost() string {
	if len(w.hosts) == 0 {
		return ""
	}
	h := w.hosts[w.site.below(len(w.hosts))]
	switch w.site.below(5) {
	case 0:
		h.description = w.next("description ")
	case 1:
		h.name = w.next("renamed")
	case 2:
		h.trait = !h.trait
	case 3:
		h.secretVersion++
	default:
		if len(h.ports) > 0 {
			h.ports = nil
		} else {
			w.names++
			h.ports = []string{fmt.Sprintf("52:54:01:00:01:%02x", w.names)}
		}
	}
	return "change host " + h.address
}

func (w *wish) changeUse() string {
	if len(w.uses) == 0 {
		return ""
	}
	u := w.uses[w.site.below(len(w.uses))]
	switch w.site.below(9) {
	case 0, 1:
		u.image++
	case 2:
		u.drive = !u.drive
	case 3:
		u.bare = !u.bare
	case 4:
		u.note = w.next("note ")
	case 5:
		u.rebuild++
	case 6, 7:
		u.restart++
		u.mode = w.offMode()
	case 8:
		u.ready = tempers[w.site.below(len(tempers))]
	default:
		u.power = []string{"on", "off"}[w.site.below(2)]
	}
	return "change use " + u.address
}
