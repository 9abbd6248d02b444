package sharing_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

func TestInspectReturnsUserOfHardware(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		arrange func(*testing.T, *site)
		want    sharing.Holding
	}{
		{"free", func(*testing.T, *site) {}, sharing.Holding{Ownership: sharing.Free, Compliance: oneview.ComplianceUnknown}},
		{"free again", func(t *testing.T, s *site) {
			s.mustPrepare(t, s.nodes[0])
			s.appliance.ReleaseHardware(s.blades.Hardware[0])
		}, sharing.Holding{Ownership: sharing.Free, Stale: true, Compliance: oneview.ComplianceUnknown}},
		{"Ironic", func(t *testing.T, s *site) {
			s.mustPrepare(t, s.nodes[0])
		}, sharing.Holding{Ownership: sharing.UsedByIronic, Compliance: oneview.Compliant}},
		{"Ironic, in another spelling", func(t *testing.T, s *site) {
			s.setApplied(t, s.nodes[0], "https://oneview.test"+strings.ToUpper(s.mustPrepare(t, s.nodes[0]).Profile.URI)+"/")
		}, sharing.Holding{Ownership: sharing.UsedByIronic, Compliance: oneview.Compliant}},
		{"another user", func(_ *testing.T, s *site) {
			s.appliance.TakeHardware(s.blades.Hardware[0])
		}, sharing.Holding{Ownership: sharing.UsedByOneView, Compliance: oneview.ComplianceUnknown}},
		{"a killed run of ours", func(t *testing.T, s *site) {
			s.mustPrepare(t, s.nodes[0])
			s.setApplied(t, s.nodes[0], "")
		}, sharing.Holding{Ownership: sharing.UsedByOneView, Unfinished: true, Compliance: oneview.Compliant}},
		{"Ironic, after a change of the template", func(t *testing.T, s *site) {
			s.mustPrepare(t, s.nodes[0])
			s.appliance.EditTemplate(s.blades.TemplateURI, func(d map[string]any) { d["bios"] = map[string]any{"manageBios": true} })
		}, sharing.Holding{
			Ownership: sharing.UsedByIronic, Compliance: oneview.NonCompliant,
			Differences: []string{"Change bios as in the template."},
		}},
		{"Ironic's former driver", func(t *testing.T, s *site) {
			s.formerDriver(t)
		}, sharing.Holding{Ownership: sharing.UsedByIronic, Compliance: oneview.ComplianceUnknown}},
		{"Ironic's former driver, after a change of the template", func(t *testing.T, s *site) {
			s.formerDriver(t)
			s.appliance.EditTemplate(s.blades.TemplateURI, func(d map[string]any) {
				d["bootMode"] = map[string]any{"manageMode": true, "mode": "BIOS"}
			})
		}, sharing.Holding{Ownership: sharing.UsedByIronic, Compliance: oneview.ComplianceUnknown, Differences: []string{"bootMode"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				s := newSite(t, 1)
				tt.arrange(t, s)
				got, err := s.pool(t).Inspect(t.Context(), s.node(t, s.nodes[0]))
				if err != nil {
					t.Fatal(err)
				}
				if got.Ownership != tt.want.Ownership || got.Stale != tt.want.Stale || got.Unfinished != tt.want.Unfinished ||
					got.Compliance != tt.want.Compliance || !slices.Equal(got.Differences, tt.want.Differences) {
					t.Errorf("Inspect = %+v\nwant %+v", got, tt.want)
				}
				if (got.Profile == nil) != (tt.want.Ownership == sharing.Free) {
					t.Errorf("the profile is %v", got.Profile)
				}
				s.wantNoHarm(t)
			})
		})
	}
}

// formerDriver gives the first node a profile as Ironic's former OneView driver did: without a link to the template and without a mark.
func (s *site) formerDriver(t *testing.T) string {
	t.Helper()
	uri := s.appliance.AddProfile(fakeoneview.NewProfile{
		Name: "None [None]", HardwareURI: s.blades.Hardware[0], TemplateURI: s.blades.TemplateURI, Unlinked: true,
	})
	s.setApplied(t, s.nodes[0], uri)
	return uri
}

func TestProfileOfFormerDriver(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		uri := s.formerDriver(t)
		applied := s.mustPrepare(t, s.nodes[0])
		if s.wantHeld(t); applied.Profile.URI != uri || applied.Profile.TemplateURI != "" || applied.Profile.Name != "None [None]" {
			t.Errorf("applied %+v, want %s as it was", applied.Profile, uri)
		}
		if err := s.pool(t).Release(t.Context(), sharing.ReleaseOptions{NodeID: s.nodes[0], ProfileURI: uri}); err != nil {
			t.Fatal(err)
		}
		s.wantNothing(t)
	})
}
