package oneview_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

func TestListReadsAllPagesAndFilters(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 150)
		rack := s.appliance.AddRackServers(3)
		s.appliance.PageLimit = 40
		c := s.client(t)
		list := func(f oneview.HardwareFilter) []oneview.Hardware {
			found, err := c.ListHardware(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
		taken := s.appliance.TakeHardware(s.blades.Hardware[7])
		seventh := s.appliance.HardwareAt(s.blades.Hardware[7])
		for _, tt := range []struct {
			name   string
			filter oneview.HardwareFilter
			want   int
		}{
			{"all", oneview.HardwareFilter{}, 153},
			{"by name, in another case", oneview.HardwareFilter{Name: "ENCL1, BAY 8"}, 1},
			{"by a name that is a pattern", oneview.HardwareFilter{Name: "Encl1, bay _"}, 0},
			{"by a name with a quote", oneview.HardwareFilter{Name: "Encl1' or 'a'='a"}, 0},
			{"by serial", oneview.HardwareFilter{SerialNumber: seventh.SerialNumber}, 1},
			{"by type", oneview.HardwareFilter{HardwareTypeURI: rack.TypeURI}, 3},
			{"by group", oneview.HardwareFilter{GroupURI: s.blades.GroupURI}, 150},
			{"by MAC", oneview.HardwareFilter{MAC: "52-54-00-00-07-00"}, 1},
			{
				"free ones of a type",
				oneview.HardwareFilter{HardwareTypeURI: s.blades.TypeURI, State: oneview.HardwareNoProfileApplied},
				149,
			},
		} {
			if got := list(tt.filter); len(got) != tt.want {
				t.Errorf("%s: %d found, want %d", tt.name, len(got), tt.want)
			}
		}
		got := list(oneview.HardwareFilter{MAC: "52:54:00:00:07:00"})[0]
		if got.ProfileURI != taken || got.PowerState != oneview.PowerOn || got.State != oneview.HardwareProfileApplied ||
			got.Name != "Encl1, bay 8" ||
			len(got.ManagementAddresses) != 1 || got.ManagementAddresses[0] != seventh.ILOAddress {
			t.Errorf("found %+v", got)
		}
		profiles, err := c.ListProfiles(t.Context(), oneview.ProfileFilter{NamePrefix: "OTHER-"})
		if err != nil || len(profiles) != 1 || profiles[0].URI != taken || profiles[0].Created.IsZero() {
			t.Errorf("ListProfiles = %+v, %v", profiles, err)
		}
		templates, err := c.ListTemplates(t.Context(), oneview.TemplateFilter{HardwareTypeURI: rack.TypeURI})
		if err != nil || len(templates) != 1 || templates[0].URI != rack.TemplateURI || templates[0].MACType != "Physical" ||
			!templates[0].ManageBoot {
			t.Errorf("ListTemplates = %+v, %v", templates, err)
		}
	})
}

func TestListEndsWherePagesRepeat(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 150)
		s.appliance.PageLimit = 100
		s.appliance.Inject(fakeoneview.Fault{
			Method: "GET", Path: `/server-hardware$`, Nth: 2, Count: fakeoneview.Always,
			Effect: fakeoneview.PageLoop(),
		})
		found, err := s.client(t).ListHardware(t.Context(), oneview.HardwareFilter{})
		if err != nil || len(found) != 150 {
			t.Errorf("ListHardware = %d, %v, want 150", len(found), err)
		}
	})
}

func TestListIsBounded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		page func(r *http.Request) io.Reader
		says string
	}{
		"fresh pages": {func(r *http.Request) io.Reader {
			return strings.NewReader(`{"members": [{}], "nextPageUri": "/rest/server-hardware?start=` + r.URL.Query().Get("start") + `1"}`)
		}, "more than 2000 pages"},
		"an endless page": {func(*http.Request) io.Reader {
			return io.MultiReader(strings.NewReader(`{"members": ["`), endless{})
		}, "more than 64 MiB"},
	} {
		inVirtualTime(t, func(t *testing.T) {
			s := newSite(t, 1)
			c := client(t, roundTripper(func(r *http.Request) (*http.Response, error) {
				if !strings.HasSuffix(r.URL.Path, "/server-hardware") {
					return s.appliance.RoundTrip(r)
				}
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(tt.page(r)), Request: r}, nil
			}))
			_, err := c.ListHardware(t.Context(), oneview.HardwareFilter{})
			if err == nil || !strings.Contains(err.Error(), tt.says) || oneview.IsTransient(err) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// endless is a text without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestProfileRefusesOtherURIs(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		c := s.client(t)
		for _, uri := range []string{
			"", "/", "/rest/server-profiles", "/rest/server-profiles/", "/rest/server-profiles/..", "/rest/server-profiles/1/../2",
			"/rest/server-profiles/?filter=x", "/rest/server-profiles/%2e", "https://elsewhere.test/rest/tasks/1",
			"/rest/server-hardware/1",
		} {
			if _, err := c.Profile(t.Context(), uri); err == nil || oneview.IsNotFound(err) {
				t.Errorf("Profile(%q): %v, want it refused", uri, err)
			}
		}
		if n := len(s.appliance.Requests()); n > 0 {
			t.Errorf("%d requests were sent", n)
		}
	})
}
