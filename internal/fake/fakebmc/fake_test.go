package fakebmc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
)

const (
	system = "/redfish/v1/Systems/m1"
	cd     = "/redfish/v1/Managers/m1/VirtualMedia/Cd"
)

// client speaks to the machine m1 of a fake.
type client struct {
	t      *testing.T
	fake   *fakebmc.Server
	bmc    *fakebmc.BMC
	header http.Header // of every request
}

// start adds the machine m1 to a new fake.
func start(t *testing.T, config fakebmc.Config) *client {
	t.Helper()
	config.Name, config.Password = "m1", "secret"
	fake := &fakebmc.Server{}
	c := &client{t: t, fake: fake, bmc: fake.Add(config), header: http.Header{}}
	c.header.Set("Authorization", "Basic YWRtaW46c2VjcmV0") // admin:secret
	return c
}

// send sends a request. Without an answer the status is 0.
func (c *client) send(method, path, body string) (status int, header http.Header, answer map[string]any) {
	c.t.Helper()
	r := httptest.NewRequestWithContext(c.t.Context(), method, path, strings.NewReader(body))
	r.Header = c.header.Clone()
	w := httptest.NewRecorder()
	if !answered(c.fake, w, r) {
		return 0, nil, nil
	}
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			c.t.Fatal(err)
		}
	}
	return w.Code, w.Header(), answer
}

// answered reports whether the fake answered, instead of breaking the connection.
func answered(fake *fakebmc.Server, w http.ResponseWriter, r *http.Request) (answered bool) {
	defer func() { answered = recover() == nil }()
	fake.ServeHTTP(w, r)
	return true
}

// want fails the test unless the fake answers with a status. It returns the answer.
func (c *client) want(status int, method, path, body string) map[string]any {
	c.t.Helper()
	got, _, answer := c.send(method, path, body)
	if got != status {
		c.t.Fatalf("%s %s %s: %d %v, want %d", method, path, body, got, answer, status)
	}
	return answer
}

func (c *client) reset(kind string) {
	c.t.Helper()
	c.want(http.StatusNoContent, "POST", system+"/Actions/ComputerSystem.Reset", `{"ResetType": "`+kind+`"}`)
}

func (c *client) power() any { return c.want(http.StatusOK, "GET", system, "")["PowerState"] }

// kinds are the kinds of the events in the history.
func (c *client) kinds() []fakebmc.Kind {
	var kinds []fakebmc.Kind
	for _, e := range c.bmc.History() {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// What validators and clients of several ages look for: the document of metadata, without a login, and both severities of a message.
func TestServer_documentsForClients(t *testing.T) {
	t.Parallel()
	s := start(t, fakebmc.Config{}).fake
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/redfish/v1/$metadata", nil))
	if answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "<edmx:Edmx") ||
		!strings.HasPrefix(answer.Header().Get("Content-Type"), "application/xml") {
		t.Errorf("the metadata are %d %s %s", answer.Code, answer.Header(), answer.Body)
	}
	answer = httptest.NewRecorder()
	s.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/redfish/v1/Systems", nil))
	for _, key := range []string{`"Severity":"Critical"`, `"MessageSeverity":"Critical"`} {
		if !strings.Contains(answer.Body.String(), key) {
			t.Errorf("the error lacks %s: %s", key, answer.Body)
		}
	}
}

func TestSession_endsWithoutRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := start(t, fakebmc.Config{})
		c.header = http.Header{}
		c.want(http.StatusOK, "GET", "/redfish/v1/", "")
		c.want(http.StatusUnauthorized, "GET", system, "")
		c.want(http.StatusUnauthorized, "POST", "/redfish/v1/SessionService/Sessions", `{"UserName": "admin", "Password": "wrong"}`)
		status, header, _ := c.send("POST", "/redfish/v1/SessionService/Sessions", `{"UserName": "admin", "Password": "secret"}`)
		if status != http.StatusCreated {
			t.Fatalf("login: %d", status)
		}
		c.header.Set("X-Auth-Token", header.Get("X-Auth-Token"))
		for range 3 { // each request prolongs the session
			time.Sleep(29 * time.Minute) //nolint:forbidigo // the clock of synctest
			c.want(http.StatusOK, "GET", system, "")
		}
		c.want(http.StatusOK, "GET", header.Get("Location"), "")
		time.Sleep(31 * time.Minute) //nolint:forbidigo // as above
		c.want(http.StatusUnauthorized, "GET", system, "")
		if got := c.bmc.History(fakebmc.LoginRefused); len(got) != 1 {
			t.Errorf("refused logins: %v", got)
		}
	})
}

