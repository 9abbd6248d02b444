package simulate_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// trouble is what happens during one run of a life.
type trouble struct {
	kill     int           // at which request of the apply; 0: never
	byMoment bool          // kill counts moments, and not requests
	at       string        // the verb before which the process is killed; "": kill says when
	after    bool          // after the request was executed
	lost     bool          // the last states are lost, too
	stop     time.Duration // when the user presses Ctrl-C; 0: never
	faults   bool          // a tenth of the requests meets a fault
	others   bool          // other clients change machines
	restart  bool          // the conductor restarts
	answers  bool          // some requests that change something lose their answers
	mute     bool          // no machine answers its ready check
	lists    bool          // many lists lack objects, or are old
	outage   time.Duration // requests get no answer for so long
	alone    bool          // those of this workspace
	jumps    bool          // the clock of an API host differs, and jumps
	forged   bool          // another client makes up notes
	slow     time.Duration // what answers take at most
	work     bool          // Ironic fails to execute something that it has accepted
}

// calm reports whether nothing disturbs Ironic, so that the run may not fail.
func (d trouble) calm() bool {
	return !d.faults && !d.others && !d.restart && !d.answers && !d.work && !d.mute && !d.lists && d.outage == 0
}

// trouble chooses what happens during a run.
func (s *site) trouble() (d trouble) {
	switch s.only {
	case onlyLists:
		return trouble{lists: true}
	case onlyWeather:
		return s.badWeather()
	}
	switch s.below(9) {
	case 0, 1:
		d.kill, d.after, d.lost = 1+s.below(30), s.below(2) == 0, s.below(3) == 0
	case 2:
		d.stop = time.Duration(1 + s.below(int(3*s.fake.StepTime)))
	case 3:
		d.faults = true
	case 4:
		d.others = true
	case 5:
		d.restart = true
	case 6:
		d.kill, d.after, d.faults = 1+s.below(60), s.below(2) == 0, true
	case 7:
		d.mute = true
	}
	return d
}

// faultOf chooses the fault of a request: none for nine of ten.
func (s *site) faultOf(*http.Request) *fault {
	if s.below(10) > 0 {
		return nil
	}
	html := http.Header{"Content-Type": {"text/html"}}
	plain := http.Header{"Content-Type": {"application/json"}}
	locked := `{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"Node is locked by host localhost, please retry after the current operation is completed.\", \"debuginfo\": null}"}`
	return []*fault{
		{name: "503", with: &fakeironic.Rejection{Status: http.StatusServiceUnavailable, Header: plain, Body: "{}"}},
		{name: "dropped"},
		{name: "dropped", after: true},
		{name: "504", after: true, with: &fakeironic.Rejection{
			Status: http.StatusGatewayTimeout, Header: html,
			Body: "<html>504 Gateway Time-out</html>",
		}},
		{name: "502 HTML", with: &fakeironic.Rejection{Status: http.StatusBadGateway, Header: html, Body: "<html>502 Bad Gateway</html>"}},
		{name: "409 locked", with: &fakeironic.Rejection{Status: http.StatusConflict, Header: plain, Body: locked}},
		{name: "slow", delay: time.Duration(1+s.below(40)) * time.Second},
	}[s.below(7)]
}

// resumed are the states in which nodes are after a conductor has restarted that worked on them.
var resumed = map[string]string{
	"deploying": "deploy failed", "wait call-back": "deploy failed", "cleaning": "clean failed", "clean wait": "clean failed",
	"deleting":   "error",
	"inspecting": "inspect failed", "verifying": "enroll", "adopting": "adopt failed", "rescuing": "rescue failed",
	"unrescuing": "unrescue failed",
	"servicing":  "service failed",
}

// restartConductor lets all operations in progress fail.
func (s *site) restartConductor() {
	for _, n := range s.fake.Nodes() {
		to := resumed[n.ProvisionState]
		if to == "" {
			continue
		}
		s.tell("the conductor restarts: %s falls from %s to %s", n.Name, n.ProvisionState, to)
		s.fake.Set(n.UUID, "provision_state", to)
		s.fake.Set(n.UUID, "last_error", "The "+n.ProvisionState+" state can't be resumed by conductor localhost. Moving to fail state.")
		if to == "clean failed" { // as when a cleaning fails
			s.fake.Set(n.UUID, "maintenance", true)
			s.fake.Set(n.UUID, "fault", "clean failure")
			s.fake.Set(n.UUID, "target_provision_state", "available")
		}
	}
}

// meddle lets another client change a machine.
func (s *site) meddle(t *testing.T) {
	t.Helper()
	nodes := s.fake.Nodes()
	if len(nodes) == 0 {
		return
	}
	n := nodes[s.below(len(nodes))]
	path := "nodes/" + n.UUID
	var status int
	what := ""
	switch s.below(6) {
	case 0:
		what = "sets maintenance"
		status, _ = s.call(t, http.MethodPut, path+"/maintenance", object{"reason": "a disk is replaced"})
	case 1:
		what = "switches on"
		status, _ = s.call(t, http.MethodPut, path+"/states/power", object{"target": "power on"})
	case 2:
		what = "switches off"
		status, _ = s.call(t, http.MethodPut, path+"/states/power", object{"target": "power off"})
	case 3:
		what = "writes extra and description"
		status, _ = s.call(t, http.MethodPatch, path, []object{
			{"op": "add", "path": "/extra/foreign", "value": "kept"}, {"op": "add", "path": "/description", "value": "foreign"},
		})
	case 4:
		what = "undeploys"
		status, _ = s.call(t, http.MethodPut, path+"/states/provision", object{"target": "deleted"})
	case 5:
		what = "makes manageable"
		status, _ = s.call(t, http.MethodPut, path+"/states/provision", object{"target": "manage"})
	}
	s.tell("another client %s: %s -> %d", what, n.Name, status)
}

// repair lets the operator end the trouble: machines leave maintenance, and those of the fleet become available.
func (s *site) repair(t *testing.T) {
	t.Helper()
	<-time.After(3 * s.fake.StepTime) // until Ironic has ended what others have begun
	for _, n := range s.fake.Nodes() {
		if n.Maintenance {
			s.call(t, http.MethodDelete, "nodes/"+n.UUID+"/maintenance", nil)
		}
		if n.ProvisionState == "manageable" && n.InstanceUUID != "" { // made so by another client
			s.fake.Set(n.UUID, "provision_state", "available")
		}
		if n.ResourceClass != fleetClass || n.InstanceUUID != "" ||
			n.Raw["extra"].(object)["terraform_metal_allocation"] != nil {
			continue
		}
		if n.ProvisionState == "error" {
			s.call(t, http.MethodPut, "nodes/"+n.UUID+"/states/provision", object{"target": "deleted"})
		}
		if n.ProvisionState == "clean failed" {
			s.call(t, http.MethodPut, "nodes/"+n.UUID+"/states/provision", object{"target": "manage"})
		}
		if n.ProvisionState == "clean failed" || n.ProvisionState == "manageable" {
			status, _ := s.call(t, http.MethodPut, "nodes/"+n.UUID+"/states/provision", object{"target": "provide"})
			s.tell("the operator makes %s available: %d", n.Name, status)
		}
	}
	<-time.After(4 * s.fake.StepTime)
}
