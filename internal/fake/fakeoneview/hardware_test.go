package fakeoneview_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
)

func TestHardware_onlyBladesHaveAPortMap(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	blades, rack := fake.AddBlades(20), fake.AddRackServers(2)
	a := login(t, &fake)

	blade := a.get(blades.Hardware[17])
	if blade.text1("name") != "Encl2, bay 2" || blade.text1("serverGroupUri") != blades.GroupURI || blade.body["position"] != 2.0 {
		t.Errorf("blade = %s", blade.text)
	}
	mac := fake.HardwareAt(blades.Hardware[17]).MACs[0]
	if !strings.Contains(blade.text, `"mac":"`+mac+`"`) || mac != strings.ToUpper(mac) {
		t.Errorf("the blade does not show its MAC %s in upper case: %s", mac, blade.text)
	}
	server := a.get(rack.Hardware[0])
	if server.body["portMap"] != nil || server.body["serverGroupUri"] != nil || server.body["locationUri"] != nil ||
		server.body["position"] != nil {
		t.Errorf("rack server = %s", server.text)
	}
	if got := a.get(rack.TemplateURI); got.body["enclosureGroupUri"] != nil || got.text1("serverHardwareTypeUri") != rack.TypeURI {
		t.Errorf("template for rack servers = %s", got.text)
	}
	if got := a.get(blades.GroupURI).text1("name"); got != "Enclosure Group 1" {
		t.Errorf("enclosure group = %q", got)
	}
	if got := a.get("/rest/server-hardware-types").names(); len(got) != 2 {
		t.Errorf("server hardware types = %v, want two", got)
	}
	if got := a.get(blades.Hardware[0] + "/remoteConsoleUrl").text1("remoteConsoleUrl"); !strings.HasPrefix(got,
		"hplocons://addr=198.18.") {
		t.Errorf("remote console = %q", got)
	}
}

func TestHardware_uuidFromProductAndSerialNumber(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	uri := fake.AddHardware(fakeoneview.Hardware{SerialNumber: "2M201136GR"})
	if want := "/rest/server-hardware/30373237-3132-4D32-3230-313133364752"; uri != want {
		t.Errorf("URI = %s, want %s", uri, want)
	}
}

func TestHardware_unchangedAnswers304(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	uri := fake.AddBlades(1).Hardware[0]
	a := login(t, &fake)
	tag := a.get(uri).header.Get("ETag")
	ask := func() int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://oneview"+uri, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"X-Api-Version": {"300"}, "Auth": {a.token}, "If-None-Match": {tag}}
		response, err := fake.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return response.StatusCode
	}
	if got := ask(); got != http.StatusNotModified {
		t.Errorf("GET of an unchanged server = %d, want 304", got)
	}
	fake.PowerOn(uri)
	if got := ask(); got != http.StatusOK {
		t.Errorf("GET of a changed server = %d, want 200", got)
	}
}

func power(state fakeoneview.Power, control fakeoneview.PowerControl) map[string]any {
	return map[string]any{"powerState": state, "powerControl": control}
}

