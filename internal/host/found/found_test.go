package found_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/found"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/naming"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// mark is what the discovery rack12 writes into a node that it calls web.
func mark() notes.Discovery {
	return notes.Discovery{Version: 1, Owner: "rack12", Name: "web", From: "serial-number", At: "2026-01-01T00:00:00Z"}
}

// markOf is what the fake's database has of a node's discovery.
func markOf(t *testing.T, fake *fakeironic.Server, id string) *notes.Discovery {
	t.Helper()
	extra, _ := ironictest.NodeOf(t, fake, id).Raw["extra"].(map[string]any)
	return notes.DiscoveryOf(&ironic.Node{Extra: extra})
}

// wantClaimed fails the test unless a node has its name and mark, and no claim is left on it.
func wantClaimed(t *testing.T, fake *fakeironic.Server, id string, want notes.Discovery) {
	t.Helper()
	node, got := ironictest.NodeOf(t, fake, id), markOf(t, fake, id)
	if got != nil {
		want.Claim = got.Claim // is random
	}
	if node.Name != want.Name || node.InstanceUUID != "" || got == nil || *got != want {
		t.Errorf("name %q, instance_uuid %q, mark %+v; want name and mark %+v", node.Name, node.InstanceUUID, got, want)
	}
}

// wantUntouched fails the test unless a node is as discovery has made it.
func wantUntouched(t *testing.T, fake *fakeironic.Server, id string) {
	t.Helper()
	if node := ironictest.NodeOf(t, fake, id); node.Name != "" || node.InstanceUUID != "" || markOf(t, fake, id) != nil {
		t.Errorf("name %q, instance_uuid %q, extra %v; want nothing", node.Name, node.InstanceUUID, node.Raw["extra"])
	}
}

// wantLost fails the test unless a claim was lost for the given reason.
func wantLost(t *testing.T, err error, reason string) {
	t.Helper()
	if !failure.Is(err, found.KindClaimLost) || !strings.Contains(err.Error(), reason) {
		t.Errorf("%v, want that the claim is lost: %s", err, reason)
	}
}

func TestClaim_oneOfTwentyWins(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{}
		id := fake.Discover(fakeironic.SampleInventory(1))
		var winner atomic.Pointer[notes.Discovery]
		var wg sync.WaitGroup
		for n := range 20 {
			client := sitetest.NewClient(fake) // a process of its own
			wg.Go(func() {
				m := mark()
				m.Owner, m.Name = fmt.Sprint("rack", n), fmt.Sprint("web", n)
				err := found.Claim(t.Context(), client.Site, id, m)
				if err == nil && !winner.CompareAndSwap(nil, &m) {
					t.Errorf("%s and %s have both won", winner.Load().Owner, m.Owner)
				}
				if err != nil {
					wantLost(t, err, "")
				}
			})
		}
		wg.Wait()
		if winner.Load() == nil {
			t.Fatal("no claim succeeded")
		}
		wantClaimed(t, fake, id, *winner.Load())
	})
}

func TestClaim_repeated(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	client := sitetest.NewClient(fake)
	id := fake.Discover(fakeironic.SampleInventory(1))
	for range 2 {
		if err := found.Claim(t.Context(), client.Site, id, mark()); err != nil {
			t.Fatal(err)
		}
		wantClaimed(t, fake, id, mark())
		fake.Set(id, "name", nil) // a rename behind the back is repaired
	}
}

func TestClaim_unavailableNodes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, reason string
		change       func(t *testing.T, fake *fakeironic.Server, id string)
	}{
		{"gone", "the node does not exist any more", func(t *testing.T, fake *fakeironic.Server, id string) {
			ironictest.AsOther(t, fake, http.MethodDelete, "nodes/"+id, nil)
		}},
		{"named", "another client has named it db", func(_ *testing.T, fake *fakeironic.Server, id string) { fake.Set(id, "name", "db") }},
		{"at work", "it is in state manageable", func(_ *testing.T, fake *fakeironic.Server, id string) {
			fake.Set(id, "provision_state", "manageable")
		}},
		{"claimed", "another run is claiming it", func(_ *testing.T, fake *fakeironic.Server, id string) {
			fake.Set(id, "instance_uuid", ironic.NewUUID())
		}},
		{"of another discovery", "it belongs to rack11", func(_ *testing.T, fake *fakeironic.Server, id string) {
			fake.Set(id, "extra", map[string]any{"terraform_metal_discovery": map[string]any{"v": 1, "owner": "rack11", "name": "x"}})
		}},
		{"named by another run of mine", "another run of rack12 has named it x", func(_ *testing.T, fake *fakeironic.Server, id string) {
			fake.Set(id, "extra", map[string]any{"terraform_metal_discovery": map[string]any{"v": 1, "owner": "rack12", "name": "x"}})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fake := &fakeironic.Server{}
			id := fake.Discover(fakeironic.SampleInventory(1))
			tt.change(t, fake, id)
			before, exists := fake.Node(id)
			wantLost(t, found.Claim(t.Context(), sitetest.NewClient(fake).Site, id, mark()), tt.reason)
			after, stillThere := fake.Node(id)
			if exists != stillThere || after.Name != before.Name || after.InstanceUUID != before.InstanceUUID ||
				!reflect.DeepEqual(after.Raw["extra"], before.Raw["extra"]) {
				t.Errorf("before %+v, after %+v", before.Raw, after.Raw)
			}
		})
	}
}