func TestPassword_endsSessionsWhenItChanges(t *testing.T) {
	t.Parallel()
	c := start(t, fakebmc.Config{})
	c.want(http.StatusOK, "GET", system, "")
	c.bmc.SetPassword("new")
	c.want(http.StatusUnauthorized, "GET", system, "")
}

func TestServer_showsAClientOnlyItsMachines(t *testing.T) {
	t.Parallel()
	c := start(t, fakebmc.Config{})
	c.fake.Add(fakebmc.Config{Name: "m2"})
	if got := c.want(http.StatusOK, "GET", "/redfish/v1/Systems", "")["Members@odata.count"]; got != 1.0 {
		t.Errorf("the client sees %v machines", got)
	}
	c.want(http.StatusNotFound, "GET", "/redfish/v1/Systems/m2", "")
}

func TestPower_takesItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := start(t, fakebmc.Config{Machine: &fakebmc.Simulated{StartTime: 5 * time.Second, ShutdownTime: time.Minute}})
		wait := func(d time.Duration, power string) {
			t.Helper()
			time.Sleep(d) //nolint:forbidigo // the clock of synctest
			synctest.Wait()
			if got := c.power(); got != power {
				t.Errorf("the power is %v, want %s", got, power)
			}
		}
		c.reset("On")
		wait(4*time.Second, "Off")
		wait(time.Second, "On")
		c.reset("GracefulShutdown")
		wait(59*time.Second, "On")
		wait(time.Second, "Off")
		c.reset("PushPowerButton")
		wait(5*time.Second, "On")
		c.reset("GracefulRestart")
		c.reset("ForceOff") // ends the restart
		wait(time.Hour, "Off")
		c.want(http.StatusConflict, "POST", system+"/Actions/ComputerSystem.Reset", `{"ResetType": "Nmi"}`)
		c.want(http.StatusBadRequest, "POST", system+"/Actions/ComputerSystem.Reset", `{"ResetType": "Explode"}`)
		want := []fakebmc.Kind{
			fakebmc.Commanded, fakebmc.PoweredOn, fakebmc.Booted, fakebmc.Commanded, fakebmc.PoweredOff,
			fakebmc.Commanded, fakebmc.PoweredOn, fakebmc.Booted, fakebmc.Commanded, fakebmc.Commanded, fakebmc.PoweredOff,
		}
		if got := c.kinds(); !slices.Equal(got, want) {
			t.Errorf("the history is %v, want %v", got, want)
		}
	})
}

func TestBoot_followsTheOverride(t *testing.T) {
	t.Parallel()
	boot := func(target, enabled string) string {
		return `{"Boot": {"BootSourceOverrideTarget": "` + target + `", "BootSourceOverrideEnabled": "` + enabled + `"}}`
	}
	for name, tt := range map[string]struct {
		quirks []fakebmc.Quirk
		patch  string
		status int
		medium bool
		boots  []string // of two power cycles
	}{
		"none":            {nil, `{"IndicatorLED": "Lit"}`, 200, true, []string{"None", "None"}},
		"once":            {nil, boot("Cd", "Once"), 200, true, []string{"Cd http://x/a.iso", "None"}},
		"continuous":      {nil, boot("Cd", "Continuous"), 200, true, []string{"Cd http://x/a.iso", "Cd http://x/a.iso"}},
		"empty drive":     {nil, boot("Cd", "Continuous"), 200, false, []string{"None", "None"}},
		"disk":            {nil, boot("Hdd", "Continuous"), 200, true, []string{"Hdd", "Hdd"}},
		"unknown":         {nil, boot("Tape", "Once"), 400, true, []string{"None", "None"}},
		"only once":       {[]fakebmc.Quirk{fakebmc.OnceOnly}, boot("Cd", "Continuous"), 400, true, []string{"None", "None"}},
		"Supermicro's CD": {[]fakebmc.Quirk{fakebmc.USBCD}, boot("Cd", "Continuous"), 200, true, []string{"None", "None"}},
		"Supermicro's USB": {
			[]fakebmc.Quirk{fakebmc.USBCD},
			boot("UsbCd", "Continuous"), 200, true,
			[]string{"UsbCd http://x/a.iso", "UsbCd http://x/a.iso"},
		},
		"without duration": {
			[]fakebmc.Quirk{fakebmc.USBCD},
			`{"Boot": {"BootSourceOverrideTarget": "UsbCd"}}`, 200, true,
			[]string{"None", "None"},
		},
		"read-only setting": {nil, `{"Boot": {"BootOptions": {}}}`, 400, true, []string{"None", "None"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, fakebmc.Config{Quirks: tt.quirks})
			if tt.medium {
				c.want(http.StatusNoContent, "POST", cd+"/Actions/VirtualMedia.InsertMedia", `{"Image": "http://x/a.iso"}`)
			}
			c.want(tt.status, "PATCH", system, tt.patch)
			var boots []string
			for range 2 {
				c.reset("On")
				c.reset("ForceOff")
			}
			for _, e := range c.bmc.History(fakebmc.Booted) {
				boots = append(boots, e.Detail)
			}
			if !slices.Equal(boots, tt.boots) {
				t.Errorf("it booted %v, want %v", boots, tt.boots)
			}
		})
	}
}

