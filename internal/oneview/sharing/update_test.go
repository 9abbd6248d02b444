package sharing_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

func TestUpdateRenames(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		uri := s.mustPrepare(t, s.nodes[0]).Profile.URI
		s.ironic.Set(s.nodes[0], "provision_state", "active")
		s.appliance.PowerOn(s.blades.Hardware[0])
		applied, err := s.pool(t).Update(t.Context(), sharing.UpdateOptions{NodeID: s.nodes[0], ProfileURI: uri, Name: "web"})
		if err != nil {
			t.Fatal(err)
		}
		if s.wantHeld(t); applied.Profile.Name != "web" || s.profiles()[0].Name != "web" {
			t.Errorf("the profile is %q", s.profiles()[0].Name)
		}
		s.wantPower(t, fakeoneview.On)
		s.setApplied(t, s.nodes[0], "")
		holding, err := s.pool(t).Inspect(t.Context(), s.node(t, s.nodes[0]))
		if err != nil || !holding.Unfinished {
			t.Errorf("Inspect = %+v, %v, want the mark to name the new name", holding, err)
		}
	})
}

func (s *site) wantPower(t *testing.T, want fakeoneview.Power) {
	t.Helper()
	if got := s.appliance.HardwareAt(s.blades.Hardware[0]).Power; got != want {
		t.Errorf("the server is %s, want %s", got, want)
	}
}

// newBIOS makes a change of the template that requires the server to be off.
func (s *site) newBIOS() {
	s.appliance.EditTemplate(s.blades.TemplateURI, func(d map[string]any) { d["bios"] = map[string]any{"manageBios": true} })
}

func TestReapplyRefusesRunningNode(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		uri := s.mustPrepare(t, s.nodes[0]).Profile.URI
		s.newBIOS()
		s.appliance.PowerOn(s.blades.Hardware[0])
		s.ironic.Set(s.nodes[0], "provision_state", "active")
		reapply := sharing.UpdateOptions{NodeID: s.nodes[0], ProfileURI: uri, Reapply: true}
		_, err := s.pool(t).Update(t.Context(), reapply)
		if !failure.Is(err, sharing.KindOccupied) {
			t.Fatalf("err = %v, want KindOccupied", err)
		}
		s.wantPower(t, fakeoneview.On)
		s.ironic.Set(s.nodes[0], "provision_state", "manageable")
		applied, err := s.pool(t).Update(t.Context(), reapply)
		if err != nil {
			t.Fatal(err)
		}
		if applied.Profile.Compliance != oneview.Compliant {
			t.Errorf("the profile is %s", applied.Profile.Compliance)
		}
		s.wantPower(t, fakeoneview.Off)
		s.wantHeld(t)
	})
}

func TestReapplyOnlineChange(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		uri := s.mustPrepare(t, s.nodes[0]).Profile.URI
		s.appliance.EditTemplate(s.blades.TemplateURI, func(d map[string]any) {
			d["connectionSettings"] = map[string]any{"manageConnections": true, "connections": []any{}}
		})
		s.appliance.PowerOn(s.blades.Hardware[0])
		s.ironic.Set(s.nodes[0], "provision_state", "active")
		applied, err := s.pool(t).Update(t.Context(), sharing.UpdateOptions{NodeID: s.nodes[0], ProfileURI: uri, Reapply: true})
		if err != nil || applied.Profile.Compliance != oneview.Compliant {
			t.Errorf("Update = %+v, %v", applied, err)
		}
		s.wantPower(t, fakeoneview.On)
	})
}

func TestUpdateTemplate(t *testing.T) {
	t.Parallel()
	for name, former := range map[string]bool{"profile of ours": false, "profile of the former driver": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				s := newSite(t, 1)
				var uri string
				if former {
					uri = s.formerDriver(t)
				} else {
					uri = s.mustPrepare(t, s.nodes[0]).Profile.URI
				}
				s.appliance.PowerOn(s.blades.Hardware[0])
				template := s.appliance.AddTemplate(fakeoneview.Template{TypeURI: s.blades.TypeURI, GroupURI: s.blades.GroupURI})
				s.appliance.EditTemplate(template, func(d map[string]any) {
					d["bootMode"] = map[string]any{"manageMode": true, "mode": "BIOS"}
				})
				applied, err := s.pool(t).Update(t.Context(), sharing.UpdateOptions{
					NodeID: s.nodes[0], ProfileURI: uri,
					TemplateURI: template,
				})
				if err != nil {
					t.Fatal(err)
				}
				if applied.Profile.URI != uri || applied.Profile.TemplateURI != template ||
					applied.Profile.Compliance != oneview.Compliant {
					t.Errorf("applied %+v, want %s to comply with %s", applied.Profile, uri, template)
				}
				s.wantHeld(t)
			})
		})
	}
}