func TestClaim_takenName(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	client := sitetest.NewClient(fake)
	sitetest.Enrolled(t, client, "web")
	id := fake.Discover(fakeironic.SampleInventory(1))
	wantLost(t, found.Claim(t.Context(), client.Site, id, mark()), "the name web is taken by now")
	wantUntouched(t, fake, id)
}

func TestClaim_nodeVanishes(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	id := fake.Discover(fakeironic.SampleInventory(1))
	patches := 0
	fake.Reject = func(r *http.Request) *fakeironic.Rejection {
		if r.Method == http.MethodPatch {
			if patches++; patches == 2 {
				return ironictest.Fault(http.StatusNotFound, "Node "+id+" could not be found.")
			}
		}
		return nil
	}
	wantLost(t, found.Claim(t.Context(), sitetest.NewClient(fake).Site, id, mark()), "the node does not exist any more")
}

// killedClaim leaves a claim on a discovered node: its run is killed after the first request of the claim.
func killedClaim(t *testing.T, fake *fakeironic.Server, id string) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	killed := sitetest.NewClient(fake, func(cfg *machine.Config) {
		cfg.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
			if ctx.Err() != nil {
				return nil, errors.New("killed")
			}
			answer, err := fake.RoundTrip(r)
			if r.Method == http.MethodPatch {
				kill()
			}
			return answer, err
		})
	})
	_ = found.Claim(ctx, killed.Site, id, mark())
	if ironictest.NodeOf(t, fake, id).InstanceUUID == "" {
		t.Fatal("there is no claim")
	}
}

// A node without a name may be reserved by another client for as long as that client wants.
func TestClaim_reservationOfOthersStays(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{}
		id, theirs := fake.Discover(fakeironic.SampleInventory(1)), ironic.NewUUID()
		ironictest.AsOther(t, fake, http.MethodPatch, "nodes/"+id,
			[]any{map[string]any{"op": "add", "path": "/instance_uuid", "value": theirs}})
		<-time.After(time.Hour)
		wantLost(t, found.Claim(t.Context(), sitetest.NewClient(fake).Site, id, mark()), "another run is claiming it")
		if now := ironictest.NodeOf(t, fake, id).InstanceUUID; now != theirs {
			t.Errorf("the node is reserved by %q", now)
		}
	})
}

// A run that died between its two requests has left a claim, which others respect for ten minutes.
func TestClaim_abandonedForTenMinutes(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{}
		client := sitetest.NewClient(fake)
		id := fake.Discover(fakeironic.SampleInventory(1))
		killedClaim(t, fake, id)
		for range 2 {
			wantLost(t, found.Claim(t.Context(), client.Site, id, mark()), "another run is claiming it")
			if survey, err := found.TakeSurvey(t.Context(), client.Site, "rack12", nil); err != nil || !survey.Hosts[0].Reserved {
				t.Errorf("%+v, %v: want that it is reserved", survey, err)
			}
			<-time.After(5*time.Minute - 5*time.Second)
		}
		<-time.After(12 * time.Second)
		if survey, err := found.TakeSurvey(t.Context(), client.Site, "rack12", nil); err != nil || survey.Hosts[0].Reserved {
			t.Errorf("%+v, %v: want that it is free", survey, err)
		}
		if err := found.Claim(t.Context(), client.Site, id, mark()); err != nil {
			t.Fatal(err)
		}
		wantClaimed(t, fake, id, mark())
		if left := ironictest.AsOther(t, fake, http.MethodGet, "chassis", nil)["chassis"]; !reflect.DeepEqual(left, []any{}) {
			t.Errorf("left behind: %v", left)
		}
	})
}

