// Package replay sends to the fake what acceptance tests have sent to a real Ironic, and compares the answers. Only tests import it.
package replay

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// stepTime is how long each step of the fake takes. The clock is virtual, and goes on only when Ironic was done with something.
const stepTime = time.Minute

// player sends the exchanges of a site to a fake.
type player struct {
	comparison

	fake *fakeironic.Server
	all  []site.Exchange

	pending map[string]bool // nodes and allocations, by UUID, with which Ironic was not done when it showed them last
}

// Play sends exchanges to a fake, which has a step time, and returns where its answers differ. It needs a virtual clock.
func Play(ctx context.Context, fake *fakeironic.Server, all []site.Exchange) []Difference {
	fake.StepTime = stepTime
	p := &player{fake: fake, all: all, pending: map[string]bool{}}
	p.fakeOf, p.realOf = map[string]string{}, map[string]string{}
	for i, e := range all {
		if created := e.Method == http.MethodPost && e.URL == "/v1/allocations" && e.Status == http.StatusCreated; created {
			if _, shown := p.nodeOf(i); !shown {
				break // nobody knows what this allocation has, and what is left for others
			}
		}
		p.play(ctx, i)
	}
	return p.found
}

// play sends an exchange. The fake is behind Ironic if it still works on nodes: it gets time while its answer is another one.
func (p *player) play(ctx context.Context, i int) {
	e := p.all[i]
	path, _, _ := strings.Cut(e.URL, "?")
	p.request = e.Method + " " + template(path)
	if unsettled(e) || strings.HasPrefix(path, "/v1/lookup") || strings.HasPrefix(path, "/v1/heartbeat") {
		return
	}
	known, get := len(p.found), e.Method == http.MethodGet
	if id := uuid.FindString(path); get && e.Status == http.StatusOK && id != "" && p.fakeOf[id] == "" &&
		!strings.HasPrefix(path, "/v1/chassis") {
		return // about what another test has made
	}
	for !get && p.behind() {
		<-time.After(stepTime)
	}
	if strings.HasPrefix(path, "/v1/chassis") {
		p.share(ctx, e)
	}
	p.note(answer(e.Answer))
	if parts := strings.Split(path, "/"); len(parts) > 3 && e.Status == http.StatusAccepted {
		p.pending[parts[3]] = true
	}
	for {
		release := p.choose(i)
		status, body := p.send(ctx, e)
		release()
		p.found = p.found[:known]
		if !get || !p.raced(i) && !p.unfinished(e) {
			p.compare(e, status, body)
		}
		behind := len(p.found) > known
		if real, _ := answer(e.Answer).(map[string]any); get && busy(real) {
			behind = waits(real) && !waits(p.node(real))
		}
		refused := status/100 != 2 && e.Status/100 == 2
		if !behind || !get && !refused || p.settled(e) {
			return
		}
		<-time.After(stepTime)
	}
}

// note notes whether Ironic is done with the nodes and allocations that it shows.
func (p *player) note(shown any) {
	switch v := shown.(type) {
	case []any:
		for _, item := range v {
			p.note(item)
		}
	case map[string]any:
		for _, value := range v {
			p.note(value)
		}
		id, _ := v["uuid"].(string)
		_, isNode := v["reservation"]
		_, isAllocation := v["candidate_nodes"]
		switch {
		case isAllocation && v["state"] != "active" && v["state"] != "error":
			p.pending["allocation "+id] = true
		case isNode && busy(v):
			p.pending[id] = true
		case isAllocation || isNode:
			delete(p.pending, id)
			delete(p.pending, "allocation "+id)
		}
	}
}

// ofAllocations reports whether an exchange shows allocations. They end with the work of Ironic on nodes that the answer does not name.
func ofAllocations(e site.Exchange) bool { return strings.HasPrefix(e.URL, "/v1/allocations") }

