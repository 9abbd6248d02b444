package doctor_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/doctor"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

const (
	provision = "deployments, cleaning, inspection, rescue"
	reserve   = "reservation without allocation"
	site39    = "limit over all projects; write deploy templates; write inspection rules"
)

// What the check says of each role is what the guide "What a user may do" says.
func TestDoctor_rights(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		user     string
		refused  string // at the site
		machines string // what the second check is about
		on       string // refused on these machines
	}{
		{"sys-admin", "", "rights on machines", ""},
		{
			"sys-member", "limit over all projects; enrol hosts; write deploy templates; write inspection rules", "rights on machines",
			"automated cleaning; create ports",
		},
		{"a-admin", site39, "rights on machines that the project owns", "owner; conductor group; automated cleaning"},
		{
			"a-manager", "limit over all projects; enrol hosts; write deploy templates; write inspection rules",
			"rights on machines that the project owns", "owner; conductor group; automated cleaning",
		},
		{
			"a-member", "limit over all projects; enrol hosts; write deploy templates; write runbooks; write inspection rules",
			"rights on machines that the project owns", "interfaces; owner; conductor group; automated cleaning; create ports",
		},
		{
			"a-reader", "limit over all projects; allocation; enrol hosts; write deploy templates; write runbooks; write inspection rules",
			"rights on machines that the project owns", "marks of runs; " + provision + "; power; create ports",
		},
		{
			"b-manager", "limit over all projects; enrol hosts; write deploy templates; write inspection rules",
			"rights on machines that the project leases",
			reserve + "; retire (quarantine); name, BMC, properties; interfaces; owner; lessee; conductor group; automated cleaning; " +
				"create ports; inventory",
		},
		{
			"b-member", "limit over all projects; enrol hosts; write deploy templates; write runbooks; write inspection rules",
			"rights on machines that the project leases",
			"instance_info of deployments; " + reserve + "; retire (quarantine); name, BMC, properties; interfaces; owner; lessee; " +
				"conductor group; automated cleaning; " + provision + "; create ports; inventory",
		},
	} {
		t.Run(tt.user, func(t *testing.T) {
			t.Parallel()
			s := newSite().behindKeystone(tt.user)
			report := s.run(t)
			wantRefused(t, report, "rights at the site", tt.refused)
			wantRefused(t, report, tt.machines, tt.on)
			for _, r := range s.ironic.Requests() {
				if r.Method != http.MethodGet && r.Status/100 == 2 {
					t.Errorf("%s %s: %d %s", r.Method, r.Path, r.Status, r.Body)
				}
			}
			if tt.on == "" {
				return
			}
			want(t, report, "rights at the site", doctor.Warning, "rule baremetal:chassis:delete, by default for admin with system scope")
		})
	}
}

// wantRefused fails the test unless a check names exactly these features as refused.
func wantRefused(t *testing.T, r *doctor.Report, name, features string) {
	t.Helper()
	all := of(r, name)
	if len(all) != 1 {
		t.Fatalf("there are %d checks %s", len(all), name)
	}
	_, refused, _ := strings.Cut(all[0].Fact, "Refused: ")
	refused, _, _ = strings.Cut(refused, ".")
	if refused != features {
		t.Errorf("%s: refused are %q, want %q", name, refused, features)
	}
	if features == "" && all[0].Result != doctor.OK {
		t.Errorf("%s: %+v", name, all[0])
	}
}

// Ironic 21.4 answers 500 to a token of a project where a rule needs one of the system.
func TestDoctor_rightsOf21(t *testing.T) {
	t.Parallel()
	s := newSite().behindKeystone("a-member")
	s.ironic.MaxMicroversion = "1.82"
	report := s.run(t)
	wantRefused(t, report, "rights at the site", "limit over all projects; enrol hosts; write deploy templates")
	want(t, report, "conductors", doctor.Unknown, "requires a scope of ['system']", "OS_SYSTEM_SCOPE=all")
	want(t, report, "drivers", doctor.Unknown)
	s = newSite().behindKeystone("a-admin")
	s.ironic.Policy = fakeironic.PolicyLegacy
	s.ironic.MaxMicroversion = "1.82"
	wantRefused(t, s.run(t), "rights at the site", "")
}

func TestDoctor_rightsWithoutMachines(t *testing.T) {
	t.Parallel()
	s := newSite().behindKeystone("a-member")
	s.ironic.Set("node-000", "owner", "another")
	want(t, s.run(t), "rights on machines", doctor.Unknown, "no machine to ask about")
}

// A server that accepts what Ironic refuses would be changed: each request names what does not exist.
func TestDoctor_asksForNothingThatExists(t *testing.T) {
	t.Parallel()
	s := newSite().behindKeystone("sys-admin")
	s.run(t)
	var asked []string
	for _, r := range s.ironic.Requests() {
		if r.Method == http.MethodGet {
			continue
		}
		asked = append(asked, fmt.Sprintf("%s %d", r.Method, r.Status))
		switch {
		case r.Method == http.MethodPatch && !strings.HasPrefix(r.Body, `[{"op":"replace","path":"/extra/terraform_metal_doctor_`),
			r.Method == http.MethodPut && !strings.Contains(r.Body, `"target":"terraform-metal-doctor"`),
			r.Method == http.MethodDelete && strings.Count(r.Path, "/") != 3:
			t.Errorf("%s %s %s", r.Method, r.Path, r.Body)
		}
	}
	for _, one := range []string{"PATCH 400", "PUT 400", "DELETE 404", "POST 400"} {
		if !slices.Contains(asked, one) {
			t.Errorf("asked %v, want %s", asked, one)
		}
	}
}

// A machine that is deleted meanwhile tells nothing about rights.
func TestDoctor_rightsOnMachineThatIsGone(t *testing.T) {
	t.Parallel()
	s := newSite().behindKeystone("a-member")
	node, _ := s.ironic.Node("node-000")
	s.ironic.Reject = func(r *http.Request) *fakeironic.Rejection {
		if strings.HasPrefix(r.URL.Path, "/v1/nodes/"+node.UUID) {
			return ironictest.Fault(http.StatusNotFound, "Node "+node.UUID+" could not be found.")
		}
		return nil
	}
	want(t, s.run(t), "rights on machines that the project owns", doctor.Warning, "Not known: marks of runs; ",
		"power: not known: Node "+node.UUID)
}