func TestChange_needsTheETagOfWhatItChanges(t *testing.T) {
	t.Parallel()
	c := start(t, fakebmc.Config{})
	_, header, _ := c.send("GET", system, "")
	tag := header.Get("ETag")
	c.header.Set("If-Match", strings.TrimPrefix(tag, "W/"))
	c.want(http.StatusOK, "PATCH", system, `{"IndicatorLED": "Blinking"}`)
	c.want(http.StatusPreconditionFailed, "PATCH", system, `{"IndicatorLED": "Off"}`)

	c = start(t, fakebmc.Config{Quirks: []fakebmc.Quirk{fakebmc.ETags}})
	c.want(http.StatusPreconditionRequired, "PATCH", system, `{"Boot": {"BootSourceOverrideTarget": "Pxe"}}`)
}

func TestMedia_vendorsDiffer(t *testing.T) {
	t.Parallel()
	insert, eject := cd+"/Actions/VirtualMedia.InsertMedia", cd+"/Actions/VirtualMedia.EjectMedia"
	type request struct {
		method, path, body string
		status             int
	}
	image := `"Image": "http://x/a.iso"`
	for name, tt := range map[string]struct {
		quirk    fakebmc.Quirk
		requests []request
	}{
		"standard": {"", []request{
			{"POST", insert, `{}`, 400},
			{"POST", insert, `{"Image": "ftp://x/a.iso"}`, 400},
			{"POST", insert, `{` + image + `, "Inserted": true}`, 204},
			{"POST", insert, `{` + image + `}`, 409},
			{"POST", eject, ``, 204},
			{"PATCH", cd, `{` + image + `, "Inserted": true}`, 400},
		}},
		"HPE": {fakebmc.EjectBody, []request{{"POST", eject, ``, 415}, {"POST", eject, `{}`, 204}}},
		"Lenovo": {fakebmc.PatchMedia, []request{
			{"POST", insert, `{` + image + `}`, 404},
			{"PATCH", cd, `{` + image + `, "Inserted": true}`, 200},
			{"PATCH", cd, `{"Image": null}`, 200},
		}},
		"Supermicro": {fakebmc.USBCD, []request{
			{"POST", insert, `{` + image + `, "Inserted": true}`, 400},
			{"POST", insert, `{` + image + `}`, 204},
		}},
		"protocol": {fakebmc.TransferProtocol, []request{
			{"POST", insert, `{` + image + `}`, 400},
			{"POST", insert, `{` + image + `, "TransferProtocolType": "HTTP"}`, 204},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, fakebmc.Config{Quirks: []fakebmc.Quirk{tt.quirk}})
			for _, r := range tt.requests {
				c.want(r.status, r.method, r.path, r.body)
			}
		})
	}
}

