package fakeironic_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

// allowed is the state machine as an operator sees it: what can be asked in which state of Ironic 39, and where it leads.
// It is a second writing of the rules, to be read against Ironic's documentation.
var allowed = map[string]map[string]string{
	"enroll":          {"manage": "verifying"},
	"manageable":      {"provide": "cleaning", "clean": "cleaning", "inspect": "inspecting", "adopt": "adopting"},
	"available":       {"active": "deploying", "deploy": "deploying", "manage": "manageable"},
	"wait call-back":  {"deleted": "deleting", "undeploy": "deleting", "abort": "deploy failed"},
	"active":          {"deleted": "deleting", "undeploy": "deleting", "rebuild": "deploying", "rescue": "rescuing", "service": "servicing"},
	"deploy failed":   {"active": "deploying", "deploy": "deploying", "rebuild": "deploying", "deleted": "deleting", "undeploy": "deleting"},
	"error":           {"rebuild": "deploying", "deleted": "deleting", "undeploy": "deleting"},
	"clean wait":      {"abort": "clean failed"},
	"clean failed":    {"manage": "manageable"},
	"inspect wait":    {"abort": "inspect failed"},
	"inspect failed":  {"inspect": "inspecting", "manage": "manageable"},
	"adopt failed":    {"adopt": "adopting", "manage": "manageable"},
	"rescue":          {"rescue": "rescuing", "unrescue": "unrescuing", "deleted": "deleting", "undeploy": "deleting"},
	"rescue wait":     {"abort": "rescue failed", "deleted": "deleting", "undeploy": "deleting"},
	"rescue failed":   {"rescue": "rescuing", "unrescue": "unrescuing", "deleted": "deleting", "undeploy": "deleting"},
	"unrescue failed": {"rescue": "rescuing", "unrescue": "unrescuing", "deleted": "deleting", "undeploy": "deleting"},
	"service wait":    {"abort": "service failed", "deleted": "deleting", "undeploy": "deleting"},
	"service failed":  {"service": "servicing", "rescue": "rescuing", "deleted": "deleting", "undeploy": "deleting", "abort": "active"},
	"service hold":    {"abort": "service failed", "unhold": "servicing"},
	"clean hold":      {"abort": "clean failed", "unhold": "cleaning"},
	"deploy hold":     {"abort": "deploy failed", "unhold": "deploying"},
	"deploying":       {}, "cleaning": {}, "deleting": {}, "verifying": {}, "inspecting": {}, "adopting": {}, "rescuing": {}, "unrescuing": {}, "servicing": {},
}

var verbs = []string{
	"manage", "provide", "inspect", "active", "deploy", "deleted", "undeploy", "rebuild", "clean", "abort", "adopt", "rescue", "unrescue", "service",
	"unhold", "bogus",
}

// requestOf is a complete request for a verb.
func requestOf(target string) map[string]any {
	body := map[string]any{"target": target}
	switch target {
	case "clean":
		body["clean_steps"] = []any{map[string]any{"interface": "bios", "step": "factory_reset"}}
	case "service":
		body["service_steps"] = []any{map[string]any{"interface": "bios", "step": "factory_reset"}}
	case "rescue":
		body["rescue_password"] = "geheim"
	}
	return body
}

func TestStateMachine(t *testing.T) {
	t.Parallel()
	for from, targets := range allowed {
		for _, target := range verbs {
			a := newAPI(t, &fakeironic.Server{StepTime: time.Hour})
			uuid := a.node("n1", map[string]any{"instance_info": map[string]any{"image_source": "http://images/a"}})
			a.fake.Set(uuid, "provision_state", from)
			got := a.do(http.MethodPut, provisionPath(uuid), requestOf(target))
			to, ok := targets[target]
			if !ok {
				want := fmt.Sprintf("The requested action %q can not be performed on node %q while it is in state %q.", target, uuid, from)
				if got.status != http.StatusBadRequest || got.fault() != want {
					t.Errorf("%s of a node that is %s = %d %s, want 400 %s", target, from, got.status, got.fault(), want)
				}
				continue
			}
			if n, _ := a.fake.Node(uuid); got.status != http.StatusAccepted || n.ProvisionState != to {
				t.Errorf("%s of a node that is %s = %d %s and then %s, want 202 and %s", target, from, got.status, got.fault(), n.ProvisionState, to)
			}
		}
	}
}

func TestOldIronicLacksLaterTransitions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ state, verb string }{
		{"wait call-back", "abort"}, {"active", "service"}, {"service failed", "deleted"}, {"clean hold", "unhold"},
	} {
		a := newAPI(t, &fakeironic.Server{MaxMicroversion: "1.82"})
		uuid := a.node("n1", nil)
		a.fake.Set(uuid, "provision_state", tt.state)
		a.refused(http.StatusBadRequest, "can not be performed", http.MethodPut, provisionPath(uuid), requestOf(tt.verb))
	}
}

