package sharing_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

func TestPrepareAppliesProfileAndReleaseRemovesIt(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.appliance.PowerOn(s.blades.Hardware[0])
		pool := s.pool(t)
		var recorded []string
		applied, err := pool.Prepare(t.Context(), sharing.ProfileSpec{
			NodeID: s.nodes[0], Record: func(uri string) {
				recorded = append(recorded, uri)
				if h := s.appliance.HardwareAt(s.blades.Hardware[0]); h.State != fakeoneview.ApplyingProfile {
					t.Errorf("the URI was recorded when the hardware was %s, want it to be known before the profile is applied", h.State)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.wantHeld(t)
		if want := "node-000 [" + s.nodes[0] + "]"; applied.Profile.Name != want || applied.Reused {
			t.Errorf("applied = %q, reused %t, want %q, new", applied.Profile.Name, applied.Reused, want)
		}
		if !strings.Contains(applied.Profile.Description, s.nodes[0]) || !strings.HasPrefix(applied.Profile.Description,
			"Made from template-1") {
			t.Errorf("description %q, want the template's, and the node's UUID", applied.Profile.Description)
		}
		if applied.Profile.TemplateURI != s.blades.TemplateURI || applied.Profile.Compliance != oneview.Compliant {
			t.Errorf("the profile is linked to %q and %s", applied.Profile.TemplateURI, applied.Profile.Compliance)
		}
		if !slices.Equal(recorded, []string{applied.Profile.URI}) {
			t.Errorf("recorded %q, want %q once", recorded, applied.Profile.URI)
		}
		if err := pool.Release(t.Context(), sharing.ReleaseOptions{NodeID: s.nodes[0], ProfileURI: applied.Profile.URI}); err != nil {
			t.Fatal(err)
		}
		s.wantNothing(t)
		if err := pool.Release(t.Context(), sharing.ReleaseOptions{NodeID: s.nodes[0], ProfileURI: applied.Profile.URI}); err != nil {
			t.Errorf("a second release: %v", err)
		}
		if err := pool.OneView.Close(t.Context()); err != nil || s.appliance.Sessions() != 0 {
			t.Errorf("close: %v, %d sessions are left", err, s.appliance.Sessions())
		}
	})
}

func TestPrepareUsesPresentProfile(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		first := s.mustPrepare(t, s.nodes[0])
		s.appliance.PowerOn(s.blades.Hardware[0])
		s.ironic.Set(s.nodes[0], "provision_state", "active")
		s.appliance.ResetRequests()
		second := s.mustPrepare(t, s.nodes[0])
		if !second.Reused || second.Profile.URI != first.Profile.URI {
			t.Errorf("prepared %s, reused %t, want %s again", second.Profile.URI, second.Reused, first.Profile.URI)
		}
		for _, r := range s.appliance.Requests() {
			if r.Method != "GET" && r.Path != "/rest/login-sessions" {
				t.Errorf("%s %s was sent", r.Method, r.Path)
			}
		}
		s.wantHeld(t)
	})
}

func TestPrepareClearsAStaleApplied(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.setApplied(t, s.nodes[0], "/rest/server-profiles/00000000-0000-4000-8000-000000000000")
		s.mustPrepare(t, s.nodes[0])
		s.wantHeld(t)
	})
}

func TestPrepareRefusesHardwareOfAnotherUser(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		taken := s.appliance.TakeHardware(s.blades.Hardware[0])
		pool := s.pool(t)
		_, err := pool.Prepare(t.Context(), sharing.ProfileSpec{NodeID: s.nodes[0]})
		if !failure.Is(err, sharing.KindInUse) {
			t.Fatalf("err = %v, want KindInUse", err)
		}
		wantWords(t, err, "node-000", s.nodes[0], "Encl1, bay 1", s.blades.Hardware[0], "other-user-", taken)
		if err := pool.CheckUsable(t.Context(), s.node(t, s.nodes[0])); !failure.Is(err, sharing.KindInUse) {
			t.Errorf("CheckUsable: %v, want KindInUse", err)
		}
		if err := pool.Release(t.Context(), sharing.ReleaseOptions{NodeID: s.nodes[0]}); err != nil {
			t.Errorf("Release: %v", err)
		}
		if err := pool.Release(t.Context(), sharing.ReleaseOptions{NodeID: s.nodes[0], ProfileURI: taken}); !failure.Is(err,
			sharing.KindInUse) {
			t.Errorf("Release of the other user's profile: %v, want KindInUse", err)
		}
		s.wantNothing(t)
	})
}

