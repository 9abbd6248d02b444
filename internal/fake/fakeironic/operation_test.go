package fakeironic_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

func TestOperation_eachStateLastsOneStepTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, &fakeironic.Server{StepTime: time.Hour})
		uuid := a.node("n1", nil)
		step := func(verb string, states ...string) {
			t.Helper()
			a.provision(uuid, verb)
			for _, want := range states[:len(states)-1] {
				if got := a.state(uuid, want); got["reservation"] != "localhost" || got["target_provision_state"] == nil {
					t.Errorf("%s: reservation %v, target %v; want both set", want, got["reservation"], got["target_provision_state"])
				}
				time.Sleep(time.Hour)
			}
			if got := a.state(uuid, states[len(states)-1]); got["reservation"] != nil || got["target_provision_state"] != nil {
				t.Errorf("%s: reservation %v, target %v; want none", got["provision_state"], got["reservation"],
					got["target_provision_state"])
			}
		}
		step("manage", "verifying", "manageable")
		step("inspect", "inspecting", "manageable")
		step("provide", "cleaning", "available")
		step("active", "deploying", "active")
		step("deleted", "deleting", "cleaning", "available")
		step("manage", "manageable")
	})
}

func TestOperation_holdKeepsNodesUntilReleased(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	a := newAPI(t, fake)
	uuid := a.node("n1", nil)
	release := fake.Hold("deploying", "cleaning")
	a.provision(uuid, "manage")
	a.state(uuid, "manageable") // the hold does not concern verifying
	a.provision(uuid, "provide")
	a.state(uuid, "cleaning")
	a.state(uuid, "cleaning")
	again := fake.Hold()
	release()
	release()
	a.state(uuid, "cleaning") // another hold keeps it
	again()
	a.state(uuid, "available")
	a.provision(uuid, "active")
	a.state(uuid, "active")
}

func TestOperation_holdKeepsPowerChanges(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	a := newAPI(t, fake)
	uuid := a.active("n1", nil)
	release := fake.Hold("power on")
	a.power(uuid, "power on")
	if got := a.state(uuid, "active"); got["target_power_state"] != "power on" || got["power_state"] != "power off" {
		t.Errorf("power_state = %v, target %v; want off, and on", got["power_state"], got["target_power_state"])
	}
	release()
	if got := a.state(uuid, "active"); got["target_power_state"] != nil || got["power_state"] != "power on" {
		t.Errorf("power_state = %v, target %v; want on, and none", got["power_state"], got["target_power_state"])
	}
}

func TestOperation_heldDeploymentCanBeUndeployed(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	a := newAPI(t, fake)
	uuid := a.available("n1", map[string]any{"deploy_interface": "direct", "instance_info": map[string]any{
		"image_source": "http://images/a.qcow2", "image_checksum": "abc",
	}})
	release := fake.Hold("wait call-back")
	a.provision(uuid, "active")
	a.state(uuid, "wait call-back")
	a.provision(uuid, "deleted")
	a.state(uuid, "available")
	release()
	a.state(uuid, "available")
}

func TestOperation_eventsKeepTheirTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, &fakeironic.Server{StepTime: time.Hour})
		uuid := a.node("n1", nil)
		a.provision(uuid, "manage")
		done := time.Now().Add(time.Hour)
		time.Sleep(100 * time.Hour)
		stamp, _ := a.state(uuid, "manageable")["provision_updated_at"].(string)
		got, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil || !got.Equal(done.UTC().Truncate(time.Microsecond)) {
			t.Errorf("provision_updated_at = %s (%v), want %s", stamp, err, done)
		}
	})
}

func TestOperation_directDeployWaitsUnlocked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, &fakeironic.Server{StepTime: time.Hour})
		uuid := a.node("n1", map[string]any{"deploy_interface": "direct", "instance_info": map[string]any{
			"image_source": "http://images/a.qcow2", "image_checksum": "abc",
		}})
		a.fake.Set(uuid, "provision_state", "available")
		a.provision(uuid, "active")
		time.Sleep(time.Hour)
		if got := a.state(uuid, "wait call-back"); got["reservation"] != nil {
			t.Errorf("reservation = %v while waiting, want none", got["reservation"])
		}
		a.refused(http.StatusBadRequest, "can not be performed", http.MethodPut, provisionPath(uuid), requestOf("active"))
		a.refused(http.StatusConflict, "state transition is in progress", http.MethodPatch, "/v1/nodes/"+uuid, patch("add", "/extra/a", 1))
		time.Sleep(2 * time.Hour)
		if got := a.state(uuid, "active"); got["power_state"] != "power on" {
			t.Errorf("power_state = %v, want power on", got["power_state"])
		}
	})
}

