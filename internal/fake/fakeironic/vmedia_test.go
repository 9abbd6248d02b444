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

func cdrom(url string) map[string]any {
	return map[string]any{"device_type": "cdrom", "image_url": url}
}

func TestVirtualMedia_attachedAfterTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, &fakeironic.Server{StepTime: time.Hour})
		uuid := a.redfish("n1", nil)
		path := "/v1/nodes/" + uuid + "/vmedia"
		a.fake.Set(uuid, "last_error", "an old one")
		drive := func(want string) {
			t.Helper()
			if got := strings.TrimSpace(a.do(http.MethodGet, path, nil).text); got != want {
				t.Errorf("GET vmedia = %s, want %s", got, want)
			}
		}
		drive(`[{"media_types":["CD","DVD"],"inserted":false,"image":""}]`)
		a.must(http.StatusNoContent, http.MethodPost, path, cdrom(isoA))
		if got := a.state(uuid, "available"); got["reservation"] == nil || got["last_error"] != nil {
			t.Errorf("at first: reservation %v, last_error %v; want the lock and no error", got["reservation"], got["last_error"])
		}
		a.refused(http.StatusConflict, "is locked by host", http.MethodDelete, path, nil)
		time.Sleep(time.Hour)
		if got := a.state(uuid, "available"); got["reservation"] != nil || got["last_error"] != nil {
			t.Errorf("later: reservation %v, last_error %v; want neither", got["reservation"], got["last_error"])
		}
		drive(`[{"media_types":["CD","DVD"],"inserted":true,"image":"http://127.0.0.1/redfish/cdrom-` + uuid + `.iso"}]`)
		a.must(http.StatusNoContent, http.MethodDelete, path+"?device_types=floppy", nil)
		time.Sleep(time.Hour)
		drive(`[{"media_types":["CD","DVD"],"inserted":true,"image":"http://127.0.0.1/redfish/cdrom-` + uuid + `.iso"}]`)
		a.must(http.StatusNoContent, http.MethodDelete, path+"?device_types=floppy,cdrom", nil)
		time.Sleep(time.Hour)
		drive(`[{"media_types":["CD","DVD"],"inserted":false,"image":""}]`)
	})
}

func TestVirtualMedia_failureSetsLastError(t *testing.T) {
	t.Parallel()
	redfish := func(a *api) string { return a.redfish("n1", nil) }
	fakeHardware := func(a *api) string { return a.available("n1", nil) }
	ipmi := func(a *api) string {
		return a.node("n1", map[string]any{"driver": "ipmi", "driver_info": map[string]any{"ipmi_address": "10.0.0.1"}})
	}
	const noDetach = " from node U: Driver %s does not support detach_virtual_media (disabled or not implemented)."
	for _, tt := range []struct {
		node          func(*api) string
		method, query string
		body          any
		want          string
	}{
		{fakeHardware, "POST", "", cdrom(isoA), "Could not attach device cdrom to node U: Publishing images is not supported for driver " +
			"fake-hardware"},
		{fakeHardware, "DELETE", "", nil, "Could not detach device(s) None" + fmt.Sprintf(noDetach, "fake-hardware")},
		{fakeHardware, "DELETE", "?device_types=cdrom,disk", nil, "Could not detach device(s) ['cdrom', 'disk']" +
			fmt.Sprintf(noDetach, "fake-hardware")},
		{fakeHardware, "DELETE", "?device_types=", nil, "Could not detach device(s) []" + fmt.Sprintf(noDetach, "fake-hardware")},
		{ipmi, "POST", "", cdrom(isoA), "Could not attach device cdrom to node U: Publishing images is not supported for driver ipmi"},
		{ipmi, "DELETE", "", nil, "Could not detach device(s) None" + fmt.Sprintf(noDetach, "ipmi")},
		{
			redfish, "POST", "",
			map[string]any{"device_type": "floppy", "image_url": isoA},
			"Could not attach device floppy to node U: No suitable virtual media device found for node U to mount image " +
				"http://127.0.0.1/redfish/floppy-U.img",
		},
		{redfish, "POST", "", cdrom(isoB), "Could not attach device cdrom to node U: Validation of image href " + isoB +
			" failed, reason: no answer"},
		{redfish, "POST", "", cdrom(isoA), ""},
		{redfish, "DELETE", "", nil, ""},
	} {
		a := newAPI(t, &fakeironic.Server{ImageFault: func(url string) string {
			if url == isoB {
				return "no answer"
			}
			return ""
		}})
		uuid := tt.node(a)
		a.must(http.StatusNoContent, tt.method, "/v1/nodes/"+uuid+"/vmedia"+tt.query, tt.body)
		n, _ := a.fake.Node(uuid)
		if got := strings.ReplaceAll(n.LastError, uuid, "U"); got != tt.want {
			t.Errorf("%s %s %v: last_error = %q, want %q", tt.method, tt.query, tt.body, got, tt.want)
		}
	}
}