func TestEveryTransientStateLastsOneStep(t *testing.T) {
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
				t.Errorf("%s: reservation %v, target %v; want none", got["provision_state"], got["reservation"], got["target_provision_state"])
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

func TestWhatIsDueHappensAtItsOwnTime(t *testing.T) {
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

func TestDirectDeployWaitsForItsRamdiskUnlocked(t *testing.T) {
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

func TestBusyNodeIsLocked(t *testing.T) {
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

func TestUndeployDeletesTheAllocation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeironic.Server{StepTime: time.Hour}
		fake.AddFleet(1, "baremetal")
		a := newAPI(t, fake)
		allocation := uuidOf(t, a.must(http.StatusCreated, http.MethodPost, "/v1/allocations", map[string]any{"resource_class": "baremetal"}))
		a.provision("node-000", "active")
		time.Sleep(time.Hour)
		a.refused(http.StatusConflict, "because the node is active", http.MethodDelete, "/v1/allocations/"+allocation, nil)

		a.provision("node-000", "deleted")
		if got := a.state("node-000", "deleting"); got["instance_uuid"] != allocation {
			t.Errorf("instance_uuid = %v at first, want %s", got["instance_uuid"], allocation)
		}
		a.must(http.StatusOK, http.MethodGet, "/v1/allocations/"+allocation, nil)
		time.Sleep(31 * time.Minute)
		if got := a.state("node-000", "deleting"); got["instance_uuid"] != nil || fmt.Sprint(got["instance_info"]) != "map[]" {
			t.Errorf("instance_uuid = %v and instance_info = %v in the second half, want none", got["instance_uuid"], got["instance_info"])
		}
		a.must(http.StatusNotFound, http.MethodGet, "/v1/allocations/"+allocation, nil)
		time.Sleep(2 * time.Hour)
		a.state("node-000", "available")
	})
}

func TestFailedOperationsKeepTheirTarget(t *testing.T) {
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

func TestFinalStateCanBeSeenBeforeLockAndErrorAreSettled(t *testing.T) {
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

func TestNextOperationClearsTheLastError(t *testing.T) {
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

func TestStepsThatFailWithFakeHardware(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, from, state, lastError string
		body                         map[string]any
		fault                        any
	}{
		{
			"deploy step off", "available", "deploy failed", "No deploy steps returned by the driver",
			map[string]any{"target": "active", "deploy_steps": []any{
				map[string]any{"interface": "deploy", "step": "deploy", "args": map[string]any{}, "priority": 0},
			}},
			nil,
		},
		{
			"clean step without its argument", "manageable", "clean failed", "is missing these required arguments: settings",
			map[string]any{"target": "clean", "clean_steps": []any{map[string]any{"interface": "bios", "step": "apply_configuration"}}},
			nil,
		},
		{
			"clean step that breaks", "manageable", "clean failed", "failed step",
			map[string]any{"target": "clean", "clean_steps": []any{map[string]any{
				"interface": "bios", "step": "apply_configuration", "args": map[string]any{"settings": []any{map[string]any{"bad": 1}}},
			}}},
			"clean failure",
		},
		{
			"no such service step", "active", "service failed", "has no attribute 'nostep'",
			map[string]any{"target": "service", "service_steps": []any{map[string]any{"interface": "vendor", "step": "nostep"}}},
			"service failure",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newAPI(t, &fakeironic.Server{})
			uuid := a.node("n1", nil)
			a.fake.Set(uuid, "provision_state", tt.from)
			a.must(http.StatusAccepted, http.MethodPut, provisionPath(uuid), tt.body)
			got := a.state(uuid, tt.state)
			lastError, _ := got["last_error"].(string)
			if !strings.Contains(lastError, tt.lastError) || got["fault"] != tt.fault || got["maintenance"] != (tt.fault != nil) {
				t.Errorf("last_error %q, fault %v, maintenance %v; want %q, %v", lastError, got["fault"], got["maintenance"], tt.lastError, tt.fault)
			}
		})
	}
}

func TestVerificationNeedsAnAddressOfTheBMC(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	for driver, key := range map[string]string{"ipmi": "ipmi_address", "redfish": "redfish_address", "idrac": "redfish_address"} {
		uuid := a.node(driver, map[string]any{"driver": driver})
		a.provision(uuid, "manage")
		lastError, _ := a.state(uuid, "enroll")["last_error"].(string)
		if !strings.HasPrefix(lastError, "Failed to get power state for node "+uuid+". Error: Missing the following") {
			t.Errorf("%s: last_error = %q", driver, lastError)
		}
		a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/"+uuid, patch("add", "/driver_info/"+key, "10.0.0.1"))
		a.provision(uuid, "manage")
		if got := a.state(uuid, "manageable"); got["power_state"] != "power off" || got["last_error"] != nil {
			t.Errorf("%s: power_state %v, last_error %v; want power off, none", driver, got["power_state"], got["last_error"])
		}
	}
}

func TestDeployNeedsAnImageOnTheDirectInterfaceOnly(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		deploy string
		info   map[string]any
		status int
		text   string
	}{
		{"fake", nil, http.StatusAccepted, ""},
		{"direct", nil, http.StatusBadRequest, "Missing are: ['instance_info.image_source']"},
		{"direct", map[string]any{"image_source": "http://x/a"}, http.StatusBadRequest, "must be provided in instance_info for node"},
		{"direct", map[string]any{"image_source": "a"}, http.StatusInternalServerError, "Scheme-less image href is not a UUID."},
		{"direct", map[string]any{"image_source": "http://x/a", "image_checksum": "c"}, http.StatusAccepted, ""},
	} {
		a := newAPI(t, &fakeironic.Server{})
		uuid := a.node("n1", map[string]any{"deploy_interface": tt.deploy, "instance_info": tt.info})
		a.fake.Set(uuid, "provision_state", "available")
		a.refused(tt.status, tt.text, http.MethodPut, provisionPath(uuid), requestOf("active"))
	}
}

func TestConfigDriveIsCheckedAndStored(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.available("n1", nil)
	for _, tt := range []struct {
		drive any
		text  string
	}{
		{[]any{1}, "for configdrive: [1]"},
		{map[string]any{"bogus": 1}, "('bogus' was unexpected)"},
		{map[string]any{"meta_data": "x"}, "'x' is not of type 'object'"},
		{"not base64!", "neither a JSON, nor a URL, nor a base64 string"},
	} {
		a.refused(http.StatusBadRequest, tt.text, http.MethodPut, provisionPath(uuid), map[string]any{"target": "active", "configdrive": tt.drive})
	}
	a.must(http.StatusAccepted, http.MethodPut, provisionPath(uuid), map[string]any{
		"target": "active", "configdrive": map[string]any{"user_data": "hello", "meta_data": map[string]any{}},
	})
	a.state(uuid, "active")
	n, _ := a.fake.Node(uuid)
	info, _ := n.Raw["instance_info"].(map[string]any)
	drive, _ := info["configdrive"].(map[string]any)
	if drive["user_data"] != "hello" {
		t.Errorf("instance_info = %v, want the config drive in it", info)
	}
}

func TestMaintenanceRetirementAndProtection(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.available("n1", nil)
	path := "/v1/nodes/" + uuid
	a.must(http.StatusAccepted, http.MethodPut, path+"/maintenance", map[string]any{"reason": "broken fan"})
	a.refused(http.StatusBadRequest, "because it's in maintenance mode", http.MethodPut, provisionPath(uuid), requestOf("active"))
	a.must(http.StatusAccepted, http.MethodDelete, path+"/maintenance", nil)
	a.refused(http.StatusConflict, "can not have 'retired' set in provision state 'available'", http.MethodPatch, path, patch("add", "/retired", true))

	a.provision(uuid, "active")
	a.must(http.StatusOK, http.MethodPatch, path, patch("add", "/retired", true))
	a.must(http.StatusOK, http.MethodPatch, path, patch("add", "/protected", true))
	a.refused(http.StatusForbidden, "is protected and cannot be undeployed, rebuilt or deleted", http.MethodPut, provisionPath(uuid), requestOf("deleted"))
	a.must(http.StatusOK, http.MethodPatch, path, patch("add", "/protected", false))
	a.provision(uuid, "deleted")
	a.state(uuid, "manageable")
	a.refused(http.StatusBadRequest, "because it is retired", http.MethodPut, provisionPath(uuid), requestOf("provide"))
}

func TestAutomatedCleanOffSkipsCleaning(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{StepTime: time.Hour})
	uuid := a.node("n1", map[string]any{"automated_clean": false})
	a.fake.Set(uuid, "provision_state", "manageable")
	a.provision(uuid, "provide")
	a.state(uuid, "available")
}