func TestOperation_locksTheNode(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{StepTime: time.Hour})
	uuid := a.node("n1", nil)
	path := "/v1/nodes/" + uuid
	a.fake.Set(uuid, "provision_state", "available")
	a.provision(uuid, "active")
	locked := "Node " + uuid + " is locked by host localhost, please retry after the current operation is completed."
	a.refused(http.StatusConflict, locked, http.MethodPut, provisionPath(uuid), requestOf("active"))
	a.refused(http.StatusConflict, locked, http.MethodPut, provisionPath(uuid), requestOf("deleted"))
	a.refused(http.StatusConflict, locked, http.MethodDelete, path, nil)
	a.refused(http.StatusConflict, locked, http.MethodPut, path+"/states/power", map[string]any{"target": "power on"})
	a.refused(http.StatusConflict, locked, http.MethodPut, path+"/traits", map[string]any{"traits": []string{}})
	a.refused(http.StatusConflict, locked, http.MethodPost, "/v1/ports", map[string]any{"address": "52:54:00:00:00:01", "node_uuid": uuid})
	a.refused(http.StatusConflict, "Node "+uuid+" can not be updated while a state transition is in progress.", http.MethodPatch, path,
		patch("add", "/extra/a", 1))
}

func TestOperation_failureKeepsTheTarget(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, verb, state string
		target            any
	}{
		{"enroll", "manage", "enroll", nil},
		{"manageable", "provide", "clean failed", "available"},
		{"manageable", "clean", "clean failed", "manageable"},
		{"manageable", "inspect", "inspect failed", "manageable"},
		{"manageable", "adopt", "adopt failed", "active"},
		{"available", "active", "deploy failed", "active"},
		{"active", "rebuild", "deploy failed", "active"},
		{"active", "deleted", "error", "available"},
		{"active", "rescue", "rescue failed", "rescue"},
		{"active", "service", "service failed", "active"},
	} {
		asked := ""
		fake := &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
			asked = verb
			return "the hardware is on fire"
		}}
		a := newAPI(t, fake)
		uuid := a.node("n1", map[string]any{"instance_info": map[string]any{"image_source": "http://images/a"}})
		a.fake.Set(uuid, "provision_state", tt.from)
		a.must(http.StatusAccepted, http.MethodPut, provisionPath(uuid), requestOf(tt.verb))
		got := a.state(uuid, tt.state)
		if got["target_provision_state"] != tt.target || got["last_error"] != "the hardware is on fire" || asked != tt.verb {
			t.Errorf("%s failed: target %v, last_error %v, verb %q; want %v, the error, %q", tt.verb, got["target_provision_state"],
				got["last_error"], asked, tt.target, tt.verb)
		}
	}
}

func TestOperation_unlockDelayShowsTheFinalStateFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, &fakeironic.Server{UnlockDelay: time.Second, Fail: func(fakeironic.Node, string) string { return "no luck" }})
		uuid := a.node("n1", nil)
		a.fake.Set(uuid, "provision_state", "manageable")
		a.provision(uuid, "provide")
		if got := a.state(uuid, "clean failed"); got["reservation"] != "localhost" || got["last_error"] != nil {
			t.Errorf("at first reservation %v, last_error %v; want the lock and no error yet", got["reservation"], got["last_error"])
		}
		a.refused(http.StatusConflict, "is locked by host", http.MethodPut, provisionPath(uuid), requestOf("manage"))
		time.Sleep(time.Second)
		if got := a.state(uuid, "clean failed"); got["reservation"] != nil || got["last_error"] != "no luck" {
			t.Errorf("later reservation %v, last_error %v; want no lock and the error", got["reservation"], got["last_error"])
		}
	})
}