func TestClaim_oneOfTwentyTakeoversWins(t *testing.T) {
	t.Parallel()
	for _, refusal := range []*fakeironic.Rejection{
		nil, ironictest.Fault(http.StatusForbidden, "Access was denied"),
		ironictest.Fault(http.StatusInternalServerError, sitetest.SystemOnly),
	} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake, forbidden := &fakeironic.Server{}, refusal != nil
			if forbidden { // some may not write the record that makes it exact; one of them succeeds all the same
				fake.Reject = func(r *http.Request) *fakeironic.Rejection {
					if strings.HasPrefix(r.URL.Path, "/v1/chassis") {
						return refusal
					}
					return nil
				}
			}
			id := fake.Discover(fakeironic.SampleInventory(1))
			killedClaim(t, fake, id)
			<-time.After(11 * time.Minute)
			contenders := 20
			if forbidden {
				contenders = 1
			}
			var winners atomic.Int32
			var wg sync.WaitGroup
			for n := range contenders {
				client := sitetest.NewClient(fake)
				wg.Go(func() {
					m := mark()
					m.Owner = fmt.Sprint("rack", n)
					if found.Claim(t.Context(), client.Site, id, m) == nil {
						winners.Add(1)
					}
				})
			}
			wg.Wait()
			if winners.Load() > 1 || forbidden && winners.Load() == 0 {
				t.Errorf("%d have won", winners.Load())
			}
			if node := ironictest.NodeOf(t, fake, id); node.InstanceUUID != "" {
				t.Errorf("the claim %s is left", node.InstanceUUID)
			}
		})
	}
}

// If any request of a claim is lost, before or after Ironic executed it, the node ends up claimed or free.
func TestClaim_lostAnswers(t *testing.T) {
	t.Parallel()
	for request := range 8 {
		for _, after := range []bool{false, true} {
			for _, times := range []int{1, 20} {
				t.Run(fmt.Sprintf("request %d, after %v, %d times", request, after, times), func(t *testing.T) {
					t.Parallel()
					ironictest.InVirtualTime(t, func(t *testing.T) {
						fake := &fakeironic.Server{}
						id := fake.Discover(fakeironic.SampleInventory(1))
						client := sitetest.NewClient(fake)
						if _, err := client.Ironic.Microversion(t.Context()); err != nil {
							t.Fatal(err)
						}
						n, lost := 0, 0
						fake.Reject = func(r *http.Request) *fakeironic.Rejection {
							n++
							if n > request && lost < times && (lost == 0 || r.Method == http.MethodPatch) {
								lost++
								return &fakeironic.Rejection{Drop: !after, After: after}
							}
							return nil
						}
						err := found.Claim(t.Context(), client.Site, id, mark())
						fake.Reject = nil
						if err == nil {
							wantClaimed(t, fake, id, mark())
							return
						}
						if times == 1 {
							t.Errorf("one lost answer: %v", err)
						}
						// A claim that could not be released over a dead connection counts as abandoned.
						<-time.After(11 * time.Minute)
						if err := found.Claim(t.Context(), client.Site, id, mark()); err != nil {
							t.Error(err)
						}
						wantClaimed(t, fake, id, mark())
					})
				})
			}
		}
	}
}

func TestClaim_interrupted(t *testing.T) {
	t.Parallel()
	for request := range 7 {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := &fakeironic.Server{}
			id := fake.Discover(fakeironic.SampleInventory(1))
			ctx, cancel := context.WithCancel(t.Context())
			n := 0
			fake.Reject = func(*http.Request) *fakeironic.Rejection {
				if n == request {
					cancel()
				}
				n++
				return nil
			}
			err := found.Claim(ctx, sitetest.NewClient(fake).Site, id, mark())
			cancel()
			if err == nil {
				wantClaimed(t, fake, id, mark())
				return
			}
			if !api.IsInterrupted(err) {
				t.Errorf("interrupted at request %d: %v", request, err)
			}
			if node := ironictest.NodeOf(t, fake, id); node.InstanceUUID != "" {
				t.Errorf("interrupted at request %d: the claim is left", request)
			}
		})
	}
}

// Ironic changes extra as a whole: a client that read it before the discovery record was written removes the record.
func TestClaim_overwrittenMark(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	id := fake.Discover(fakeironic.SampleInventory(1))
	patched, overwritten := 0, false
	fake.Reject = func(r *http.Request) *fakeironic.Rejection {
		if r.Method == http.MethodPatch {
			patched++
		} else if patched == 2 && !overwritten {
			overwritten = true
			fake.Set(id, "extra", map[string]any{"team": "storage"})
		}
		return nil
	}
	if err := found.Claim(t.Context(), sitetest.NewClient(fake).Site, id, mark()); err != nil {
		t.Fatal(err)
	}
	wantClaimed(t, fake, id, mark())
	if extra, _ := ironictest.NodeOf(t, fake, id).Raw["extra"].(map[string]any); extra["team"] != "storage" {
		t.Errorf("extra is %v: what the other has written is lost", extra)
	}
	if !overwritten || patched != 3 {
		t.Errorf("overwritten: %v; %d patches, want 3", overwritten, patched)
	}
}

