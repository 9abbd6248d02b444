package sharing_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

func TestTwoPreparesMakeOneProfile(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.appliance.PowerOn(s.blades.Hardware[0])
		var runs sync.WaitGroup
		for range 3 {
			runs.Go(func() {
				if _, err := s.pool(t).Prepare(t.Context(), sharing.ProfileSpec{NodeID: s.nodes[0]}); err != nil {
					t.Errorf("prepare: %v", err)
				}
			})
		}
		runs.Wait()
		s.wantHeld(t)
	})
}

func TestPrepareOfManyNodesUsesOneSession(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 20)
		pool := s.pool(t)
		each := func(work func(id string) error) {
			var workers sync.WaitGroup
			for _, id := range s.nodes {
				workers.Go(func() {
					if err := work(id); err != nil {
						t.Error(err)
					}
				})
			}
			workers.Wait()
		}
		each(func(id string) error {
			_, err := pool.Prepare(t.Context(), sharing.ProfileSpec{NodeID: id})
			return err
		})
		if n := len(s.profiles()); n != len(s.nodes) {
			t.Errorf("%d profiles for %d nodes", n, len(s.nodes))
		}
		each(func(id string) error { return pool.Release(t.Context(), sharing.ReleaseOptions{NodeID: id}) })
		if n := s.appliance.Count("POST", logins); n != 1 {
			t.Errorf("%d logins, want 1", n)
		}
		s.wantNothing(t)
	})
}

// otherUser changes a profile through the API, as another user.
func (s *site) otherUser(t *testing.T, uri string, change func(map[string]any)) {
	t.Helper()
	send := func(method, path, token string, body any, into any) {
		content, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), method, "https://oneview.test"+path, bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"X-Api-Version": {"8600"}, "Content-Type": {"application/json"}, "Auth": {token}}
		resp, err := s.appliance.RoundTrip(req)
		if err != nil || resp.StatusCode >= 300 {
			t.Fatalf("%s %s: %v %v", method, path, resp, err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	var session struct{ SessionID string }
	send(http.MethodPost, "/rest/login-sessions", "", map[string]any{"userName": "ironic", "password": password}, &session)
	var profile, task map[string]any
	send(http.MethodGet, uri, session.SessionID, nil, &profile)
	change(profile)
	send(http.MethodPut, uri, session.SessionID, profile, &task)
	<-time.After(time.Minute) // the operation has ended by then
}

func TestReleaseRemovesUnassignedProfile(t *testing.T) {
	t.Parallel()
	takeOff := func(d map[string]any) {
		d["serverHardwareUri"] = nil
		delete(d, "enclosureUri")
		delete(d, "enclosureBay")
	}
	for name, finish := range map[string]func(*testing.T, *site, string){
		"by a release": func(t *testing.T, s *site, uri string) {
			if err := s.pool(t).Release(t.Context(), sharing.ReleaseOptions{NodeID: s.nodes[0], ProfileURI: uri}); err != nil {
				t.Error(err)
			}
			s.wantNothing(t)
		},
		"by a release that does not know it": func(t *testing.T, s *site, _ string) {
			if err := s.pool(t).Release(t.Context(), sharing.ReleaseOptions{NodeID: s.nodes[0]}); err != nil {
				t.Error(err)
			}
			s.wantNothing(t)
		},
		"and made anew by a prepare": func(t *testing.T, s *site, _ string) {
			s.mustPrepare(t, s.nodes[0])
			s.wantHeld(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				s := newSite(t, 1)
				uri := s.mustPrepare(t, s.nodes[0]).Profile.URI
				s.otherUser(t, uri, takeOff)
				finish(t, s, uri)
			})
		})
	}
}

func TestReleaseSparesMovedProfile(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 2)
		uri := s.mustPrepare(t, s.nodes[0]).Profile.URI
		s.otherUser(t, uri, func(d map[string]any) {
			d["serverHardwareUri"] = s.blades.Hardware[1]
			delete(d, "enclosureUri")
			delete(d, "enclosureBay")
		})
		s.appliance.MarkOthers(uri)
		s.appliance.PowerOn(s.blades.Hardware[1])
		_, err := s.pool(t).Prepare(t.Context(), sharing.ProfileSpec{NodeID: s.nodes[0]})
		wantWords(t, err, "another server profile", s.blades.Hardware[1])
		left := ""
		o := sharing.ReleaseOptions{NodeID: s.nodes[0], ProfileURI: uri, Left: func(p *oneview.Profile, _ string) { left = p.HardwareURI }}
		if err := s.pool(t).Release(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		s.wantNothing(t)
		if left != s.blades.Hardware[1] {
			t.Errorf("the profile is said to be left on %q, want %s", left, s.blades.Hardware[1])
		}
		if h := s.appliance.HardwareAt(s.blades.Hardware[1]); h.ProfileURI != uri || h.Power != fakeoneview.On {
			t.Errorf("the other hardware is %+v, want it to be as the other user left it", h)
		}
	})
}

