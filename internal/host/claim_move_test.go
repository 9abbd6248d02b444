package host_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/identity"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// movers enrolls candidates 1 to n, each with its port and a port group, and returns their intents, which change nothing.
func movers(t *testing.T, site *sitetest.Client, n int) (all []host.Intent) {
	t.Helper()
	for i := range n {
		who := sitetest.Candidate(i + 1)
		who.Bonds = []string{fmt.Sprintf("52:54:02:00:00:%02x", i+1)}
		node, err := host.Enroll(t.Context(), site.Site, who.UUID, ironic.Settings{
			"name": who.Name, "driver": "redfish",
			"driver_info": who.DriverInfo,
		})
		if err == nil {
			_, err = site.Ironic.CreatePort(t.Context(), node.UUID, ironic.PortSpec{Address: who.Addresses[0]})
		}
		if err == nil {
			_, err = site.Ironic.CreatePortGroup(t.Context(), node.UUID, ironic.PortGroupSpec{Address: who.Bonds[0]})
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, host.Intent{Candidate: who})
	}
	return all
}

// takes makes one host get what another has.
func takes(who *host.Intent, what identity.Kind, from host.Intent) {
	who.Moves = true
	switch what {
	case identity.Name:
		who.Name = from.Name
	case identity.BMC:
		who.DriverInfo = from.DriverInfo
	case identity.Address:
		who.Drops, who.Addresses = append(who.Drops, who.Addresses...), from.Addresses
	case identity.Bond:
		who.Drops, who.Bonds = append(who.Drops, who.Bonds...), from.Bonds
	}
}

var allShared = []identity.Kind{identity.Name, identity.BMC, identity.Address, identity.Bond}

func wantTakenBy(t *testing.T, err error, what identity.Kind, node string) {
	t.Helper()
	if !failure.Is(err, host.KindTaken) || host.TakenOf(err).What != what || host.TakenOf(err).Node.UUID != node {
		t.Errorf("the error is %v, want the %s of node %s", err, what, node)
	}
}

// apply is what the update of a host does with an intent: it moves, then changes the node.
func apply(t *testing.T, site *sitetest.Client, who host.Intent) error {
	t.Helper()
	host.PlanMove(site.Site, who)
	defer host.Moved(site.Site, who.UUID)
	drop := func(macs []string) {
		ports, _ := site.Ironic.Ports(t.Context(), who.UUID)
		for mac, port := range ports {
			if slices.Contains(macs, mac) {
				if err := site.Ironic.DeletePort(t.Context(), port); err != nil {
					t.Error(err)
				}
			}
		}
		groups, _ := site.Ironic.PortGroups(t.Context(), who.UUID)
		for _, group := range groups {
			if slices.Contains(macs, group.Address) {
				if _, err := site.Ironic.RemovePortGroupAddress(t.Context(), group); err != nil {
					t.Error(err)
				}
			}
		}
	}
	err := host.Move(t.Context(), site.Site, who, func(_ context.Context, r host.Release) error {
		drop(append(r.Addresses, r.Bonds...))
		if !r.Name {
			return nil
		}
		_, err := site.PatchNode(t.Context(), who.UUID, sitetest.Setting("/name", host.TemporaryName(who.UUID)))
		return err
	}, sitetest.InAnHour())
	if err != nil {
		return err
	}
	patch := sitetest.Setting("/name", who.Name)
	for key, value := range who.DriverInfo {
		patch.Set("/driver_info/"+key, value)
	}
	if _, err := site.PatchNode(t.Context(), who.UUID, patch); err != nil {
		return err
	}
	drop(who.Drops)
	if ports, _ := site.Ironic.Ports(t.Context(), who.UUID); len(ports) == 0 {
		if _, err := site.Ironic.CreatePort(t.Context(), who.UUID, ironic.PortSpec{Address: who.Addresses[0]}); err != nil {
			return err
		}
	}
	groups, err := site.Ironic.PortGroups(t.Context(), who.UUID)
	if err == nil {
		_, err = site.Ironic.UpdatePortGroup(t.Context(), groups[0], ironic.PortGroupSpec{Address: who.Bonds[0]})
	}
	return err
}