func TestSurvey_thousandNodesTakeThreeRequests(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(900)
	held := map[string]string{}
	for n := range 100 {
		id := fake.Discover(fakeironic.SampleInventory(n))
		fake.Set(id, "name", fmt.Sprint("web", n))
		fake.Set(id, "extra", map[string]any{"terraform_metal_discovery": map[string]any{
			"v": 1, "owner": "rack12",
			"name": fmt.Sprint("web", n),
		}})
		held[id] = fmt.Sprint("web", n)
	}
	survey, err := found.TakeSurvey(t.Context(), sitetest.NewClient(fake).Site, "rack12", held)
	if err != nil || len(survey.Hosts) != 100 || len(survey.Names) != 900 {
		t.Fatalf("%d hosts, %d names, %v", len(survey.Hosts), len(survey.Names), err)
	}
	if requests := len(fake.Requests()); requests > 3 {
		t.Errorf("%d requests, want at most 3 with the look for the version", requests)
	}
}

func TestSurvey_reports(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(1)
	known := fake.Discover(fakeironic.SampleInventory(1))
	fresh := fake.Discover(fakeironic.SampleInventory(2))
	ghost := fake.DiscoverGhost(fakeironic.SampleInventory(2))
	theirs := fake.Discover(fakeironic.SampleInventory(3))
	fake.Set(known, "name", "renamed")
	fake.Set(theirs, "name", "db")
	survey, err := found.TakeSurvey(t.Context(), sitetest.NewClient(fake).Site, "rack12",
		map[string]string{known: "web", "00000000-0000-4000-8000-000000000000": "gone"})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, h := range survey.Hosts {
		ids = append(ids, h.ID)
	}
	if want := []string{known, fresh, ghost}; !reflect.DeepEqual(ids, want) {
		t.Errorf("hosts are %v, want %v", ids, want)
	}
	if want := []string{"db", "node-000"}; !reflect.DeepEqual(survey.Names, want) {
		t.Errorf("names are %v, want %v", survey.Names, want)
	}
	if survey.Exists["00000000-0000-4000-8000-000000000000"] || !survey.Exists[theirs] {
		t.Error("does not tell which nodes exist")
	}
	if h := survey.Hosts[1]; !h.HasInventory || h.Serial != "RK000002" || h.Hostname != "machine-2" || h.BootMAC() != "52:55:00:00:02:00" ||
		h.CPUs != 32 || h.MemoryMB != 131072 {
		t.Errorf("the new machine is %+v", h)
	}
}

// A deployed host may have no ports: then only its BMC says that Ironic has discovered its machine again.
func TestSurvey_hasTheNodeWithTheBMCOfANewMachine(t *testing.T) {
	t.Parallel()
	for name, info := range map[string]map[string]any{
		"redfish":      {"redfish_address": "https://198.18.0.1:443", "redfish_system_id": "/redfish/v1/Systems/1"},
		"ipmi":         {"ipmi_address": "198.18.0.1"},
		"both drivers": {"redfish_address": "https://bmc-1.example", "ipmi_address": "198.18.0.1"},
	} {
		fake := ironictest.Fleet(2)
		fake.Set("node-000", "driver_info", info)
		fake.Set("node-000", "provision_state", "active")
		fake.Set("node-001", "driver_info", map[string]any{"redfish_address": "https://198.18.0.2"})
		id := fake.Discover(fakeironic.SampleInventory(1))
		survey, err := found.TakeSurvey(t.Context(), sitetest.NewClient(fake).Site, "rack12", nil)
		if err != nil || len(survey.Hosts) != 2 {
			t.Fatalf("%s: %+v, %v", name, survey, err)
		}
		plan := naming.Rules{Owner: "rack12", Template: naming.Template{Detail: naming.DetailSerialNumber}}.Decide(survey.News().All())
		if reason := plan.Pending[id]; len(plan.Hosts) > 0 ||
			!strings.HasPrefix(reason, "its BMC address 198.18.0.1 is that of node node-000") {
			t.Errorf("%s: %+v", name, plan)
		}
	}
}

