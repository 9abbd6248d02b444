package fakeironic_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// allowed is the state machine of Ironic 39: the verbs of each state and the states that they lead to. It is written
// independently of rules, from Ironic's documentation.
var allowed = map[string]map[string]string{
	"enroll":         {"manage": "verifying"},
	"manageable":     {"provide": "cleaning", "clean": "cleaning", "inspect": "inspecting", "adopt": "adopting"},
	"available":      {"active": "deploying", "deploy": "deploying", "manage": "manageable"},
	"wait call-back": {"deleted": "deleting", "undeploy": "deleting", "abort": "deploy failed"},
	"active": {
		"deleted": "deleting", "undeploy": "deleting", "rebuild": "deploying", "rescue": "rescuing", "service": "servicing",
	},
	"deploy failed": {
		"active": "deploying", "deploy": "deploying", "rebuild": "deploying", "deleted": "deleting", "undeploy": "deleting",
	},
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
	"deploying":       {}, "cleaning": {}, "deleting": {}, "verifying": {}, "inspecting": {}, "adopting": {}, "rescuing": {},
	"unrescuing": {}, "servicing": {},
}

var verbs = []string{
	"manage", "provide", "inspect", "active", "deploy", "deleted", "undeploy", "rebuild", "clean", "abort", "adopt", "rescue",
	"unrescue", "service",
	"unhold", "bogus",
}

// requestOf returns a complete body for a verb.
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

func TestProvision_stateMachine(t *testing.T) {
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
				t.Errorf("%s of a node that is %s = %d %s and then %s, want 202 and %s", target, from, got.status, got.fault(),
					n.ProvisionState, to)
			}
		}
	}
}

func TestProvision_oldIronicLacksLaterTransitions(t *testing.T) {
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

func TestProvision_undeployDeletesTheAllocation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeironic.Server{StepTime: time.Hour}
		fake.AddFleet(1, "baremetal")
		a := newAPI(t, fake)
		allocation := uuidOf(t, a.must(http.StatusCreated, http.MethodPost, "/v1/allocations",
			map[string]any{"resource_class": "baremetal"}))
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

func TestProvision_failingStepsOfFakeHardware(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, from, state, lastError, body string
		fault                              any
	}{
		{
			"deploy step off", "available", "deploy failed", "No deploy steps returned by the driver",
			`{"target": "active", "deploy_steps": [{"interface": "deploy", "step": "deploy", "args": {}, "priority": 0}]}`, nil,
		},
		{
			"clean step without its argument", "manageable", "clean failed", "is missing these required arguments: settings",
			`{"target": "clean", "clean_steps": [{"interface": "bios", "step": "apply_configuration"}]}`, nil,
		},
		{
			"clean step that breaks", "manageable", "clean failed", "failed step", `{"target": "clean", "clean_steps": [
				{"interface": "bios", "step": "apply_configuration", "args": {"settings": [{"bad": 1}]}}]}`, "clean failure",
		},
		{
			"no such service step", "active", "service failed", "has no attribute 'nostep'",
			`{"target": "service", "service_steps": [{"interface": "vendor", "step": "nostep"}]}`, "service failure",
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
				t.Errorf("last_error %q, fault %v, maintenance %v; want %q, %v", lastError, got["fault"], got["maintenance"],
					tt.lastError, tt.fault)
			}
		})
	}
}

func TestProvision_manageNeedsTheBMCsAddress(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	for driver, key := range map[string]string{"ipmi": "ipmi_address", "redfish": "redfish_address", "idrac": "redfish_address"} {
		uuid := a.node(driver, map[string]any{"driver": driver})
		a.provision(uuid, "manage")
		lastError, _ := a.state(uuid, "enroll")["last_error"].(string)
		if !strings.HasPrefix(lastError, "Failed to validate power driver interface for node "+uuid+". Error: Missing the following") {
			t.Errorf("%s: last_error = %q", driver, lastError)
		}
		a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/"+uuid, patch("add", "/driver_info/"+key, "10.0.0.1"))
		a.provision(uuid, "manage")
		if got := a.state(uuid, "manageable"); got["power_state"] != "power off" || got["last_error"] != nil {
			t.Errorf("%s: power_state %v, last_error %v; want power off, none", driver, got["power_state"], got["last_error"])
		}
	}
}

func TestProvision_onlyDirectDeployNeedsAnImage(t *testing.T) {
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

func TestProvision_configDriveIsCheckedAndStored(t *testing.T) {
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
		a.refused(http.StatusBadRequest, tt.text, http.MethodPut, provisionPath(uuid),
			map[string]any{"target": "active", "configdrive": tt.drive})
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

func TestProvision_maintenanceRetiredAndProtected(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.available("n1", nil)
	path := "/v1/nodes/" + uuid
	a.must(http.StatusAccepted, http.MethodPut, path+"/maintenance", map[string]any{"reason": "broken fan"})
	a.refused(http.StatusBadRequest, "because it's in maintenance mode", http.MethodPut, provisionPath(uuid), requestOf("active"))
	a.must(http.StatusAccepted, http.MethodDelete, path+"/maintenance", nil)
	a.refused(http.StatusConflict, "can not have 'retired' set in provision state 'available'", http.MethodPatch, path,
		patch("add", "/retired", true))

	a.provision(uuid, "active")
	a.must(http.StatusOK, http.MethodPatch, path, patch("add", "/retired", true))
	a.must(http.StatusOK, http.MethodPatch, path, patch("add", "/protected", true))
	a.refused(http.StatusForbidden, "is protected and cannot be undeployed, rebuilt or deleted", http.MethodPut, provisionPath(uuid),
		requestOf("deleted"))
	a.must(http.StatusOK, http.MethodPatch, path, patch("add", "/protected", false))
	a.provision(uuid, "deleted")
	a.state(uuid, "manageable")
	a.refused(http.StatusBadRequest, "because it is retired", http.MethodPut, provisionPath(uuid), requestOf("provide"))
}

func TestProvision_automatedCleanFalseSkipsCleaning(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{StepTime: time.Hour})
	uuid := a.node("n1", map[string]any{"automated_clean": false})
	a.fake.Set(uuid, "provision_state", "manageable")
	a.provision(uuid, "provide")
	a.state(uuid, "available")
}
