package simulate_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"testing"
)

var listSeeds = flag.String("lists", "1-15", "which lives TestSimulate_lists lives: first-last")

// Whatever lists lack: no more machines than the limit says have an operation in progress, no more members of a group are away than may be,
// and nothing happens to a machine that no plan has shown.
func TestSimulate_lists(t *testing.T) {
	t.Parallel()
	var first, last uint64
	if _, err := fmt.Sscanf(*listSeeds, "%d-%d", &first, &last); err != nil {
		t.Fatalf("lists %q: %v", *listSeeds, err)
	}
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprintf("lives/%d", seed), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				l := begin(seed)
				l.onlyLists = true
				l.live(t, seed)
			})
		})
		t.Run(fmt.Sprintf("rollouts/%d", seed), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) { liveRollouts(t, seed, true) })
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
