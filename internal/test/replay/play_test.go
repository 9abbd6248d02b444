package replay_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/replay"
)

const (
	node     = "/v1/nodes/11111111-1111-4111-8111-111111111111"
	instance = "22222222-2222-4222-8222-222222222222"
)

// created are exchanges that create a node, which gets a UUID from Ironic.
var created = []site.Exchange{{
	Method: "POST", URL: "/v1/nodes", Body: `{"driver": "fake-hardware", "name": "n", "extra": {"n": 1}}`, Status: 201,
	Answer: `{"uuid": "11111111-1111-4111-8111-111111111111"}`,
}}

func TestPlay_findsWhatTheFakeAnswersOtherwise(t *testing.T) {
	t.Parallel()
	const shows = node + "?fields=uuid,name,extra"
	for name, tt := range map[string]struct {
		exchange site.Exchange
		want     []string // places
	}{
		"the same": {site.Exchange{Method: "GET", URL: shows, Status: 200, Answer: `{"uuid": "11111111-1111-4111-8111-111111111111",
			"name": "n", "extra": {"n": 1}, "links": [
				{"href": "http://127.0.0.1:9/v1/nodes/11111111-1111-4111-8111-111111111111", "rel": "self"},
				{"href": "http://127.0.0.1:9/nodes/11111111-1111-4111-8111-111111111111", "rel": "bookmark"}]}`}, nil},
		"another number, a field too much, and one too few": {site.Exchange{Method: "GET", URL: shows, Status: 200, Answer: `{"name": "n",
			"uuid": "11111111-1111-4111-8111-111111111111", "extra": {"n": 1.0}, "more": 1}`}, []string{"extra.n", "links", "more"}},
		"another node": {
			site.Exchange{Method: "GET", URL: node + "?fields=uuid", Status: 200, Answer: `{"uuid": "` + instance + `", "links": []}`},
			[]string{"links", "uuid"},
		},
		"another status": {site.Exchange{Method: "DELETE", URL: node, Status: 409, Answer: `{}`}, []string{"status"}},
		"another text": {site.Exchange{
			Method: "GET", URL: "/v1/nodes/nope", Status: 404, Answer: `{"error_message": "{\"faultstring\": \"no such node\"}"}`,
		}, []string{"error"}},
		"what was refused because of a lock": {
			site.Exchange{Method: "DELETE", URL: node, Status: 409, Answer: "Node n is locked by host h"}, nil,
		},
		"what was refused because a port group was deleted meanwhile": {
			site.Exchange{Method: "GET", URL: "/v1/ports", Status: 404, Answer: "Portgroup 1 could not be found."}, nil,
		},
		"a node at work": {site.Exchange{Method: "GET", URL: node + "?fields=uuid,reservation", Status: 200, Answer: `{"links": [],
			"uuid": "11111111-1111-4111-8111-111111111111", "reservation": "h"}`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := places(t, append(slices.Clone(created), tt.exchange)); !slices.Equal(got, tt.want) {
				t.Errorf("differences in %v, want %v", got, tt.want)
			}
		})
	}
}

// The fake gets time when Ironic is done, and not before.
func TestPlay_waitsForTheFakeAsLongAsIronicWorked(t *testing.T) {
	t.Parallel()
	const fields = "?fields=uuid,provision_state,reservation"
	shown := func(state, lock string) site.Exchange {
		return site.Exchange{Method: "GET", URL: node + fields, Status: 200, Answer: `{"links": [],
			"uuid": "11111111-1111-4111-8111-111111111111", "provision_state": "` + state + `", "reservation": ` + lock + `}`}
	}
	manage := site.Exchange{
		Method: "PUT", URL: node + "/states/provision", Body: `{"target": "manage"}`, Status: 202,
	}
	refused := site.Exchange{Method: "PUT", URL: manage.URL, Body: manage.Body, Status: 400}
	for name, tt := range map[string]struct {
		all  []site.Exchange
		want []string
	}{
		"done": {[]site.Exchange{manage, shown("verifying", `"h"`), shown("manageable", "null")}, []string{"links"}},
		"ended elsewhere": {
			[]site.Exchange{manage, shown("verifying", `"h"`), shown("enroll", "null")}, []string{"links", "provision_state"},
		},
		"refused by Ironic":    {[]site.Exchange{refused}, []string{"status"}},
		"asked while it works": {[]site.Exchange{manage, refused}, []string{"status"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := places(t, append(slices.Clone(created), tt.all...)); !slices.Equal(got, tt.want) {
				t.Errorf("differences in %v, want %v", got, tt.want)
			}
		})
	}
}

// places plays exchanges and returns where the fake's answers differ, but for those of the creation, which are short here.
func places(t *testing.T, all []site.Exchange) (found []string) {
	t.Helper()
	for i := range all {
		all[i].Began, all[i].Version = i, "1.82"
	}
	synctest.Test(t, func(t *testing.T) {
		for _, d := range replay.Play(t.Context(), &fakeironic.Server{MaxMicroversion: "1.82"}, all) {
			if d.Request != "POST /v1/nodes" {
				found = append(found, d.Place)
			}
		}
	})
	return found
}

func TestKnown_coversByRequestPlaceAndVersion(t *testing.T) {
	t.Parallel()
	known, err := replay.ReadKnown("" +
		"| Request | Place |\n|---|---|\n" +
		"| `GET /v1/nodes*` | `*health` | 39.0 | why |\n| `*` | `a.b` | all | why |\n")
	if err != nil || len(known) != 2 {
		t.Fatalf("%v, %v", known, err)
	}
	for _, tt := range []struct {
		request, place, ironic string
		want                   bool
	}{
		{"GET /v1/nodes/{}", "health", "39.0", true},
		{"GET /v1/nodes", "nodes[].health", "39.0", true},
		{"GET /v1/nodes", "nodes[].health", "21.4", false},
		{"PATCH /v1/nodes/{}", "health", "39.0", false},
		{"PUT /v1/x", "a.b", "21.4", true},
		{"PUT /v1/x", "axb", "21.4", false},
	} {
		d := replay.Difference{Request: tt.request, Place: tt.place}
		if got := slices.ContainsFunc(known, func(k replay.Known) bool { return k.Covers(d, tt.ironic) }); got != tt.want {
			t.Errorf("%s %s of %s: %t", tt.request, tt.place, tt.ironic, got)
		}
	}
	if _, err := replay.ReadKnown("no table"); err == nil {
		t.Error("a page without a table is read")
	}
}