func TestPrepareSparesBrokenProfileOfRunningNode(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.mustPrepare(t, s.nodes[0])
		s.appliance.EditHardware(s.blades.Hardware[0], func(h *fakeoneview.Hardware) {
			h.State, h.Power = fakeoneview.ProfileError, fakeoneview.On
		})
		s.ironic.Set(s.nodes[0], "provision_state", "active")
		_, err := s.pool(t).Prepare(t.Context(), sharing.ProfileSpec{NodeID: s.nodes[0]})
		if !failure.Is(err, sharing.KindOccupied) {
			t.Errorf("err = %v, want KindOccupied", err)
		}
		s.wantHeld(t)
		s.wantPower(t, fakeoneview.On)
		s.ironic.Set(s.nodes[0], "provision_state", "manageable")
		if applied := s.mustPrepare(t, s.nodes[0]); applied.Reused || applied.Hardware.State != oneview.HardwareProfileApplied {
			t.Errorf("applied %+v, want a new profile in the place of the broken one", applied)
		}
		s.wantHeld(t)
	})
}

func TestPrepareDoesNotRepeatCreateWithLostAnswer(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.appliance.Inject(fakeoneview.Fault{Method: "POST", Path: posting, Effect: fakeoneview.LoseAnswer()})
		s.mustPrepare(t, s.nodes[0])
		if n := s.appliance.Count("POST", posting); n != 1 {
			t.Errorf("%d profiles were ordered, want 1", n)
		}
		s.wantHeld(t)
	})
}

func TestHardwareTakenMeanwhileIsSpared(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func(*testing.T, *site) error{
		"of preparing": func(t *testing.T, s *site) error {
			_, err := s.pool(t).Prepare(t.Context(), sharing.ProfileSpec{NodeID: s.nodes[0]})
			return err
		},
		"of releasing": func(t *testing.T, s *site) error {
			return s.pool(t).Release(t.Context(), sharing.ReleaseOptions{NodeID: s.nodes[0], ProfileURI: s.applied(t, s.nodes[0])})
		},
		"of reapplying the template": func(t *testing.T, s *site) error {
			_, err := s.pool(t).Update(t.Context(), sharing.UpdateOptions{
				NodeID: s.nodes[0], ProfileURI: s.applied(t, s.nodes[0]),
				Name: "web", Reapply: true,
			})
			return err
		},
		"of cleaning": func(t *testing.T, s *site) error {
			release, err := s.pool(t).Temporary(t.Context(), s.node(t, s.nodes[0]), sharing.Cleaning, 0)
			return errors.Join(err, release(t.Context()))
		},
	} {
		for nth := 1; nth <= 8; nth++ {
			t.Run(fmt.Sprintf("%s, before read %d of the hardware", name, nth), func(t *testing.T) {
				t.Parallel()
				inVirtualTime(t, func(t *testing.T) {
					s := newSite(t, 1)
					if name == "of releasing" || name == "of reapplying the template" {
						s.mustPrepare(t, s.nodes[0])
						s.newBIOS()
					}
					s.appliance.PowerOn(s.blades.Hardware[0])
					hits := s.appliance.Inject(fakeoneview.Fault{
						Method: "GET", Path: hardwares, Nth: nth,
						Effect: fakeoneview.Meanwhile(func() {
							s.appliance.ReleaseHardware(s.blades.Hardware[0])
							s.appliance.TakeHardware(s.blades.Hardware[0])
						}),
					})
					err := work(t, s)
					if hits() == 0 {
						return // the operation ended before the other user's
					}
					if name != "of releasing" && err != nil && !failure.Is(err, sharing.KindInUse) {
						t.Errorf("err = %v, want KindInUse", err)
					}
					if left := s.profiles(); len(left) > 0 {
						t.Errorf("profiles are left: %+v", left)
					}
					s.wantNoHarm(t)
					s.wantPower(t, fakeoneview.On)
				})
			})
		}
	}
}

func TestReleaseSparesProfileMovedMeanwhile(t *testing.T) {
	t.Parallel()
	for nth := 1; nth <= 2; nth++ {
		t.Run(fmt.Sprintf("before read %d of the profile", nth), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				s := newSite(t, 2)
				uri := s.mustPrepare(t, s.nodes[0]).Profile.URI
				moved := false
				s.appliance.Inject(fakeoneview.Fault{Method: "GET", Path: profiles, Nth: nth, Effect: fakeoneview.Meanwhile(func() {
					if moved {
						return
					}
					moved = true
					s.otherUser(t, uri, func(d map[string]any) {
						d["serverHardwareUri"] = s.blades.Hardware[1]
						delete(d, "enclosureUri")
						delete(d, "enclosureBay")
					})
					s.appliance.MarkOthers(uri)
					s.appliance.PowerOn(s.blades.Hardware[1])
				})})
				left := false
				o := sharing.ReleaseOptions{NodeID: s.nodes[0], ProfileURI: uri, Left: func(*oneview.Profile, string) { left = true }}
				if err := s.pool(t).Release(t.Context(), o); err != nil {
					t.Fatal(err)
				}
				if left != moved {
					t.Errorf("moved %t, said to be left %t", moved, left)
				}
				if h := s.appliance.HardwareAt(s.blades.Hardware[1]); moved && (h.ProfileURI != uri || h.Power != fakeoneview.On) {
					t.Errorf("the other hardware is %+v, want it to be as the other user left it", h)
				}
				s.wantNothing(t)
			})
		})
	}
}