// unfinished reports whether an answer may be about something with which Ironic was not done.
func (p *player) unfinished(e site.Exchange) bool {
	for id := range p.pending {
		if ofAllocations(e) || strings.HasPrefix(id, "allocation ") || strings.Contains(e.URL, id) || strings.Contains(e.Answer, id) {
			return true
		}
	}
	return false
}

// waits reports whether a node waits for its ramdisk.
func waits(node map[string]any) bool {
	state, _ := node["provision_state"].(string)
	return strings.HasSuffix(state, " wait") || state == "wait call-back"
}

// node returns a node of the fake.
func (p *player) node(real map[string]any) map[string]any {
	id, _ := real["uuid"].(string)
	node, _ := p.fake.Node(p.toFake(id))
	return node.Raw
}

// compare notes the differences between Ironic's answer and the fake's.
func (p *player) compare(e site.Exchange, status int, body string) {
	if status != e.Status {
		p.differ("status", []any{e.Status, answer(e.Answer)}, []any{status, answer(body)})
		return
	}
	p.values("", p.own(e, answer(e.Answer)), p.own(e, answer(body)))
}

// accident is what Ironic says if it worked on the node, if its conductor was too busy to answer its API, or if another client deleted a
// port group of a port that it was about to list.
var accident = regexp.MustCompile(`is locked by host|while a state transition is in progress|Unable to establish connection to http|` +
	`Portgroup \d+ could not be found`)

// unsettled reports whether Ironic refused a request for a reason that sending it to the fake does not bring back.
func unsettled(e site.Exchange) bool {
	return e.Status >= http.StatusBadGateway || e.Status/100 != 2 && accident.MatchString(e.Answer)
}

// raced reports whether something was changed while a request was answered.
func (p *player) raced(i int) bool {
	changes := func(e site.Exchange) bool { return e.Method != http.MethodGet }
	if slices.ContainsFunc(p.all[min(p.all[i].Began, i):i], changes) {
		return true
	}
	return slices.ContainsFunc(p.all[i+1:], func(e site.Exchange) bool { return e.Began <= i && changes(e) })
}

// settled reports whether the fake is done with all nodes that an exchange names, or that may end its allocations.
func (p *player) settled(e site.Exchange) bool {
	return !slices.ContainsFunc(p.fake.Nodes(), func(n fakeironic.Node) bool {
		names := func(id string) bool {
			return id != "" && (strings.Contains(e.URL, id) || strings.Contains(e.Answer, id))
		}
		return busy(n.Raw) && (ofAllocations(e) || names(p.realOf[n.UUID]) || names(n.Name))
	})
}

// choose makes the fake allocate the node that Ironic has chosen, of several that fit, until release is called.
func (p *player) choose(i int) (release func()) {
	chosen := ""
	if e := p.all[i]; e.Method == http.MethodPost && e.URL == "/v1/allocations" {
		chosen, _ = p.nodeOf(i)
	}
	var hidden []string
	for _, n := range p.fake.Nodes() {
		if chosen != "" && n.UUID != p.toFake(chosen) && !n.Maintenance {
			hidden = append(hidden, n.UUID)
			p.fake.Set(n.UUID, "maintenance", true)
		}
	}
	return func() {
		p.fake.Nodes() // now the allocation has been processed
		for _, node := range hidden {
			p.fake.Set(node, "maintenance", false)
		}
	}
}

// nodeOf returns the node of an allocation that exchange i creates, "" if it has failed, and whether an answer shows that.
func (p *player) nodeOf(i int) (node string, shown bool) {
	created, _ := answer(p.all[i].Answer).(map[string]any)
	allocation, _ := created["uuid"].(string)
	lost := false
	var find func(shown any)
	find = func(value any) {
		switch v := value.(type) {
		case []any:
			for _, item := range v {
				find(item)
			}
		case map[string]any:
			for _, member := range v {
				find(member)
			}
			id, has := v["node_uuid"].(string)
			reason, _ := v["last_error"].(string)
			switch {
			case v["uuid"] != allocation:
			case strings.Contains(reason, "filtered out"):
				lost = true // to another one, at the same time
			case has || v["state"] == "error":
				node, shown = id, true
			}
			if id, is := v["uuid"].(string); is && v["instance_uuid"] == allocation {
				node, shown = id, true
			}
		}
	}
	for _, e := range p.all[i:] {
		if !shown && !lost && allocation != "" && strings.Contains(e.Answer, allocation) {
			find(answer(e.Answer))
		}
	}
	return node, shown
}