// Hosts of one run get the names and MAC addresses of each other, whatever the order in which their updates begin.
func TestMove_hostsOfOneRunExchange(t *testing.T) {
	t.Parallel()
	for _, what := range []identity.Kind{identity.Name, identity.Address, identity.Bond} {
		for n := 2; n <= 3; n++ {
			t.Run(fmt.Sprint(what, " of ", n), func(t *testing.T) {
				t.Parallel()
				ironictest.InVirtualTime(t, func(t *testing.T) {
					site := sitetest.NewClient(&fakeironic.Server{})
					had := movers(t, site, n)
					var all sync.WaitGroup
					for i, who := range had {
						takes(&who, what, had[(i+1)%n])
						all.Go(func() {
							time.Sleep(time.Duration(i) * time.Second)
							if err := host.CheckMove(t.Context(), site.Site, who); err != nil && i == n-1 {
								t.Errorf("the plan of host %d: %v", i, err)
							}
							if err := apply(t, site, who); err != nil {
								t.Errorf("host %d: %v", i, err)
							}
						})
					}
					all.Wait()
				})
			})
		}
	}
}

// A host that gives up what another gets may do so later in the run: it is changed or deleted.
func TestMove_waitsForChangeOrDeletionInTheSameRun(t *testing.T) {
	t.Parallel()
	for _, what := range allShared {
		for _, ends := range []bool{false, true} {
			t.Run(fmt.Sprint(what, " of a host that is deleted: ", ends), func(t *testing.T) {
				t.Parallel()
				ironictest.InVirtualTime(t, func(t *testing.T) {
					site := sitetest.NewClient(&fakeironic.Server{})
					had := movers(t, site, 2)
					gets, gives := had[0], had[1]
					takes(&gets, what, had[1])
					takes(&gives, what, host.Intent{Candidate: host.Candidate{
						Name: "rack1-99", DriverInfo: sitetest.Candidate(99).DriverInfo, Addresses: []string{"52:54:01:00:00:99"},
						Bonds: []string{"52:54:02:00:00:99"},
					}})
					var all sync.WaitGroup
					all.Go(func() {
						time.Sleep(4 * time.Second)
						if !ends {
							if err := apply(t, site, gives); err != nil {
								t.Errorf("the other host: %v", err)
							}
							return
						}
						ended := host.Deleting(site.Site, gives.UUID)
						time.Sleep(10 * time.Minute)
						ended(site.Ironic.DeleteNode(t.Context(), gives.UUID) == nil)
					})
					synctest.Wait()
					if err := apply(t, site, gets); err != nil {
						t.Error(err)
					}
					all.Wait()
				})
			})
		}
	}
}

// What a node keeps that the run does not change, no host gets: neither in the plan nor in the apply.
func TestMove_refusesWhatAnotherNodeKeeps(t *testing.T) {
	t.Parallel()
	for _, what := range allShared {
		t.Run(string(what), func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := &fakeironic.Server{}
				had := movers(t, sitetest.NewClient(fake), 2)
				who := had[0]
				takes(&who, what, had[1])
				for _, other := range []*host.Intent{nil, &had[1]} { // of another client, and one that this run leaves as it is
					site := sitetest.NewClient(fake)
					if other != nil {
						host.PlanMove(site.Site, *other)
					}
					host.PlanMove(site.Site, who)
					wantTakenBy(t, host.CheckMove(t.Context(), site.Site, who), what, had[1].UUID)
					fake.ResetRequests()
					wantTakenBy(t, apply(t, site, who), what, had[1].UUID)
					for _, r := range fake.Requests() {
						if r.Method != http.MethodGet {
							t.Errorf("sent: %s %s", r.Method, r.Path)
						}
					}
				}
			})
		})
	}
}