func TestPrepareRemovesProfileOfDeletedNode(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.appliance.Inject(fakeoneview.Fault{Method: "POST", Path: posting, Effect: fakeoneview.BeforeRunning(func() {
			if err := s.pool(t).Site.Ironic.DeleteNode(t.Context(), s.nodes[0]); err != nil {
				t.Error(err)
			}
		})})
		recorded := "nothing"
		_, err := s.pool(t).Prepare(t.Context(), sharing.ProfileSpec{NodeID: s.nodes[0], Record: func(uri string) { recorded = uri }})
		wantWords(t, err, "404")
		if left := s.profiles(); len(left) > 0 || recorded != "" {
			t.Errorf("profiles are left: %+v, recorded %q", left, recorded)
		}
		s.wantNoHarm(t)
	})
}

func TestPrepareUsesProfileOfRunThatFailedOnIronic(t *testing.T) {
	t.Parallel()
	refuse := func(status int, after bool, n int) func(*http.Request) *fakeironic.Rejection {
		return func(r *http.Request) *fakeironic.Rejection {
			if r.Method != http.MethodPatch || n == 0 {
				return nil
			}
			n--
			body := `{"error_message": {"faultstring": "Node is locked by host conductor-1, please retry after the current operation is completed.", "faultcode": "Client"}}`
			return &fakeironic.Rejection{Status: status, After: after, Drop: status == 0, Body: body}
		}
	}
	for _, tt := range []struct {
		name   string
		reject func(*http.Request) *fakeironic.Rejection
		fails  bool
	}{
		{"the node is locked for a while", refuse(http.StatusConflict, false, 3), false},
		{"the answer is lost", refuse(0, true, 1), false},
		{"the first write fails", refuse(http.StatusForbidden, false, 1), false},
		{"nothing may be written", refuse(http.StatusForbidden, false, 2), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				s := newSite(t, 1)
				s.ironic.Reject = tt.reject
				recorded := ""
				_, err := s.pool(t).Prepare(t.Context(), sharing.ProfileSpec{NodeID: s.nodes[0], Record: func(uri string) {
					recorded = uri
				}})
				if (err != nil) != tt.fails {
					t.Fatalf("err = %v, want one: %t", err, tt.fails)
				}
				if found := s.profiles(); len(found) != 1 || recorded != found[0].URI {
					t.Errorf("recorded %q, want the one of %+v", recorded, found)
				}
				if tt.fails {
					wantWords(t, err, "applied_server_profile_uri")
					s.mustPrepare(t, s.nodes[0])
				}
				s.wantHeld(t)
			})
		})
	}
}

func TestPrepareWritesHardwareURIOnTheNode(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 2)
		s.ironic.Set(s.nodes[0], "driver_info", map[string]any{})
		applied, err := s.pool(t).Prepare(t.Context(), sharing.ProfileSpec{NodeID: s.nodes[0], HardwareURI: s.blades.Hardware[0]})
		if err != nil {
			t.Fatal(err)
		}
		s.wantHeld(t)
		_, err = s.pool(t).Prepare(t.Context(), sharing.ProfileSpec{NodeID: s.nodes[0], HardwareURI: s.blades.Hardware[1]})
		wantWords(t, err, s.blades.Hardware[0], s.blades.Hardware[1])
		if err := s.pool(t).Release(t.Context(), sharing.ReleaseOptions{NodeID: s.nodes[0], ProfileURI: applied.Profile.URI}); err != nil {
			t.Fatal(err)
		}
		s.wantNothing(t)
	})
}

func TestUnreadableProfileCountsAsUsedByOneView(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		taken := s.appliance.TakeHardware(s.blades.Hardware[0])
		s.appliance.Inject(fakeoneview.Fault{Path: profiles, Count: fakeoneview.Always, Effect: fakeoneview.Refuse(http.StatusForbidden,
			fakeoneview.Problem{Code: "E1", Message: "No."})})
		err := s.pool(t).CheckUsable(t.Context(), s.node(t, s.nodes[0]))
		wantWords(t, err, "is used by OneView", taken)
	})
}

func TestErrorNamesHardwareAndNoPassword(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		problem := fakeoneview.Problem{Code: "E1", Message: "The password " + password + " is odd."}
		s.appliance.Inject(fakeoneview.Fault{Method: "POST", Path: posting, Effect: fakeoneview.FailApply(problem, false)})
		_, err := s.pool(t).Prepare(t.Context(), sharing.ProfileSpec{NodeID: s.nodes[0]})
		wantWords(t, err, "E1", "node-000", "Encl1, bay 1")
		wantNoSecret(t, err)
		if strings.Contains(err.Error(), "is left on server hardware") {
			t.Errorf("the error says that something is left: %v", err)
		}
	})
}