// behind reports whether the fake works on a node with which Ironic is done.
func (p *player) behind() bool {
	return slices.ContainsFunc(p.fake.Nodes(), func(n fakeironic.Node) bool { return busy(n.Raw) && !p.pending[p.realOf[n.UUID]] })
}

// share gives the fake the chassis that Ironic must have had when it got a request: tests of one Ironic share the chassis in which the
// provider keeps its limits.
func (p *player) share(ctx context.Context, e site.Exchange) {
	body, _ := answer(e.Body).(map[string]any)
	shown, _ := answer(e.Answer).(map[string]any)
	id := uuid.FindString(e.URL)
	if id == "" {
		id, _ = body["uuid"].(string)
	}
	send := func(method, path string, body any) {
		text, _ := json.Marshal(body) // came from JSON
		p.send(ctx, site.Exchange{Method: method, URL: "/v1/chassis" + path, Version: e.Version, Body: string(text)})
	}
	send(http.MethodDelete, "/"+id, nil)
	if e.Status == http.StatusNotFound || e.Status == http.StatusCreated || id == "" {
		return
	}
	var edits []struct{ Op, Path string }
	_ = json.Unmarshal([]byte(e.Body), &edits) // what is no patch has none
	extra, _ := shown["extra"].(map[string]any)
	if extra == nil {
		extra = map[string]any{}
	}
	for _, edit := range edits { // of extra.KEY.MEMBER
		parts := strings.Split(edit.Path, "/")
		if len(parts) != 4 {
			continue
		}
		if extra[parts[2]] == nil {
			extra[parts[2]] = map[string]any{}
		}
		if members, is := extra[parts[2]].(map[string]any); is && e.Status == http.StatusOK && edit.Op != "add" {
			members[parts[3]] = 0
		}
	}
	send(http.MethodPost, "", map[string]any{"uuid": id, "extra": extra, "description": shown["description"]})
	if shown["updated_at"] != nil {
		send(http.MethodPatch, "/"+id, []any{map[string]any{"op": "add", "path": "/description", "value": shown["description"]}})
	}
}

// own leaves out of a list what other tests have made.
func (p *player) own(e site.Exchange, list any) any {
	path, _, _ := strings.Cut(e.URL, "?")
	kind := strings.Split(strings.Trim(path, "/"), "/")
	object, _ := list.(map[string]any)
	if e.Method != http.MethodGet || object == nil || len(kind) > 3 || len(kind) == 3 && kind[2] != "detail" || len(kind) < 2 {
		return list
	}
	items, is := object[kind[1]].([]any)
	if !is {
		return list
	}
	delete(object, "next")
	var ours []any
	for _, item := range items {
		id, _ := item.(map[string]any)["uuid"].(string)
		if kind[1] != "chassis" && (p.fakeOf[id] != "" || p.realOf[id] != "") {
			ours = append(ours, item)
		}
	}
	object[kind[1]] = ours
	return object
}

// send sends a request to the fake.
func (p *player) send(ctx context.Context, e site.Exchange) (status int, body string) {
	target, err := url.Parse("http://ironic.test" + p.toFake(e.URL))
	if err != nil {
		return 0, err.Error()
	}
	r := (&http.Request{
		Method: e.Method, URL: target, Host: target.Host, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(p.toFake(e.Body))),
	}).WithContext(ctx)
	if e.Version != "" {
		r.Header.Set("X-OpenStack-Ironic-API-Version", e.Version)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := p.fake.RoundTrip(r)
	if err != nil {
		return 0, err.Error()
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}