func TestOperation_withoutItsConductorStaysInItsState(t *testing.T) {
	t.Parallel()
	for newest, forgets := range map[string]bool{"": true, "1.82": false} {
		synctest.Test(t, func(t *testing.T) {
			a := newAPI(t, &fakeironic.Server{MaxMicroversion: newest, Abandons: func(fakeironic.Node, string) bool { return true }})
			uuid := a.node("n1", nil)
			a.fake.Set(uuid, "provision_state", "manageable")
			a.provision(uuid, "provide")
			got := a.state(uuid, "cleaning")
			if text, _ := got["last_error"].(string); got["reservation"] != nil || !strings.HasPrefix(text, "Async execution of") {
				t.Errorf("%s: reservation %v, last_error %v; want no lock and the error", newest, got["reservation"], got["last_error"])
			}
			time.Sleep(time.Hour)
			if got := a.state(uuid, "cleaning"); (got["last_error"] == nil) != forgets {
				t.Errorf("%s: an hour later last_error is %v", newest, got["last_error"])
			}
		})
	}
}

func TestOperation_clearsLastError(t *testing.T) {
	t.Parallel()
	fails := true
	a := newAPI(t, &fakeironic.Server{Fail: func(fakeironic.Node, string) string {
		if fails {
			return "no luck"
		}
		return ""
	}})
	uuid := a.node("n1", nil)
	a.fake.Set(uuid, "provision_state", "manageable")
	a.provision(uuid, "provide")
	a.state(uuid, "clean failed")
	a.provision(uuid, "manage")
	if got := a.state(uuid, "manageable"); got["last_error"] != "no luck" {
		t.Errorf("last_error after manage = %v, want it kept", got["last_error"])
	}
	fails = false
	a.provision(uuid, "provide")
	if got := a.state(uuid, "available"); got["last_error"] != nil {
		t.Errorf("last_error = %v, want none", got["last_error"])
	}
}

func TestOperation_fakeInspectionFindsNothing(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.node("n1", nil)
	a.fake.Set(uuid, "provision_state", "manageable")
	a.provision(uuid, "inspect")
	if got := a.state(uuid, "manageable"); got["inspection_finished_at"] == nil || got["inspection_started_at"] != nil {
		t.Errorf("inspection finished %v, started %v; want only the first", got["inspection_finished_at"], got["inspection_started_at"])
	}
	a.refused(http.StatusNotFound, "Node inventory record for node", http.MethodGet, "/v1/nodes/n1/inventory", nil)
	a.fake.SetInventory("n1", map[string]any{"hostname": "h"}, nil)
	inventory, _ := a.must(http.StatusOK, http.MethodGet, "/v1/nodes/n1/inventory", nil)["inventory"].(map[string]any)
	if inventory["hostname"] != "h" {
		t.Errorf("inventory = %v", inventory)
	}
}

func TestOperation_concurrencyLimit(t *testing.T) {
	t.Parallel()
	for version, status := range map[string]int{"1.82": http.StatusInternalServerError, "1.115": http.StatusServiceUnavailable} {
		fake := &fakeironic.Server{MaxMicroversion: version, StepTime: time.Hour, MaxConcurrentDeploy: 1, MaxConcurrentClean: 1}
		fake.AddFleet(4, "baremetal")
		for i, state := range []string{"available", "available", "active", "active"} {
			fake.Set(fmt.Sprintf("node-%03d", i), "provision_state", state)
		}
		a := newAPI(t, fake)
		a.provision("node-000", "active")
		a.refused(status, "The concurrent action limit for provisioning has been reached.", http.MethodPut, provisionPath("node-001"),
			requestOf("active"))
		a.provision("node-002", "deleted")
		a.refused(status, "The concurrent action limit for unprovisioning has been reached.", http.MethodPut, provisionPath("node-003"),
			requestOf("deleted"))
		if n, _ := fake.Node("node-001"); n.ProvisionState != "available" || n.LastError != "" {
			t.Errorf("refused node is %s with error %q, want it untouched", n.ProvisionState, n.LastError)
		}
	}
}

func TestServer_maxBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeironic.Server{StepTime: time.Hour}
		fake.AddFleet(5, "baremetal")
		a := newAPI(t, fake)
		for i := range 3 {
			a.provision(fmt.Sprintf("node-%03d", i), "active")
		}
		time.Sleep(time.Hour)
		a.provision("node-003", "active")
		if got := fake.MaxBusy(); got != 3 {
			t.Errorf("MaxBusy = %d, want 3", got)
		}
		if got := fake.MaxBusy("cleaning"); got != 0 {
			t.Errorf(`MaxBusy("cleaning") = %d, want 0`, got)
		}
		if got := fake.Walk("node-000"); !slices.Equal(got, []string{"available", "deploying", "active"}) {
			t.Errorf("Walk = %v", got)
		}
	})
}