// Whichever of two hosts is planned last sees that they exchange their BMCs.
func TestMove_refusesToExchangeBMCs(t *testing.T) {
	t.Parallel()
	for n := 2; n <= 3; n++ {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := &fakeironic.Server{}
			site := sitetest.NewClient(fake)
			had := movers(t, site, n)
			var refused error
			var all sync.WaitGroup
			for i, who := range had {
				takes(&who, identity.BMC, had[(i+1)%n])
				host.PlanMove(site.Site, who)
				all.Go(func() {
					if err := host.CheckMove(t.Context(), site.Site, who); err != nil {
						refused = err
					}
				})
				synctest.Wait()
			}
			all.Wait()
			if !failure.Is(refused, host.KindTaken) || !host.TakenOf(refused).Exchanged {
				t.Errorf("of %d: %v", n, refused)
			}
			for i, who := range had {
				takes(&who, identity.BMC, had[(i+1)%n])
				if err := apply(t, site, who); err == nil {
					t.Errorf("host %d of %d was changed", i, n)
				}
			}
		})
	}
}

// A node that shares its BMC with another already may be changed in other ways, and another system behind one BMC is another machine.
func TestMove_allowsWhatIsNotNew(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		site := sitetest.NewClient(&fakeironic.Server{})
		had := movers(t, site, 2)
		twin := had[0].Candidate
		twin.UUID, twin.Name, twin.Addresses, twin.Bonds = ironic.NewUUID(), "twin", nil, nil
		if _, err := host.Enroll(t.Context(), site.Site, twin.UUID, ironic.Settings{
			"name": twin.Name, "driver": "redfish",
			"driver_info": twin.DriverInfo,
		}); err != nil {
			t.Fatal(err)
		}
		renamed := host.Intent{Candidate: twin, Moves: true}
		renamed.Name = "renamed"
		other := had[0]
		other.Moves, other.DriverInfo = true, map[string]any{
			"redfish_address":   had[1].DriverInfo["redfish_address"],
			"redfish_system_id": "/redfish/v1/Systems/2",
		}
		for _, who := range []host.Intent{renamed, other} {
			if err := host.CheckMove(t.Context(), site.Site, who); err != nil {
				t.Errorf("%s: %v", who.Name, err)
			}
		}
	})
}

// A creation waits for a host that the run renames.
func TestAdmit_waitsForAHostThatTheRunChanges(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		site := sitetest.NewClient(&fakeironic.Server{})
		gives := movers(t, site, 1)[0]
		gives.Name, gives.Moves = "rack1-99", true
		host.PlanMove(site.Site, gives)
		var all sync.WaitGroup
		all.Go(func() {
			time.Sleep(time.Minute)
			if err := apply(t, site, gives); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		who := sitetest.Candidate(2)
		who.Name = "rack1-01"
		wantFree(t, site, who)
		all.Wait()
	})
}

