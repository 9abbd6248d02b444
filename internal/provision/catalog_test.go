package provision_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// candidate is a node of a number, with a BMC and a port of its own.
func candidate(n int) provision.Candidate {
	return provision.Candidate{
		UUID: ironic.NewUUID(), Name: fmt.Sprintf("rack1-%02d", n),
		DriverInfo: map[string]any{"redfish_address": fmt.Sprintf("https://192.0.2.%d", n), "redfish_system_id": "/redfish/v1/Systems/1"},
		Addresses:  []string{fmt.Sprintf("52:54:01:00:00:%02x", n)},
	}
}

// lists counts the lists of nodes and of ports that were asked for.
func lists(fake *fakeironic.Server) (nodes, ports int) {
	for _, r := range fake.Requests() {
		switch {
		case r.Method == http.MethodGet && r.Path == "/v1/nodes":
			nodes++
		case r.Method == http.MethodGet && r.Path == "/v1/ports":
			ports++
		}
	}
	return nodes, ports
}

func wantLists(t *testing.T, fake *fakeironic.Server, want int) {
	t.Helper()
	if nodes, ports := lists(fake); nodes != want || ports != want {
		t.Errorf("%d lists of nodes and %d of ports were read, want %d each", nodes, ports, want)
	}
}

// later is a deadline that no test reaches.
func later() time.Time { return time.Now().Add(time.Hour) }

// wantFree fails the test unless a candidate may be made.
func wantFree(t *testing.T, site *site, who provision.Candidate) {
	t.Helper()
	if node, err := site.Admit(t.Context(), who, later()); node != nil || err != nil {
		t.Errorf("%s: %v, %v; want it to be free", who.Name, node, err)
	}
}

// wantTaken fails the test unless a candidate is refused, for what it shares with a node.
func wantTaken(t *testing.T, site *site, who provision.Candidate, what provision.Sharing, node string) {
	t.Helper()
	found, err := site.Admit(t.Context(), who, later())
	if !provision.Is(err, provision.KindTaken) || provision.TakenOf(err).What != what || provision.TakenOf(err).Node.UUID != node {
		t.Errorf("%s: %v, %v; want the %s of node %s", who.Name, found, err, what, node)
	}
}

func TestAdmit_manyCreationsShareTheLists(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(20)
		site := newClient(fake, func(cfg *provision.Config) { cfg.Transport = slow{fake} })
		var all sync.WaitGroup
		for n := range 60 {
			all.Go(func() { wantFree(t, site, candidate(n+1)) })
		}
		all.Wait()
		wantLists(t, fake, 1)
		site.Refused()
		for n := range 60 {
			all.Go(func() { wantFree(t, site, candidate(n+101)) })
		}
		all.Wait()
		wantLists(t, fake, 2)
	})
}

func TestAdmit_listsGrowOld(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{}
		site := newClient(fake)
		wantFree(t, site, candidate(1))
		time.Sleep(9 * time.Minute)
		wantFree(t, site, candidate(2))
		wantLists(t, fake, 1)
		time.Sleep(2 * time.Minute)
		wantFree(t, site, candidate(3))
		wantLists(t, fake, 2)
	})
}

func TestAdmit_oneOfTwoCreationsWithTheSameBMC(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		site := newClient(&fakeironic.Server{})
		first, second := candidate(1), candidate(2)
		second.DriverInfo = map[string]any{"redfish_address": "HTTPS://192.0.2.1:443/", "redfish_system_id": "/redfish/v1/Systems/1/"}
		wantFree(t, site, first)
		wantTaken(t, site, second, provision.SharedBMC, first.UUID)
		site.NotMade(first.UUID)
		wantFree(t, site, second)
	})
}

