package fakeoneview_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
)

// names returns the names of the members of a list.
func (a answer) names() []string {
	found := []string{}
	members, _ := a.body["members"].([]any)
	for _, member := range members {
		document, _ := member.(map[string]any)
		name, _ := document["name"].(string)
		found = append(found, name)
	}
	return found
}

func TestList_pagesHaveEachMemberOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, query string
		limit       int
		pages       int
	}{
		{"all at once, capped", "?count=-1", 0, 2},
		{"more than the cap", "?count=9999999", 0, 2},
		{"nothing asked for", "", 0, 2},
		{"small pages", "?count=100", 0, 3},
		{"a lower cap", "", 64, 5},
		{"with a filter", "?filter=" + url.QueryEscape("name matches 'Encl1_,%'"), 64, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fake := &fakeoneview.Server{PageLimit: tt.limit}
			fake.AddBlades(300)
			a := login(t, fake)
			seen, pages := map[string]int{}, 0
			var last answer
			for next := "/rest/server-hardware" + tt.query; next != ""; next = last.text1("nextPageUri") {
				last = a.get(next)
				pages++
				for _, name := range last.names() {
					seen[name]++
				}
			}
			if float64(len(seen)) != last.body["total"] || pages != tt.pages {
				t.Errorf("%d members on %d pages, want %v on %d", len(seen), pages, last.body["total"], tt.pages)
			}
			for name, times := range seen {
				if times != 1 {
					t.Errorf("%s came %d times", name, times)
				}
			}
		})
	}
}

func TestList_profilePagesHaveAtMost64(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	for _, uri := range fake.AddBlades(70).Hardware {
		fake.TakeHardware(uri)
	}
	a := login(t, &fake)
	first := a.get("/rest/server-profiles?count=-1")
	if len(first.names()) != 64 || first.text1("nextPageUri") == "" || first.body["prevPageUri"] != nil {
		t.Errorf("first page: %d members, next %q", len(first.names()), first.text1("nextPageUri"))
	}
	second := a.get(first.text1("nextPageUri"))
	if len(second.names()) != 6 || second.body["nextPageUri"] != nil || second.text1("prevPageUri") == "" {
		t.Errorf("second page: %d members, next %q", len(second.names()), second.text1("nextPageUri"))
	}
}

func TestList_filters(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	fleet := fake.AddBlades(3)
	for i, name := range []string{"web_1", "webX1", "Web%2"} {
		fake.AddProfile(fakeoneview.NewProfile{Name: name, HardwareURI: fleet.Hardware[i]})
	}
	fake.EditProfile(fake.Profiles()[2].URI, func(p map[string]any) { p["description"] = "42" })
	a := login(t, &fake)
	for _, tt := range []struct {
		filters []string
		want    string
	}{
		{[]string{`"name='web_1'"`}, "web_1"},
		{[]string{`name='web_1'`}, "web_1"},
		{[]string{`"'name'='WEB_1'"`}, "web_1"},
		{[]string{`"name eq 'WEBx1'"`}, "webX1"},
		{[]string{`"name == 'WEB_1'"`}, ""},
		{[]string{`"name seq 'web_1'"`}, "web_1"},
		{[]string{`"name ne 'web_1'"`}, "webX1 Web%2"},
		{[]string{`"name sne 'WEB_1'"`}, "web_1 webX1 Web%2"},
		{[]string{`"not name = 'web_1'"`}, "webX1 Web%2"},
		{[]string{`"name matches 'WEB_1'"`}, "web_1 webX1"},
		{[]string{`"name smatches 'web%'"`}, "web_1 webX1"},
		{[]string{`"name matches '%1'"`}, "web_1 webX1"},
		{[]string{`"name matches 'web'"`}, ""},
		{[]string{`"name regex '^WEB.[0-9]$'"`}, "web_1 webX1 Web%2"},
		{[]string{`"name sregex '^Web'"`}, "Web%2"},
		{[]string{`"name matches 'web%'"`, `"description = '42'"`}, "Web%2"},
		{[]string{`"description > '41'"`}, "Web%2"},
		{[]string{`"description >= 42"`}, "Web%2"},
		{[]string{`"description < '42'"`}, ""},
		{[]string{`"description <= '41.5'"`}, ""},
	} {
		query := url.Values{"filter": tt.filters}
		got := a.get("/rest/server-profiles?" + query.Encode())
		if strings.Join(got.names(), " ") != tt.want || got.status != http.StatusOK {
			t.Errorf("filter %v = %d %v, want %q", tt.filters, got.status, got.names(), tt.want)
		}
	}
	for _, bad := range []string{`name`, `"name='it's'"`, `name=web`, `"serverHardwareUri='x'"`, `"name regex '('"`, `"name < 'x'"`} {
		if got := a.get("/rest/server-profiles?" + url.Values{"filter": {bad}}.Encode()); got.status != http.StatusBadRequest {
			t.Errorf("filter %s = %d, want 400", bad, got.status)
		}
	}
}

func TestList_hardwareFilters(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	fleet := fake.AddBlades(3)
	fake.AddRackServers(2)
	fake.TakeHardware(fleet.Hardware[1])
	a := login(t, &fake)
	query := url.Values{"filter": {
		fmt.Sprintf(`"serverHardwareTypeUri='%s'"`, fleet.TypeURI), fmt.Sprintf(`"serverGroupUri='%s'"`, fleet.GroupURI),
		`"state='NoProfileApplied'"`,
	}}
	got := a.get("/rest/server-hardware?" + query.Encode())
	if want := []string{"Encl1, bay 1", "Encl1, bay 3"}; !slices.Equal(got.names(), want) {
		t.Errorf("free blades = %v, want %v", got.names(), want)
	}
	targets := a.get("/rest/server-profiles/available-targets?enclosureGroupUri=" + fleet.GroupURI +
		"&serverHardwareTypeUri=" + fleet.TypeURI)
	if all, _ := targets.body["targets"].([]any); len(all) != 2 {
		t.Errorf("available targets = %s", targets.text)
	}
}

func TestList_sort(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	for _, name := range []string{"b", "c", "a"} {
		fake.AddHardware(fakeoneview.Hardware{
			Name:   name,
			Status: fakeoneview.Status(map[string]string{"a": "OK", "b": "OK", "c": "Critical"}[name]),
		})
	}
	a := login(t, &fake)
	for order, want := range map[string]string{
		"": "b c a", "name:asc": "a b c", "name:descending": "c b a", "name": "a b c", "status:desc,name:desc": "b a c",
		"status:asc,name:asc": "c a b",
	} {
		if got := a.get("/rest/server-hardware?sort=" + order); strings.Join(got.names(), " ") != want {
			t.Errorf("sort=%s gives %v, want %s", order, got.names(), want)
		}
	}
	for _, bad := range []string{"sort=name:up", "start=x", "count=x"} {
		if got := a.get("/rest/server-hardware?" + bad); got.status != http.StatusBadRequest {
			t.Errorf("%s = %d, want 400", bad, got.status)
		}
	}
}
