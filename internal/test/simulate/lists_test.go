package simulate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"testing"
	"time"
)

var listSeeds = seedsFlag("lists", "1-15", "which lives TestSimulate_lists lives")

// Whatever lists lack: no more machines than the limit says have an operation in progress, no more members of a group are away than may be,
// and nothing happens to a machine that no plan has shown.
func TestSimulate_lists(t *testing.T) {
	t.Parallel()
	for seed := range seedsOf(t, listSeeds) {
		t.Run(fmt.Sprintf("lives/%d", seed), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				l := begin(seed)
				l.only = onlyLists
				l.live(t, seed)
			})
		})
		t.Run(fmt.Sprintf("rollouts/%d", seed), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) { liveRollouts(t, seed, onlyLists) })
		})
	}
}

// A list of a data source that is empty for once takes no deployment away: the plan fails, or the list is requested again.
func TestLists_dataSourceThatIsEmptyOnce(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"hosts", "allocations"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				s := newSite(1)
				s.fake.AddFleet(1, fleetClass)
				defer s.check(t, kind)
				w := s.workspace("w", nil)
				list := "data.metal_" + kind + ".all"
				full := configuration{
					"metal_allocation.a": {"name": "a", "resource_class": fleetClass},
					"metal_deployment.a": {
						"node_id": reference{"metal_allocation.a", "node_id"}, "allocation_id": reference{"metal_allocation.a", "id"},
						"image": imageAt("http://images.test/v1"),
					},
				}
				if w.apply(t, full, death{}).failed {
					s.broken("the first apply has failed")
				}
				<-time.After(time.Hour)
				s.forget()
				empty := true
				s.fault = func(r *http.Request) *fault {
					if !empty || path.Base(r.URL.Path) != map[string]string{"hosts": "nodes", "allocations": "allocations"}[kind] {
						return nil
					}
					empty = false
					return &fault{name: listEmpty, list: true}
				}
				left := configuration{list: {"resource_class": fleetClass}} // what for_each leaves of a list without elements
				if end := w.apply(t, left, death{}); !end.failed && end.plan.changes[list].planned.GetAttr("ids").LengthInt() == 0 {
					s.broken("an empty list takes the deployment away")
				}
				if empty {
					s.broken("no list was empty")
				}
			})
		})
	}
}

// lists are the lists of Ironic that may be wrong, by the last part of their path, and the names of their arrays.
var lists = map[string]string{
	"nodes": "nodes", "ports": "ports", "portgroups": "portgroups", "allocations": "allocations", "detail": "ports",
}

// The ways in which a list is wrong: a database that has failed over has nothing, or what was there before; a proxy loses a page.
const (
	listEmpty = "an empty list"
	listCut   = "a list without its end"
	listOld   = "the list before"
)

// faultOfList chooses the fault of a list: none for two of three.
func (s *site) faultOfList(r *http.Request) *fault {
	if r.Method != http.MethodGet || r.URL.Host != siteHost || lists[path.Base(r.URL.Path)] == "" || s.below(3) > 0 {
		return nil
	}
	kinds := []string{listEmpty, listEmpty, listCut, listOld}
	return &fault{name: kinds[s.below(len(kinds))], list: true}
}

// spoil makes the answer to a request for a list wrong. It keeps the right one as that before.
func (s *site) spoil(run string, r *http.Request, resp *http.Response, what *fault) {
	key := lists[path.Base(r.URL.Path)]
	if r.Method != http.MethodGet || key == "" || resp.StatusCode != http.StatusOK {
		return
	}
	body, _ := io.ReadAll(resp.Body)
	defer func() {
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		resp.Header.Del("Content-Length")
	}()
	s.mu.Lock()
	id := run + " " + r.URL.String() // an older answer than those of the run shows an older site, which nobody can know
	before := s.listed[id]
	if s.listed == nil {
		s.listed = map[string][]byte{}
	}
	s.listed[id] = slices.Clone(body)
	s.mu.Unlock()
	if what == nil || !what.list {
		return
	}
	var answer map[string]any
	_ = json.Unmarshal(body, &answer)
	all, _ := answer[key].([]any)
	if len(all) == 0 {
		return
	}
	s.tell("%s: %s: %s", run, r.URL.Path, what.name)
	switch what.name {
	case listOld:
		if before != nil {
			body = before
		}
		return
	case listCut:
		all = all[:s.below(len(all))]
	default:
		all = []any{}
	}
	answer[key] = all
	body, _ = json.Marshal(answer)
}