func TestAdmit_nodesOfOthers(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{}
		other := candidate(1)
		maker := newClient(fake)
		node, err := maker.Enroll(t.Context(), other.UUID, ironic.Settings{"name": other.Name, "driver": "redfish", "driver_info": other.DriverInfo})
		if err == nil {
			_, err = maker.CreatePort(t.Context(), node.UUID, ironic.PortSpec{Address: other.Addresses[0]})
		}
		if err != nil {
			t.Fatal(err)
		}
		name, bmc, mac := candidate(2), candidate(2), candidate(2)
		name.Name, bmc.DriverInfo, mac.Addresses = other.Name, other.DriverInfo, append(mac.Addresses, other.Addresses...)
		for what, who := range map[provision.Sharing]provision.Candidate{
			provision.SharedName: name, provision.SharedBMC: bmc, provision.SharedAddress: mac,
		} {
			site := newClient(fake)
			wantTaken(t, site, who, what, other.UUID)
			wantFree(t, site, candidate(2)) // what was refused takes nothing from others
		}
	})
}

// The error is about the site as it is: a node that others have deleted meanwhile blocks no creation.
func TestAdmit_readsAgainBeforeItRefuses(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{}
		site := newClient(fake)
		old := enrolled(t, site, "rack1-01")
		wantFree(t, site, candidate(2))
		asOther(t, fake, http.MethodDelete, "nodes/"+old, nil)
		wantFree(t, site, candidate(1))
		wantLists(t, fake, 2)
	})
}

func TestAdmit_waitsForANodeThatTheRunDeletes(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]time.Duration{"and has begun to": 0, "and will in a moment": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				fake := &fakeironic.Server{}
				site := newClient(fake)
				old := enrolled(t, site, "rack1-01")
				var deleting sync.WaitGroup
				deleting.Go(func() {
					time.Sleep(start)
					ended := site.Deleting(old)
					time.Sleep(20 * time.Minute)
					err := site.DeleteNode(t.Context(), old)
					if err != nil {
						t.Error(err)
					}
					ended(err == nil)
				})
				synctest.Wait()
				began := time.Now()
				wantFree(t, site, candidate(1))
				if waited := time.Since(began); waited != start+20*time.Minute {
					t.Errorf("it waited for %s", waited)
				}
				deleting.Wait()
			})
		})
	}
}

// Before a node is deleted, the run may undeploy it for a long time. The creation waits then, and a moment more.
func TestAdmit_waitsForANodeThatTheRunUndeploysFirst(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		site := newClient(&fakeironic.Server{})
		old := enrolled(t, site, "rack1-01")
		var deleting sync.WaitGroup
		deleting.Go(func() {
			undeployed := site.Deleting(old)
			time.Sleep(10 * time.Minute)
			undeployed(false)
			time.Sleep(3 * time.Second)
			ended := site.Deleting(old)
			if err := site.DeleteNode(t.Context(), old); err != nil {
				t.Error(err)
			}
			ended(true)
		})
		synctest.Wait()
		wantFree(t, site, candidate(1))
		deleting.Wait()
	})
}

func TestAdmit_isRefusedWhenTheDeletionFails(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		site := newClient(&fakeironic.Server{})
		old := enrolled(t, site, "rack1-01")
		ended := site.Deleting(old)
		var deleting sync.WaitGroup
		deleting.Go(func() {
			time.Sleep(time.Minute)
			ended(false)
		})
		wantTaken(t, site, candidate(1), provision.SharedName, old)
		deleting.Wait()
	})
}

// slow is a server that takes a second to answer.
type slow struct{ http.RoundTripper }

// RoundTrip sends the request.
func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(time.Second)
	return s.RoundTripper.RoundTrip(r)
}

// A list that fails fails for those who wait for it, not for those who come later.
func TestAdmit_sharesTheErrorOfAList(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{Reject: times(1, http.MethodGet, "/v1/nodes", fault(http.StatusBadRequest, "no lists today"))}
		site := newClient(fake, func(cfg *provision.Config) { cfg.Transport = slow{fake} })
		var all sync.WaitGroup
		for n := range 10 {
			all.Go(func() {
				if _, err := site.Admit(t.Context(), candidate(n+1), later()); err == nil || !strings.Contains(err.Error(), "no lists today") {
					t.Errorf("%v", err)
				}
			})
		}
		all.Wait()
		wantFree(t, site, candidate(11))
	})
}