func TestMedia_areTheSameBelowSystemAndManager(t *testing.T) {
	t.Parallel()
	c := start(t, fakebmc.Config{})
	below := system + "/VirtualMedia/Cd"
	c.want(http.StatusNoContent, "POST", below+"/Actions/VirtualMedia.InsertMedia", `{"Image": "http://x/a.iso"}`)
	for _, path := range []string{below, cd} {
		if drive := c.want(http.StatusOK, "GET", path, ""); drive["@odata.id"] != path || drive["Image"] != "http://x/a.iso" {
			t.Errorf("%s is %v", path, drive)
		}
	}
	c.want(http.StatusNoContent, "POST", cd+"/Actions/VirtualMedia.EjectMedia", "")
	if c.bmc.Medium() != "" {
		t.Errorf("the drive holds %s", c.bmc.Medium())
	}
}

func TestFault_replacesAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := start(t, fakebmc.Config{})
		hits, _ := c.fake.Inject(fakebmc.Fault{
			Method: "GET", Path: "/Systems/", Count: 2, Status: http.StatusServiceUnavailable,
			RetryAfter: 3 * time.Second,
		})
		for range 2 {
			if status, header, _ := c.send("GET", system, ""); status != http.StatusServiceUnavailable || header.Get("Retry-After") != "3" {
				t.Errorf("the answer is %d after %s", status, header.Get("Retry-After"))
			}
		}
		c.want(http.StatusOK, "GET", system, "")
		plug := c.fake.Unplug()
		c.want(0, "GET", "/redfish/v1", "")
		plug()
		c.want(http.StatusOK, "GET", "/redfish/v1", "")
		if hits() != 2 {
			t.Errorf("the fault hit %d requests", hits())
		}

		c.fake.Inject(fakebmc.Fault{Hang: true})
		ended := make(chan bool)
		server := httptest.NewRequestWithContext(t.Context(), "GET", system, nil)
		ctx, cancel := context.WithTimeout(server.Context(), time.Hour)
		defer cancel()
		go func() { ended <- answered(c.fake, httptest.NewRecorder(), server.WithContext(ctx)) }()
		begin := time.Now()
		if <-ended || time.Since(begin) != time.Hour {
			t.Errorf("the BMC answered after %s", time.Since(begin))
		}
	})
}

func TestUpdate_restartsTheBMC(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := start(t, fakebmc.Config{UpdateTime: time.Minute, RestartTime: 2 * time.Minute})
		c.reset("On")
		task := c.want(http.StatusAccepted, "POST", "/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate",
			`{"ImageURI": "http://x/bmc-2.0.bin"}`)
		monitor, _ := task["TaskMonitor"].(string)
		c.want(http.StatusAccepted, "GET", monitor, "")
		time.Sleep(time.Minute) //nolint:forbidigo // the clock of synctest
		synctest.Wait()
		c.want(0, "GET", monitor, "")
		time.Sleep(2 * time.Minute) //nolint:forbidigo // as above
		c.want(http.StatusOK, "GET", monitor, "")
		if version := c.want(http.StatusOK, "GET", "/redfish/v1/Managers/m1", "")["FirmwareVersion"]; version != "2.0" ||
			c.power() != "On" {
			t.Errorf("the version is %v, the machine is %v", version, c.power())
		}
	})
}

func TestUpdate_ofTheBIOSWaitsForTheBoot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := start(t, fakebmc.Config{})
		update := func(status int, image, target string) {
			t.Helper()
			c.want(status, "POST", "/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate", `{"ImageURI": "http://x/`+image+
				`", "Targets": ["`+target+`"]}`)
			synctest.Wait()
		}
		update(http.StatusAccepted, "bios-2.0.bin", system)
		update(http.StatusAccepted, "nic-3.0.bin", "/redfish/v1/UpdateService/FirmwareInventory/m1-NIC.1")
		update(http.StatusBadRequest, "bios-2.0.bin", "/redfish/v1/Systems/m9")
		version := func() any { return c.want(http.StatusOK, "GET", system, "")["BiosVersion"] }
		if version() != "1.00" {
			t.Errorf("the version is %v before the boot", version())
		}
		c.reset("On")
		if version() != "2.0" {
			t.Errorf("the version is %v after the boot", version())
		}
		adapter := c.want(http.StatusOK, "GET", "/redfish/v1/Chassis/m1/NetworkAdapters/NIC.1", "")
		if text := fmt.Sprint(adapter["Controllers"]); !strings.Contains(text, "3.0") {
			t.Errorf("the adapter has %s", text)
		}
	})
}

