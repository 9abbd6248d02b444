package host_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// lose deletes the node of a host as another client does.
func lose(s *site.Site, name string) {
	s.Must(http.MethodPut, "nodes/"+name+"/maintenance", map[string]any{})
	s.Must(http.MethodDelete, "nodes/"+name, nil)
}

// A record that is made anew cleans no machine: it may have been deployed since the state has seen it idle, also if it is off. The next
// plan says that it cleans.
func TestFakeHost_recordMadeAnewCleansNothing(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	deployed := hostConfig(s, acctest.Target("available")) +
		acctest.Deployment("metal_host.h.id", acctest.Image("a"), `power_state = "off"`)
	w := acctest.NewWorkspace(t, deployed)
	w.Must(acctest.Apply()...)
	w.Must("state", "rm", acctest.DeploymentAddress) // the state of the host is older than the deployment
	name := s.Name("h")
	lose(s, name)
	site.ForgetVerbs(s)
	acctest.Mention(t, w.Must("plan"), "Lost record is made anew", "The machine is not touched", "1 to add, 1 to change")
	acctest.Fails(t, w, acctest.Apply(), `in state "manageable": it cannot be deployed from there`)
	node := site.Text(s.Node(name)["uuid"])
	site.WantVerbs(t, s, node, "manage")

	w.Configure(hostConfig(s, acctest.Target("available")))
	changes := w.Save()
	if h := changes[acctest.HostAddress]; h.After["cleanings"] == h.Before["cleanings"] {
		t.Errorf("cleanings does not rise: %v", h.After["cleanings"])
	}
	acctest.Mention(t, w.Must("plan"), "Cleaning erases data", "Its record was made anew")
	site.WantVerbs(t, s, node, "manage")
	w.Must(acctest.Apply()...)
	site.WantVerbs(t, s, node, "manage", "provide")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// A machine that is on is not cleaned after its record was made anew. A person who switches it off says that nothing runs on it.
func TestFakeHost_lostAndOnIsNotCleaned(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	w := acctest.NewWorkspace(t, hostConfig(s, acctest.Target("available")))
	w.Must(acctest.Apply()...)
	name := s.Name("h")
	lose(s, name)
	site.ForgetVerbs(s)
	w.Must(acctest.Apply()...)
	s.Fake.Set(name, "power_state", "power on")
	for range 2 {
		acctest.Fails(t, w, acctest.Apply(), "is on, and an idle machine is off", "Nothing was erased", "metal power off")
	}
	site.WantVerbs(t, s, site.Text(s.Node(name)["uuid"]), "manage")
	s.Fake.Set(name, "power_state", "power off")
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// Who may not see the identity of the site cannot tell it from another one: nothing is made anew there, also of an idle host.
func TestFakeHost_lostInASiteWhoseIdentityIsHidden(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	hides := s.Behind(t, func(r *http.Request, _ []byte) *site.Disturbance {
		if !strings.Contains(r.URL.Path, "chassis") {
			return nil
		}
		return &site.Disturbance{Status: http.StatusForbidden, Body: `{"error_message": "not allowed"}`}
	})
	config := func(at *site.Site, settings ...string) string {
		return at.Provider(settings...) + acctest.HostBlock(s.Name("h"), `driver = "fake-hardware"`, acctest.Target("manageable"))
	}
	for _, tt := range []struct {
		made *site.Site
		says string
	}{{s, "it did not show to this user"}, {hides, "the state notes no identity"}} {
		w := acctest.NewWorkspace(t, config(tt.made))
		w.Must(acctest.Apply()...)
		lose(s, s.Name("h"))
		w.Configure(config(hides))
		acctest.Fails(t, w, []string{"plan"}, "Ironic has lost the record of a machine", "cannot be told: ", tt.says)
		acctest.Mention(t, w.Must("plan", "-refresh-only"), "stays in the state")
		w.Configure(config(hides, `lost_records = "recreate"`))
		acctest.Mention(t, w.Must("plan"), tt.says, "leaves the state", "hosts that become available are cleaned")
		w.Must("destroy", "-auto-approve")
	}
}

// An apply whose plan did not see that the record is lost says so, as a plan does.
func TestFakeHost_saysThatTheRecordIsLostWithoutRefresh(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	config := func(description, trigger string) string {
		return hostConfig(s, acctest.Target("available"), "description = "+acctest.Quoted(description)) +
			acctest.Deployment("metal_host.h.id", acctest.Image("a"), "restart_triggers = { a = "+acctest.Quoted(trigger)+" }")
	}
	w := acctest.NewWorkspace(t, config("a", "1"))
	w.Must(acctest.Apply()...)
	w.Configure(config("a", "2"))
	w.Must("plan", "-out=saved")
	lose(s, s.Name("h"))
	lost := []string{"Ironic has lost the record of a machine", s.Name("h") + " (deployed)", "correct endpoint", "terraform state rm"}
	acctest.Fails(t, w, []string{"apply", "saved"}, lost...)
	w.Configure(config("b", "1"))
	lost[1] = s.Name("h")
	acctest.Fails(t, w, []string{"apply", "-auto-approve", "-refresh=false"}, lost...)
	w.Must("destroy", "-auto-approve", "-refresh=false")
}

// A saved plan that makes a record anew makes none in another Ironic.
func TestFakeHost_lostRecordIsMadeInItsOwnSiteOnly(t *testing.T) {
	t.Parallel()
	s, other := site.StartFake(t, nil), site.StartFake(t, nil)
	endpoint := regexp.MustCompile(`(?m)^ *endpoint *=.*$`)
	w := acctest.NewWorkspace(t, endpoint.ReplaceAllString(hostConfig(s, acctest.Target("available")), ""))
	w.Setenv("METAL_ENDPOINT", s.Endpoint)
	w.Must("apply", "-auto-approve")
	lose(s, s.Name("h"))
	w.Must("plan", "-out=saved")
	w.Setenv("METAL_ENDPOINT", other.Endpoint)
	acctest.Fails(t, w, []string{"apply", "saved"}, "not the one that the state knows", "Check the endpoint")
	if other.Node(s.Name("h")) != nil {
		t.Error("a node was made in another site")
	}
}

// Another node of the machine stops the plan, not the apply.
func TestFakeHost_lostRecordThatAnotherNodeHas(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	w := acctest.NewWorkspace(t, withBMC(s, acctest.Target("available")))
	w.Must("apply", "-auto-approve")
	lose(s, s.Name("h"))
	s.Must(http.MethodPost, "nodes", map[string]any{"name": "other", "driver": "redfish", "driver_info": map[string]any{
		"redfish_address": "https://192.0.2.11", "redfish_system_id": "/redfish/v1/Systems/1",
	}})
	acctest.Fails(t, w, []string{"plan"}, "Another record of the machine exists", "node other", "terraform state rm")
}

// A saved replacement writes nothing to a node that another client has deployed meanwhile.
func TestFakeHost_savedReplacementOfAUsedNodeWritesNothing(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	config := func(unit int, replaced string) string {
		return s.Provider() + acctest.HostBlock(s.Name("h"), acctest.Target("available"), replaced, fmt.Sprintf(
			`bmc = { address = "redfish-virtualmedia://192.0.2.%d/redfish/v1/Systems/1", username = "root", password = "calvin" }`, unit))
	}
	w := acctest.NewWorkspace(t, config(11, ""))
	w.Must("apply", "-auto-approve")
	w.Configure(config(12, `replaced = { part = "machine", on = "1" }`))
	w.Must("plan", "-out=saved")
	s.Fake.Set(s.Name("h"), "instance_uuid", "00000000-0000-4000-8000-000000000001")
	s.Fake.Set(s.Name("h"), "provision_state", "active")
	acctest.Fails(t, w, []string{"apply", "saved"}, "was left as it is")
	if info := fmt.Sprint(s.Node(s.Name("h"))["driver_info"]); !strings.Contains(info, "192.0.2.11") {
		t.Errorf("driver_info is %s", info)
	}
	acctest.Mention(t, w.Must("plan"), "Replaced machine is undeployed")
}

// Disks that are to be kept are not erased by an undeployment of the same plan.
func TestFakeHost_disksAreNotKeptTooLate(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	config := func(skips, deployment string) string {
		return hostConfig(s, acctest.Target("available"), skips) + deployment
	}
	deployment := func(image, more string) string {
		return "resource \"metal_deployment\" \"d\" {\n  node_id = metal_host.h.id\n  " + acctest.Image(image) + "\n" + more + "\n}\n"
	}
	const skips = `skip_block_devices = [{ serial = "S1" }]`
	w := acctest.NewWorkspace(t, config("", deployment("a", `on_change = "replace"`)))
	w.Must("apply", "-auto-approve")
	for _, then := range []string{"", deployment("b", `on_change = "replace"`)} {
		w.Configure(config(skips, then))
		acctest.Fails(t, w, []string{"plan"}, "Disks would be kept too late", "First apply the change of the host")
	}
	w.Configure(config(skips, deployment("a", `on_change = "replace"`)))
	w.Must("apply", "-auto-approve")
	w.Configure(config(skips, ""))
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
}