// A run that is killed after a host has given up its name leaves what the next run finishes.
func TestMove_nextRunFinishesAnExchange(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{}
		had := movers(t, sitetest.NewClient(fake), 2)
		first, second := had[0], had[1]
		takes(&first, identity.Name, had[1])
		takes(&second, identity.Name, had[0])
		killed, killer := sitetest.NewClient(fake), errors.New("killed")
		host.PlanMove(killed.Site, first)
		host.PlanMove(killed.Site, second)
		err := host.Move(t.Context(), killed.Site, first, func(context.Context, host.Release) error {
			if _, err := killed.PatchNode(t.Context(), first.UUID, sitetest.Setting("/name", host.TemporaryName(first.UUID))); err != nil {
				t.Error(err)
			}
			return killer
		}, sitetest.InAnHour())
		if !errors.Is(err, killer) {
			t.Fatalf("the first run: %v", err)
		}
		site := sitetest.NewClient(fake)
		var all sync.WaitGroup
		for _, who := range []host.Intent{first, second} {
			all.Go(func() {
				if err := apply(t, site, who); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for _, who := range []host.Intent{first, second} {
			if got := ironictest.AsOther(t, fake, http.MethodGet, "nodes/"+who.UUID, nil)["name"]; got != who.Name {
				t.Errorf("node %s is %v, want %s", who.UUID, got, who.Name)
			}
		}
	})
}

// A host moves if it gets, or gives up, what no other node may have too.
func TestChange_movesWhatNoOtherNodeMayHave(t *testing.T) {
	t.Parallel()
	was := host.Candidate{
		Name: "web", DriverInfo: map[string]any{"ipmi_address": "192.0.2.1"}, Addresses: []string{macOf(1), macOf(2)},
		Bonds: []string{macOf(8)},
	}
	for what, tt := range map[string]struct {
		change func(*host.IdentityChange)
		moves  bool
		drops  []string
	}{
		"nothing":        {func(*host.IdentityChange) {}, false, nil},
		"another name":   {func(c *host.IdentityChange) { c.Becomes.Name = "db" }, true, nil},
		"a name to come": {func(c *host.IdentityChange) { c.Becomes.Name, c.OpenName = "", true }, true, nil},
		"no name":        {func(c *host.IdentityChange) { c.Becomes.Name = "" }, true, []string{"web"}},
		"another BMC": {func(c *host.IdentityChange) {
			c.Becomes.DriverInfo = map[string]any{"ipmi_address": "192.0.2.2"}
		}, true, nil},
		"another user":         {func(c *host.IdentityChange) { c.Becomes.DriverInfo["ipmi_username"] = "root" }, false, nil},
		"another port":         {func(c *host.IdentityChange) { c.Becomes.Addresses = []string{macOf(3)} }, true, nil},
		"ports left to Ironic": {func(c *host.IdentityChange) { c.Becomes.Addresses = nil }, false, nil},
		"no port":              {func(c *host.IdentityChange) { c.WithoutPorts = []string{macOf(1)} }, true, []string{macOf(1)}},
		"another bond": {func(c *host.IdentityChange) {
			c.Becomes.Bonds, c.KeptBonds = []string{macOf(9)}, []string{macOf(9)}
		}, true, []string{macOf(8)}},
		"bonds left to Ironic":   {func(c *host.IdentityChange) { c.Becomes.Bonds = nil }, false, nil},
		"other things not known": {func(c *host.IdentityChange) { c.Open = true }, false, nil},
	} {
		c := host.IdentityChange{Was: was, Becomes: was, KeptBonds: was.Bonds}
		c.Becomes.DriverInfo = maps.Clone(was.DriverInfo)
		tt.change(&c)
		if who := c.Intent(); who.Moves != tt.moves || !slices.Equal(who.Drops, tt.drops) || who.Open != c.Open {
			t.Errorf("%s: %+v", what, who)
		}
	}
}

func TestTaken_namesTheAttribute(t *testing.T) {
	t.Parallel()
	bonds := map[string]string{"bond0": macOf(8), "bond1": macOf(9)}
	for what, want := range map[identity.Kind]decide.Path{
		identity.Name: decide.At("name"), identity.BMC: decide.At("bmc", "address"),
		identity.Address: decide.At("ports", decide.Key(macOf(9))), identity.Bond: decide.At("port_groups", decide.Key("bond1"), "mac"),
	} {
		if at := (&host.Taken{What: what, Value: macOf(9)}).At(true, bonds); !reflect.DeepEqual(at, want) {
			t.Errorf("%s: %v", what, at)
		}
	}
	if at := (&host.Taken{What: identity.BMC}).At(false, nil); !reflect.DeepEqual(at, decide.At("driver_info")) {
		t.Errorf("the BMC of driver_info: %v", at)
	}
}