func TestVolume_onResetWaitsForTheBoot(t *testing.T) {
	t.Parallel()
	c := start(t, fakebmc.Config{Drives: []int64{100, 200, 200}})
	volumes := system + "/Storage/RAID.1/Volumes"
	task := c.want(http.StatusAccepted, "POST", volumes, `{"RAIDType": "RAID5", "@Redfish.OperationApplyTime": "OnReset"}`)
	c.want(http.StatusBadRequest, "POST", volumes, `{"RAIDType": "RAID1", "CapacityBytes": 101}`)
	c.reset("On")
	if state := c.want(http.StatusOK, "GET", task["@odata.id"].(string),
		"")["TaskState"]; state != "Completed" {
		t.Errorf("the task is %v", state)
	}
	if bytes := c.want(http.StatusOK, "GET", volumes+"/1", "")["CapacityBytes"]; bytes != 200.0 {
		t.Errorf("the volume has %v bytes", bytes)
	}
	c.want(http.StatusBadRequest, "POST", volumes, `{"RAIDType": "RAID0"}`) // no drive is free
	c.want(http.StatusNoContent, "DELETE", volumes+"/1", "")
	c.want(http.StatusNotFound, "GET", volumes+"/1", "")

	c = start(t, fakebmc.Config{Quirks: []fakebmc.Quirk{fakebmc.VolumesOnReset}})
	c.want(http.StatusAccepted, "POST", volumes, `{"RAIDType": "RAID1"}`)
	c.want(http.StatusBadRequest, "POST", volumes, `{"RAIDType": "RAID1", "@Redfish.OperationApplyTime": "Immediate"}`)
	c.want(http.StatusNotFound, "GET", volumes+"/1", "")
	c.reset("On")
	c.want(http.StatusOK, "GET", volumes+"/1", "")
}

func TestPath_unknownOrWithAnotherMethod(t *testing.T) {
	t.Parallel()
	c := start(t, fakebmc.Config{})
	c.want(http.StatusNotFound, "GET", system+"/Nonsense", "")
	c.want(http.StatusNotFound, "GET", "/redfish/v1/Systems/m9", "")
	c.want(http.StatusMethodNotAllowed, "DELETE", system, "")
	c.want(http.StatusBadRequest, "PATCH", system, "{")
	if got := c.fake.Count("GET", "/Systems/"); got != 2 {
		t.Errorf("%d requests are logged", got)
	}
}

func TestFaults_delayEveryAndAccept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := start(t, fakebmc.Config{})
		_, end := c.fake.Inject(fakebmc.Fault{Delay: 3 * time.Second})
		begin := time.Now()
		if c.reset("On"); c.power() != "On" || time.Since(begin) != 3*time.Second {
			t.Errorf("after %s: %v", time.Since(begin), c.bmc.History())
		}
		end()
		_, end = c.fake.Inject(fakebmc.Fault{Method: "POST", Accept: true})
		if c.reset("ForceOff"); c.power() != "On" {
			t.Errorf("power has changed: %v", c.bmc.History())
		}
		end()
		c.fake.Inject(fakebmc.Fault{Method: "GET", Every: 2, Count: fakebmc.Always, Status: http.StatusServiceUnavailable})
		for _, want := range []int{http.StatusOK, http.StatusServiceUnavailable, http.StatusOK, http.StatusServiceUnavailable} {
			c.want(want, "GET", system, "")
		}
	})
}

func TestPorts_tellWhatTheyHeard(t *testing.T) {
	t.Parallel()
	c := start(t, fakebmc.Config{Heard: map[string]fakebmc.Announcement{"1": {
		Chassis: "52:54:00:ee:00:01", Port: "Ethernet1/1",
		System: "leaf-1",
	}}})
	const ports = "/redfish/v1/Chassis/m1/NetworkAdapters/NIC.1/Ports"
	if members := fmt.Sprint(c.want(http.StatusOK, "GET", ports, "")["Members"]); !strings.Contains(members, ports+"/1") {
		t.Errorf("the ports are %s", members)
	}
	if text := fmt.Sprint(c.want(http.StatusOK, "GET", ports+"/1", "")["Ethernet"]); !strings.Contains(text, "Ethernet1/1") ||
		!strings.Contains(text, "leaf-1") {
		t.Errorf("the port heard %s", text)
	}
	c.want(http.StatusNotFound, "GET", ports+"/2", "")
}