func TestUpdateRefusesMismatch(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		uri := s.mustPrepare(t, s.nodes[0]).Profile.URI
		rack := s.appliance.AddRackServers(1)
		s.appliance.ResetRequests()
		_, err := s.pool(t).Update(t.Context(), sharing.UpdateOptions{NodeID: s.nodes[0], ProfileURI: uri, TemplateURI: rack.TemplateURI})
		if !failure.Is(err, sharing.KindMismatch) {
			t.Errorf("err = %v, want KindMismatch", err)
		}
		if n := s.appliance.Count("PUT", ""); n > 0 {
			t.Errorf("%d PUTs were sent", n)
		}
	})
}

func TestUpdateRefusesProfileOfAnotherUser(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		ours := s.mustPrepare(t, s.nodes[0]).Profile.URI
		s.appliance.ReleaseHardware(s.blades.Hardware[0])
		theirs := s.appliance.TakeHardware(s.blades.Hardware[0])
		for _, uri := range []string{ours, theirs} {
			_, err := s.pool(t).Update(t.Context(), sharing.UpdateOptions{NodeID: s.nodes[0], ProfileURI: uri, Name: "web", Reapply: true})
			if !failure.Is(err, sharing.KindInUse) {
				t.Errorf("err = %v, want KindInUse", err)
			}
		}
		s.wantNoHarm(t)
	})
}

func TestUpdateWithstandsFaults(t *testing.T) {
	t.Parallel()
	all := append(wrecks(http.MethodPut, profiles), wrecks(http.MethodPatch, profiles)...)
	for _, method := range []string{http.MethodPut, http.MethodPatch} {
		all = append(all, wreck{
			name:   "the appliance refuses the version once",
			faults: always(fakeoneview.Fault{Method: method, Path: profiles, Effect: fakeoneview.StaleETag()}),
		})
	}
	for _, tt := range all {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				s := newSite(t, 1)
				uri := s.mustPrepare(t, s.nodes[0]).Profile.URI
				s.newBIOS()
				s.appliance.PowerOn(s.blades.Hardware[0])
				s.befall(tt)
				_, err := s.pool(t).Update(t.Context(), sharing.UpdateOptions{
					NodeID: s.nodes[0], ProfileURI: uri, Name: "web",
					Reapply: true,
				})
				if tt.fails != "" {
					wantWords(t, err, tt.fails)
					wantNoSecret(t, err)
				} else if err != nil {
					t.Fatalf("it failed: %v", err)
				}
				s.wantHeld(t)
				if name := s.profiles()[0].Name; tt.fails == "" && name != "web" {
					t.Errorf("the profile is named %q", name)
				}
				if holding, err := s.pool(t).Inspect(t.Context(), s.node(t, s.nodes[0])); tt.fails == "" &&
					(err != nil || holding.Compliance != oneview.Compliant) {
					t.Errorf("Inspect = %+v, %v, want it to comply", holding, err)
				}
			})
		})
	}
}

func TestUpdateRefusesTakenName(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 2)
		uri := s.mustPrepare(t, s.nodes[0]).Profile.URI
		s.appliance.MarkOthers(s.appliance.AddProfile(fakeoneview.NewProfile{Name: "web", HardwareURI: s.blades.Hardware[1]}))
		_, err := s.pool(t).Update(t.Context(), sharing.UpdateOptions{NodeID: s.nodes[0], ProfileURI: uri, Name: "Web"})
		if !failure.Is(err, sharing.KindNameTaken) {
			t.Errorf("err = %v, want KindNameTaken", err)
		}
		if name := s.profiles()[0].Name; !strings.HasPrefix(name, "node-000") {
			t.Errorf("the profile is named %q", name)
		}
		s.wantHeld(t)
	})
}
