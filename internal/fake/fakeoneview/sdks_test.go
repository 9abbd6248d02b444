package fakeoneview_test

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
)

// sdkCalls are the requests that HPE's SDKs for Go and Python send for servers, profiles, templates, tasks and power: SDK and call, method,
// path, body, status.
//
//go:embed testdata/sdks.tsv
var sdkCalls string

func TestServer_answersTheCallsOfHPEsSDKs(t *testing.T) {
	t.Parallel()
	for sdk, contentType := range map[string]string{"golang": "application/json; charset=utf-8", "python": ""} {
		t.Run(sdk, func(t *testing.T) {
			t.Parallel()
			fake := &fakeoneview.Server{MissingIfMatch: http.StatusOK}
			blades, rack := fake.AddBlades(3), fake.AddRackServers(1)
			web := fake.AddProfile(fakeoneview.NewProfile{Name: "web", HardwareURI: blades.Hardware[0], TemplateURI: blades.TemplateURI})
			a := login(t, fake)
			a.patchType = contentType
			task := a.begin(http.MethodPut, blades.Hardware[0]+"/powerState", power("On", "MomentaryPress"))
			a.begin(http.MethodPut, blades.Hardware[0]+"/powerState", power("Off", "PressAndHold"))
			names := strings.NewReplacer("{blade}", blades.Hardware[0], "{free}", blades.Hardware[1], "{rack}", rack.Hardware[0], "{type}",
				blades.TypeURI, "{group}", blades.GroupURI, "{template}", blades.TemplateURI, "{rack template}", rack.TemplateURI,
				"{profile}", web, "{task}", task)
			for line := range strings.Lines(sdkCalls) {
				column := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
				if !strings.HasPrefix(column[0], sdk) {
					continue
				}
				path := names.Replace(column[2])
				got := a.do(column[1], path, a.sdkBody(column[3], path, blades))
				if strconv.Itoa(got.status) != column[4] {
					t.Errorf("%s: %d %s, want %s", column[0], got.status, got.text, column[4])
				}
				if got.status == http.StatusAccepted {
					a.get(got.header.Get("Location")).wantTask(t, fakeoneview.TaskCompleted, "")
				}
			}
		})
	}
}

// sdkBody returns the body of a call, "{same}" being what is at the path.
func (a *api) sdkBody(body, path string, blades fakeoneview.Fleet) string {
	a.t.Helper()
	var document map[string]any
	switch body {
	case "{same}":
		document = a.get(path).body
	case "{new profile}":
		document = a.newProfile(blades.TemplateURI, blades.Hardware[1], "web-2")
	case "{profile of template}":
		document = a.get(blades.TemplateURI).body
		document["type"], document["name"], document["serverHardwareUri"] = "ServerProfileV11", "web-3", blades.Hardware[2]
		document["serverProfileTemplateUri"] = blades.TemplateURI
	case "{new template}":
		document = a.get(blades.TemplateURI).body
		document["name"] = "template-3"
	default:
		return body
	}
	encoded, err := json.Marshal(document)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(encoded)
}
