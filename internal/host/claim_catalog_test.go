package host_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/identity"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

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

// wantFree fails the test unless a candidate may be made.
func wantFree(t *testing.T, site *sitetest.Client, who host.Candidate) {
	t.Helper()
	if node, err := host.Admit(t.Context(), site.Site, who, sitetest.InAnHour()); node != nil || err != nil {
		t.Errorf("%s: %v, %v; want it to be free", who.Name, node, err)
	}
}

// wantTaken fails the test unless a candidate is refused, for what it shares with a node.
func wantTaken(t *testing.T, site *sitetest.Client, who host.Candidate, what identity.Kind, node string) {
	t.Helper()
	found, err := host.Admit(t.Context(), site.Site, who, sitetest.InAnHour())
	if !failure.Is(err, host.KindTaken) || host.TakenOf(err).What != what || host.TakenOf(err).Node.UUID != node {
		t.Errorf("%s: %v, %v; want the %s of node %s", who.Name, found, err, what, node)
	}
}

func TestAdmit_manyCreationsShareTheLists(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(20)
		site := sitetest.NewClient(fake, func(cfg *machine.Config) { cfg.Transport = slow{fake} })
		var all sync.WaitGroup
		for n := range 60 {
			all.Go(func() { wantFree(t, site, sitetest.Candidate(n+1)) })
		}
		all.Wait()
		wantLists(t, fake, 1)
		host.Refused(site.Site)
		for n := range 60 {
			all.Go(func() { wantFree(t, site, sitetest.Candidate(n+101)) })
		}
		all.Wait()
		wantLists(t, fake, 2)
	})
}

func TestAdmit_listsGrowOld(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{}
		site := sitetest.NewClient(fake)
		wantFree(t, site, sitetest.Candidate(1))
		time.Sleep(9 * time.Minute)
		wantFree(t, site, sitetest.Candidate(2))
		wantLists(t, fake, 1)
		time.Sleep(2 * time.Minute)
		wantFree(t, site, sitetest.Candidate(3))
		wantLists(t, fake, 2)
	})
}

func TestAdmit_oneOfTwoCreationsWithTheSameBMC(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		site := sitetest.NewClient(&fakeironic.Server{})
		first, second := sitetest.Candidate(1), sitetest.Candidate(2)
		second.DriverInfo = map[string]any{"redfish_address": "HTTPS://192.0.2.1:443/", "redfish_system_id": "/redfish/v1/Systems/1/"}
		wantFree(t, site, first)
		wantTaken(t, site, second, identity.BMC, first.UUID)
		host.NotMade(site.Site, first.UUID)
		wantFree(t, site, second)
	})
}

func TestAdmit_nodesOfOthers(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{}
		other := sitetest.Candidate(1)
		maker := sitetest.NewClient(fake)
		node, err := host.Enroll(t.Context(), maker.Site, other.UUID, ironic.Settings{
			"name": other.Name, "driver": "redfish",
			"driver_info": other.DriverInfo,
		})
		if err == nil {
			_, err = maker.Ironic.CreatePort(t.Context(), node.UUID, ironic.PortSpec{Address: other.Addresses[0]})
		}
		if err != nil {
			t.Fatal(err)
		}
		name, bmc, mac := sitetest.Candidate(2), sitetest.Candidate(2), sitetest.Candidate(2)
		name.Name, bmc.DriverInfo, mac.Addresses = other.Name, other.DriverInfo, append(mac.Addresses, other.Addresses...)
		for what, who := range map[identity.Kind]host.Candidate{
			identity.Name: name, identity.BMC: bmc, identity.Address: mac,
		} {
			site := sitetest.NewClient(fake)
			wantTaken(t, site, who, what, other.UUID)
			wantFree(t, site, sitetest.Candidate(2)) // what was refused takes nothing from others
		}
	})
}

// The error is about the site as it is: a node that others have deleted meanwhile blocks no creation.
func TestAdmit_readsAgainBeforeItRefuses(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{}
		site := sitetest.NewClient(fake)
		old := sitetest.Enrolled(t, site, "rack1-01")
		wantFree(t, site, sitetest.Candidate(2))
		ironictest.AsOther(t, fake, http.MethodDelete, "nodes/"+old, nil)
		wantFree(t, site, sitetest.Candidate(1))
		wantLists(t, fake, 2)
	})
}

func TestAdmit_waitsForANodeThatTheRunDeletes(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]time.Duration{"and has begun to": 0, "and will in a moment": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := &fakeironic.Server{}
				site := sitetest.NewClient(fake)
				old := sitetest.Enrolled(t, site, "rack1-01")
				var deleting sync.WaitGroup
				deleting.Go(func() {
					time.Sleep(start)
					ended := host.Deleting(site.Site, old)
					time.Sleep(20 * time.Minute)
					err := site.Ironic.DeleteNode(t.Context(), old)
					if err != nil {
						t.Error(err)
					}
					ended(err == nil)
				})
				synctest.Wait()
				began := time.Now()
				wantFree(t, site, sitetest.Candidate(1))
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
	ironictest.InVirtualTime(t, func(t *testing.T) {
		site := sitetest.NewClient(&fakeironic.Server{})
		old := sitetest.Enrolled(t, site, "rack1-01")
		var deleting sync.WaitGroup
		deleting.Go(func() {
			undeployed := host.Deleting(site.Site, old)
			time.Sleep(10 * time.Minute)
			undeployed(false)
			time.Sleep(3 * time.Second)
			ended := host.Deleting(site.Site, old)
			if err := site.Ironic.DeleteNode(t.Context(), old); err != nil {
				t.Error(err)
			}
			ended(true)
		})
		synctest.Wait()
		wantFree(t, site, sitetest.Candidate(1))
		deleting.Wait()
	})
}

func TestAdmit_isRefusedWhenTheDeletionFails(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		site := sitetest.NewClient(&fakeironic.Server{})
		old := sitetest.Enrolled(t, site, "rack1-01")
		ended := host.Deleting(site.Site, old)
		var deleting sync.WaitGroup
		deleting.Go(func() {
			time.Sleep(time.Minute)
			ended(false)
		})
		wantTaken(t, site, sitetest.Candidate(1), identity.Name, old)
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
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{Reject: ironictest.Times(1, http.MethodGet, "/v1/nodes",
			ironictest.Fault(http.StatusBadRequest, "no lists today"))}
		site := sitetest.NewClient(fake, func(cfg *machine.Config) { cfg.Transport = slow{fake} })
		var all sync.WaitGroup
		for n := range 10 {
			all.Go(func() {
				if _, err := host.Admit(t.Context(), site.Site, sitetest.Candidate(n+1), sitetest.InAnHour()); err == nil ||
					!strings.Contains(err.Error(), "no lists today") {
					t.Errorf("%v", err)
				}
			})
		}
		all.Wait()
		wantFree(t, site, sitetest.Candidate(11))
	})
}