func TestPrepareRefusesMismatch(t *testing.T) {
	t.Parallel()
	edit := func(change func(map[string]any)) func(*site) {
		return func(s *site) { s.appliance.EditTemplate(s.blades.TemplateURI, change) }
	}
	other := func(s *site, template bool) (hardwareType string) {
		rack := s.appliance.AddRackServers(1)
		if template {
			return rack.TemplateURI
		}
		return rack.TypeURI
	}
	capabilities := func(s *site, text string) {
		s.ironic.Set(s.nodes[0], "properties", map[string]any{"capabilities": text + ",server_profile_template_uri:" +
			s.blades.TemplateURI})
	}
	for _, tt := range []struct {
		name  string
		spoil func(*site)
		words []string
	}{
		{"the template is for other hardware", func(s *site) {
			s.ironic.Set(s.nodes[0], "properties", map[string]any{"capabilities": "server_profile_template_uri:" + other(s, true)})
		}, []string{"template-2", "is for server hardware type", "is for enclosure group (none)"}},
		{"the boot order is not managed", edit(func(d map[string]any) {
			d["boot"] = map[string]any{"manageBoot": false}
		}), []string{"template-1", "manageBoot"}},
		{"MACs are virtual", edit(func(d map[string]any) { d["macType"] = "Virtual" }), []string{"template-1", "Virtual", "Physical"}},
		{"the node is of another type", func(s *site) {
			capabilities(s, "server_hardware_type_uri:"+other(s, false))
		}, []string{"server_hardware_type_uri", "the hardware is of type"}},
		{"the node is in another group", func(s *site) {
			capabilities(s, "enclosure_group_uri:/rest/enclosure-groups/1")
		}, []string{"enclosure_group_uri /rest/enclosure-groups/1"}},
		{"the node has other ports", func(s *site) {
			s.appliance.EditHardware(s.blades.Hardware[0], func(h *fakeoneview.Hardware) { h.MACs = []string{"94:18:82:00:00:01"} })
		}, []string{"52:54:00:00:00:00", "94:18:82:00:00:01"}},
		{"no template is named", func(s *site) {
			s.ironic.Set(s.nodes[0], "properties", map[string]any{})
		}, []string{"server_profile_template_uri"}},
		{"no hardware is named", func(s *site) {
			s.ironic.Set(s.nodes[0], "driver_info", map[string]any{})
		}, []string{"server_hardware_uri is missing"}},
		{"it is pre-allocated", func(s *site) {
			s.ironic.Set(s.nodes[0], "driver_info", map[string]any{
				"server_hardware_uri": s.blades.Hardware[0],
				"dynamic_allocation":  "False",
			})
		}, []string{"pre-allocated", "metal oneview migrate"}},
		{"something runs on the node", func(s *site) {
			s.ironic.Set(s.nodes[0], "provision_state", "active")
		}, []string{`state "active"`, "metal_deployment"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				s := newSite(t, 1)
				s.appliance.PowerOn(s.blades.Hardware[0])
				tt.spoil(s)
				_, err := s.pool(t).Prepare(t.Context(), sharing.ProfileSpec{NodeID: s.nodes[0]})
				wantWords(t, err, tt.words...)
				s.wantNothing(t)
				if h := s.appliance.HardwareAt(s.blades.Hardware[0]); h.Power != fakeoneview.On {
					t.Error("the server was switched off for nothing")
				}
			})
		})
	}
}

func TestPrepareAcceptsRackServersWithoutPorts(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		rack := s.appliance.AddRackServers(1)
		s.ironic.Set(s.nodes[0], "driver_info", map[string]any{"server_hardware_uri": rack.Hardware[0]})
		s.ironic.Set(s.nodes[0], "properties", map[string]any{"capabilities": "server_profile_template_uri:" + rack.TemplateURI})
		s.blades = rack
		s.mustPrepare(t, s.nodes[0])
		s.wantHeld(t)
		if node := s.node(t, s.nodes[0]); node.DriverInfo["dynamic_allocation"] != true {
			t.Errorf("dynamic_allocation = %v, want a node that did not say to say it now", node.DriverInfo["dynamic_allocation"])
		}
	})
}

func TestPrepareRefusesTakenName(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 2)
		other := s.appliance.AddProfile(fakeoneview.NewProfile{Name: "WEB", HardwareURI: s.blades.Hardware[1]})
		s.appliance.MarkOthers(other)
		_, err := s.pool(t).Prepare(t.Context(), sharing.ProfileSpec{NodeID: s.nodes[0], Name: "web"})
		if !failure.Is(err, sharing.KindNameTaken) {
			t.Fatalf("err = %v, want KindNameTaken", err)
		}
		wantWords(t, err, "WEB", other, s.blades.Hardware[1])
		s.wantNothing(t)
	})
}

func TestPrepareIgnoresSimilarName(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 2)
		s.appliance.MarkOthers(s.appliance.AddProfile(fakeoneview.NewProfile{Name: "webX1", HardwareURI: s.blades.Hardware[1]}))
		if _, err := s.pool(t).Prepare(t.Context(), sharing.ProfileSpec{NodeID: s.nodes[0], Name: "web_1"}); err != nil {
			t.Fatal(err)
		}
		s.wantHeld(t)
	})
}

func TestPrepareIgnoresCopyOfProfile(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		ours := s.mustPrepare(t, s.nodes[0])
		s.appliance.ReleaseHardware(s.blades.Hardware[0])
		theirs := s.appliance.TakeHardware(s.blades.Hardware[0])
		s.appliance.EditProfile(theirs, func(d map[string]any) { d["description"] = ours.Profile.Description })
		_, err := s.pool(t).Prepare(t.Context(), sharing.ProfileSpec{NodeID: s.nodes[0]})
		if !failure.Is(err, sharing.KindInUse) {
			t.Errorf("err = %v, want KindInUse", err)
		}
		if err := s.pool(t).Release(t.Context(), sharing.ReleaseOptions{NodeID: s.nodes[0], ProfileURI: ours.Profile.URI}); err != nil {
			t.Errorf("release of ours, which is gone: %v", err)
		}
		s.wantNothing(t)
	})
}

func TestPrepareContinuesAfterTimeout(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.appliance.Inject(fakeoneview.Fault{Method: "POST", Path: "/server-profiles$", Effect: fakeoneview.SlowTask(400)})
		begun := time.Now()
		_, err := s.pool(t).Prepare(t.Context(), sharing.ProfileSpec{NodeID: s.nodes[0], Limit: 10 * time.Minute})
		if !fault.Is(err, oneview.KindTimeout) {
			t.Fatalf("err = %v, want KindTimeout", err)
		}
		if took := time.Since(begun); took < 9*time.Minute || took > 11*time.Minute {
			t.Errorf("it took %s, want the limit", took)
		}
		s.mustPrepare(t, s.nodes[0])
		s.wantHeld(t)
	})
}