func TestVirtualMedia_failureKeepsTheImage(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{ImageFault: func(url string) string { return strings.TrimPrefix(url, isoA) }})
	uuid := a.redfish("n1", nil)
	path := "/v1/nodes/" + uuid
	a.must(http.StatusNoContent, http.MethodPut, path+"/management/boot_device", map[string]any{"boot_device": "cdrom"})
	a.must(http.StatusNoContent, http.MethodPost, path+"/vmedia", cdrom(isoA))
	a.must(http.StatusNoContent, http.MethodPost, path+"/vmedia", cdrom(isoB))
	a.power(uuid, "power on")
	if got := a.fake.BootedISO(uuid); got != isoA {
		t.Errorf("the machine starts from %q, want %q", got, isoA)
	}
}

func TestVirtualMedia_refusals(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.available("n1", nil)
	path := "/v1/nodes/" + uuid + "/vmedia"
	with := func(key string, value any) map[string]any {
		body := cdrom(isoA)
		body[key] = value
		return body
	}
	for _, tt := range []struct {
		method, path string
		body         any
		text         string
	}{
		{"POST", path, map[string]any{}, "Schema error for vmedia: 'device_type' is a required property"},
		{"POST", path, map[string]any{"device_type": "cdrom"}, "'image_url' is a required property"},
		{"POST", path, with("device_type", "usb"), "'usb' is not one of ['disk', 'cdrom', 'floppy']"},
		{"POST", path, with("device_type", nil), "None is not of type 'string'"},
		{"POST", path, with("extra", 1), "('extra' was unexpected)"},
		{"POST", path, with("image_download_source", "bogus"), "'bogus' is not one of ['http', 'local', 'swift']"},
		{"POST", path, with("image_url", "file:///x"), "Unsupported or missing URL scheme: file"},
		{"POST", path, with("image_url", "abc"), "Unsupported or missing URL scheme: "},
		{"POST", path, []any{}, "[] is not of type 'object'"},
		{"POST", path + "?x=1", cdrom(isoA), "Unexpected arguments: x"},
		{"DELETE", path + "?device_types=cdrom,bogus,x", nil, "Invalid device type(s) bogus, x (valid are disk, cdrom, floppy)"},
		{"DELETE", path + "?bogus=1", nil, "Unexpected arguments: bogus"},
		{"GET", path, nil, "Driver fake-hardware does not support get_virtual_media (disabled or not implemented)."},
	} {
		a.refused(http.StatusBadRequest, tt.text, tt.method, tt.path, tt.body)
	}
	if got := a.do(http.MethodPut, path, cdrom(isoA)); got.status != http.StatusMethodNotAllowed {
		t.Errorf("PUT = %d, want 405", got.status)
	}
	if got := a.state(uuid, "available")["last_error"]; got != nil {
		t.Errorf("last_error = %v after refusals, want none", got)
	}
}

func TestVirtualMedia_needManagementInterface(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		management string
		info       map[string]any
		status     int
		text       string
	}{
		{"ipmitool", map[string]any{}, http.StatusBadRequest, "Missing the following IPMI credentials"},
		{"redfish", map[string]any{}, http.StatusBadRequest, "Missing the following Redfish properties"},
		{"redfish", map[string]any{"redfish_address": "https://bmc"}, http.StatusInternalServerError, "Unexpected error raised by RPC"},
	} {
		a := newAPI(t, &fakeironic.Server{})
		uuid := a.node("n1", map[string]any{"management_interface": tt.management, "driver_info": tt.info})
		for _, request := range []struct {
			method string
			body   any
		}{{http.MethodPost, cdrom(isoA)}, {http.MethodDelete, nil}, {http.MethodGet, nil}} {
			a.refused(tt.status, tt.text, request.method, "/v1/nodes/"+uuid+"/vmedia", request.body)
		}
	}
}

func TestVirtualMedia_needAPIVersion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		max, asked        string
		get, post, delete int
	}{
		{"1.115", "1.93", 200, 204, 204},
		{"1.115", "1.92", 404, 204, 204},
		{"1.115", "1.89", 404, 204, 204},
		{"1.115", "1.88", 404, 404, 404},
		{"1.89", "1.89", 404, 204, 204},
		{"1.82", "1.89", 406, 406, 406},
		{"1.82", "1.82", 400, 400, 404}, // it answers as for any unknown part
	} {
		for method, want := range map[string]int{"GET": tt.get, "POST": tt.post, "DELETE": tt.delete} {
			a := newAPI(t, &fakeironic.Server{MaxMicroversion: tt.max})
			uuid := a.redfish("n1", nil)
			if got := a.at(tt.asked).do(method, "/v1/nodes/"+uuid+"/vmedia",
				map[string]any{"device_type": "cdrom", "image_url": isoA}); got.status != want {
				t.Errorf("%s at %s of %s = %d %s, want %d", method, tt.asked, tt.max, got.status, got.text, want)
			}
		}
	}
}