// What the history tells depends on the version of the API, and on detail. Ironic 39 also has the steps of cleanings and deployments.
func TestOperation_history(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ highest, asked, want, last string }{
		{"1.82", "1.82", "cleaning", "uuid created_at severity event_type event conductor user links"},
		{
			"", "1.112", "cleaning automated_cleaning_start automated_cleaning_end deployment_start deployment_end",
			"uuid created_at severity event_type event conductor user links",
		},
		{
			"", "1.115", "cleaning automated_cleaning_start automated_cleaning_end deployment_start deployment_end",
			"uuid created_at severity event_type event conductor user project state target_provision_state duration_seconds links",
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			long := strings.Repeat("x", 300)
			fake := &fakeironic.Server{
				StepTime: time.Minute, MaxMicroversion: tt.highest,
				Fail: func(_ fakeironic.Node, verb string) string { return map[string]string{"clean": long}[verb] },
			}
			a := newAPI(t, fake).at(tt.asked)
			uuid := a.node("n1", nil)
			for _, verb := range []string{"manage", "clean", "manage", "provide", "active"} {
				body := map[string]any{"target": verb}
				if verb == "clean" {
					body["clean_steps"] = []any{map[string]any{"interface": "deploy", "step": "erase_devices"}}
				}
				if got := a.do(http.MethodPut, "/v1/nodes/"+uuid+"/states/provision", body); got.status != http.StatusAccepted {
					t.Fatalf("%s: %+v", verb, got)
				}
				time.Sleep(time.Hour)
			}
			var kinds []string
			history := a.history(uuid, "?detail=true")
			for _, entry := range history {
				kinds = append(kinds, fmt.Sprint(entry["event_type"]))
			}
			if got := strings.Join(slices.DeleteFunc(kinds, func(kind string) bool {
				return strings.HasPrefix(kind, "manual")
			}), " "); got != tt.want {
				t.Errorf("%s: events %s, want %s", tt.asked, got, tt.want)
			}
			last := history[len(history)-1]
			if want := strings.Fields(tt.last); len(last) != len(want) || slices.ContainsFunc(want, func(field string) bool {
				_, has := last[field]
				return !has
			}) {
				t.Errorf("%s: an entry is %v, want the fields %s", tt.asked, last, tt.last)
			}
			if tt.asked == "1.115" && (last["state"] != "deploying" || last["target_provision_state"] != "active" ||
				last["duration_seconds"] != 60.0) {
				t.Errorf("the end of the deployment is %v", last)
			}
			for _, entry := range a.history(uuid, "") {
				if len(entry) != 5 || len(fmt.Sprint(entry["event"])) > 254 {
					t.Errorf("without detail an entry is %v", entry)
				}
			}
		})
	}
}

// history returns the entries of the history of a node.
func (a *api) history(uuid, query string) (all []map[string]any) {
	a.t.Helper()
	for _, item := range list(a.t, a.must(http.StatusOK, http.MethodGet, "/v1/nodes/"+uuid+"/history"+query, nil), "history") {
		entry, ok := item.(map[string]any)
		if !ok {
			a.t.Fatalf("an entry is %v", item)
		}
		all = append(all, entry)
	}
	return all
}

// A service has fewer steps than a cleaning.
func TestOperation_stepsOfAService(t *testing.T) {
	t.Parallel()
	for step, ends := range map[string]string{
		"raid.create_configuration": "service failed", "bios.factory_reset": "active",
		"firmware.update": "active",
	} {
		a := newAPI(t, &fakeironic.Server{})
		uuid := a.node("n1", map[string]any{"driver": "redfish", "raid_interface": "redfish"})
		a.must(http.StatusNoContent, http.MethodPut, "/v1/nodes/"+uuid+"/states/raid",
			map[string]any{"logical_disks": []any{map[string]any{"raid_level": "1", "size_gb": "MAX"}}})
		a.fake.Set(uuid, "provision_state", "active")
		kind, name, _ := strings.Cut(step, ".")
		a.must(http.StatusAccepted, http.MethodPut, provisionPath(uuid),
			map[string]any{"target": "service", "service_steps": []any{map[string]any{"interface": kind, "step": name}}})
		a.state(uuid, ends)
	}
}