// Any client that reaches Ironic's inspection endpoint can post an inventory.
func TestSurvey_malformedInventory(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	data := fakeironic.SampleInventory(1)
	inventory, _ := data["inventory"].(map[string]any)
	inventory["hostname"], inventory["memory"], inventory["disks"] = 5, []any{"?"}, "none"
	id := fake.Discover(data)
	survey, err := found.TakeSurvey(t.Context(), sitetest.NewClient(fake).Site, "rack12", nil)
	if err != nil || len(survey.Hosts) != 1 {
		t.Fatalf("%+v, %v", survey, err)
	}
	if h := survey.Hosts[0]; h.ID != id || h.Hostname != "" || h.Serial != "RK000001" {
		t.Errorf("%+v, want what is right in the inventory", h)
	}
}

func TestSurvey_ironicInspector(t *testing.T) {
	t.Parallel()
	for _, storesNothing := range []bool{false, true} {
		fake := &fakeironic.Server{MaxMicroversion: "1.82", DiscoveryDriver: "ipmi", Username: "terraform", Password: "s3cret"}
		inspector := httptest.NewServer(&fakeironic.Inspector{Server: fake, StoresNothing: storesNothing})
		t.Cleanup(inspector.Close)
		id := fake.DiscoverByInspector(fakeironic.SampleInventory(1))
		fake.Discover(fakeironic.SampleInventory(2)) // without an inventory
		ironicServer := httptest.NewServer(fake)
		t.Cleanup(ironicServer.Close)
		client := sitetest.NewSite(machine.Config{Config: api.Config{
			Endpoint: ironicServer.URL, Auth: api.AuthHTTPBasic, Username: "terraform", Password: "s3cret",
			InspectorEndpoint: inspector.URL + "/v1/",
		}})
		survey, err := found.TakeSurvey(t.Context(), client.Site, "rack12", nil)
		if storesNothing {
			if err == nil || !strings.Contains(err.Error(), "Inspector is not configured to store data") {
				t.Errorf("%v, want what to configure", err)
			}
			continue
		}
		if err != nil || len(survey.Hosts) != 2 || survey.Hosts[0].ID != id || survey.Hosts[0].Serial != "RK000001" {
			t.Errorf("%+v, %v", survey, err)
		}
	}
}

// A list that lacks the hosts of a discovery is no proof that they are gone: Terraform would destroy what was made of them.
func TestSurvey_emptyListKeepsHosts(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{}
		id := fake.Discover(fakeironic.SampleInventory(1))
		empty := 1
		client := sitetest.NewClient(fake, func(cfg *machine.Config) {
			cfg.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
				if strings.HasSuffix(r.URL.Path, "/nodes") && empty > 0 {
					empty--
					r.URL.RawQuery += "&owner=nobody"
				}
				return fake.RoundTrip(r)
			})
		})
		held := map[string]string{id: "web", "00000000-0000-4000-8000-000000000000": "gone"}
		survey, err := found.TakeSurvey(t.Context(), client.Site, "rack12", held)
		if err != nil || len(survey.Exists) != 1 || !survey.Exists[id] {
			t.Errorf("%+v, %v: want the host, which exists, and not the other, which is gone", survey, err)
		}
		empty = 99
		if survey, err = found.TakeSurvey(t.Context(), client.Site, "rack12", held); err == nil {
			t.Errorf("%+v: want an error", survey)
		}
	})
}

// The first request of a claim is executed after another try of it has named the node.
func TestClaim_executedLateIsReleased(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{}
		id := fake.Discover(fakeironic.SampleInventory(1))
		client := sitetest.NewClient(fake)
		if err := found.Claim(t.Context(), client.Site, id, mark()); err != nil {
			t.Fatal(err)
		}
		fake.Set(id, "instance_uuid", markOf(t, fake, id).Claim)
		survey, err := found.TakeSurvey(t.Context(), client.Site, "rack12", map[string]string{id: "web"})
		if err != nil || len(survey.Late) != 1 || survey.News() == nil {
			t.Errorf("%+v, %v: want the host that is reserved by its own claim", survey, err)
		}
		if err := found.ReleaseLate(t.Context(), client.Site, id); err != nil {
			t.Error(err)
		}
		wantClaimed(t, fake, id, mark())
		const theirs = "11111111-2222-4333-8444-555555555555"
		fake.Set(id, "instance_uuid", theirs)
		if err := found.ReleaseLate(t.Context(), client.Site, id); err != nil {
			t.Error(err)
		}
		if n := ironictest.NodeOf(t, fake, id); n.InstanceUUID != theirs {
			t.Errorf("the reservation of others is %q", n.InstanceUUID)
		}
	})
}