func TestPower_statesOfAChange(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name           string
		from           fakeoneview.Power
		body           map[string]any
		meanwhile, to  fakeoneview.Power
		taskName, fail string
	}{
		{"on", fakeoneview.Off, power("On", "MomentaryPress"), fakeoneview.PoweringOn, fakeoneview.On, "Power on", ""},
		{"hard off", fakeoneview.On, power("Off", "PressAndHold"), fakeoneview.PoweringOff, fakeoneview.Off, "Power off", ""},
		{"soft off", fakeoneview.On, map[string]any{"powerState": "Off"}, fakeoneview.PoweringOff, fakeoneview.Off, "Power off", ""},
		{"off when off", fakeoneview.Off, power("Off", "PressAndHold"), fakeoneview.Off, fakeoneview.Off, "Power off", ""},
		{"cold boot", fakeoneview.On, power("On", "ColdBoot"), fakeoneview.Resetting, fakeoneview.On, "Power on", ""},
		{
			"cold boot when off", fakeoneview.Off, power("On", "ColdBoot"), fakeoneview.Off, fakeoneview.Off, "",
			"INVALID_POWER_CONTROL_REQUEST_POWER_COLDBOOT_OFF",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fake := &fakeoneview.Server{StepTime: time.Second}
				uri := fake.AddBlades(1).Hardware[0]
				fake.EditHardware(uri, func(h *fakeoneview.Hardware) { h.Power = tt.from })
				a := login(t, fake)
				task := a.begin(http.MethodPut, uri+"/powerState", tt.body)
				time.Sleep(2 * time.Second)
				if got := a.get(uri); got.text1("powerState") != string(tt.meanwhile) {
					t.Errorf("meanwhile power = %s, want %s", got.text1("powerState"), tt.meanwhile)
				}
				if got := a.get(task); tt.fail == "" && (got.text1("name") != tt.taskName ||
					got.text1("taskStatus") != tt.taskName+" Server: Encl1, bay 1") {
					t.Errorf("task = %s", got.text)
				}
				time.Sleep(time.Second)
				if got := a.get(task); got.errorCode() != tt.fail {
					t.Errorf("error = %q, want %q", got.errorCode(), tt.fail)
				}
				if got := fake.HardwareAt(uri).Power; got != tt.to {
					t.Errorf("power = %s, want %s", got, tt.to)
				}
			})
		})
	}
}

func TestPower_lockedDuringOtherOperations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, a, fleet := start(t, &fakeoneview.Server{StepTime: time.Second}, 2)
		a.begin(http.MethodPost, "/rest/server-profiles", a.newProfile(fleet.TemplateURI, fleet.Hardware[0], "web"))
		a.begin(http.MethodPut, fleet.Hardware[1]+"/powerState", power("On", "MomentaryPress"))
		time.Sleep(2 * time.Second)
		for _, uri := range fleet.Hardware {
			if got := a.do(http.MethodPut, uri+"/powerState", power("On", "MomentaryPress")); got.status != http.StatusConflict {
				t.Errorf("PUT powerState = %d %s, want 409", got.status, got.text)
			}
		}
		time.Sleep(time.Second)
		a.begin(http.MethodPut, fleet.Hardware[0]+"/powerState", power("On", "MomentaryPress"))
	})
}

func TestPower_refusals(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	uri := fake.AddBlades(1).Hardware[0]
	a := login(t, &fake)
	for _, body := range []any{
		power("on", "MomentaryPress"), power("Off", "ColdBoot"), power("On", "PressAndHold"), power("On", "Kick"),
		map[string]any{},
		"no JSON", "null",
	} {
		if got := a.do(http.MethodPut, uri+"/powerState", body); got.status != http.StatusBadRequest {
			t.Errorf("PUT powerState %v = %d, want 400", body, got.status)
		}
	}
}

func TestHardware_spellingOfProfileURI(t *testing.T) {
	t.Parallel()
	fake := &fakeoneview.Server{EmptyProfileURI: true, SpellURI: func(uri string) string {
		last := strings.LastIndex(uri, "/")
		return uri[:last] + strings.ToUpper(uri[last:]) + "/"
	}}
	fleet := fake.AddBlades(2)
	a := login(t, fake)
	if got := a.get(fleet.Hardware[0]); got.body["serverProfileUri"] != "" {
		t.Errorf("serverProfileUri = %v, want an empty text", got.body["serverProfileUri"])
	}
	a.create(strings.TrimRight(a.get(fleet.TemplateURI).text1("uri"), "/"), a.get(fleet.Hardware[0]).text1("uri"), "web").wantTask(t,
		fakeoneview.TaskCompleted, "")
	spelt := a.get(fleet.Hardware[0]).text1("serverProfileUri")
	if plain := fake.Profiles()[0].URI; spelt == plain || !strings.EqualFold(spelt, plain+"/") {
		t.Errorf("serverProfileUri = %q for %q", spelt, plain)
	}
	filter := a.get("/rest/server-profiles?filter=serverProfileTemplateUri='" + fleet.TemplateURI + "'")
	if len(filter.names()) != 1 || !strings.Contains(filter.text, spelt) {
		t.Errorf("profiles of the template = %s", filter.text)
	}
	if got := a.get(spelt); got.status != http.StatusOK {
		t.Errorf("GET %s = %d", spelt, got.status)
	}
}