func TestFakeInspectionFindsNothing(t *testing.T) {
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

func TestConcurrentActionLimit(t *testing.T) {
	t.Parallel()
	for version, status := range map[string]int{"1.82": http.StatusInternalServerError, "1.115": http.StatusServiceUnavailable} {
		fake := &fakeironic.Server{MaxMicroversion: version, StepTime: time.Hour, MaxConcurrentDeploy: 1, MaxConcurrentClean: 1}
		fake.AddFleet(4, "baremetal")
		for i, state := range []string{"available", "available", "active", "active"} {
			fake.Set(fmt.Sprintf("node-%03d", i), "provision_state", state)
		}
		a := newAPI(t, fake)
		a.provision("node-000", "active")
		a.refused(status, "The concurrent action limit for provisioning has been reached.", http.MethodPut, provisionPath("node-001"), requestOf("active"))
		a.provision("node-002", "deleted")
		a.refused(status, "The concurrent action limit for unprovisioning has been reached.", http.MethodPut, provisionPath("node-003"), requestOf("deleted"))
		if n, _ := fake.Node("node-001"); n.ProvisionState != "available" || n.LastError != "" {
			t.Errorf("refused node is %s with error %q, want it untouched", n.ProvisionState, n.LastError)
		}
	}
}

func TestMaxBusyCountsNodesAtWork(t *testing.T) {
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
