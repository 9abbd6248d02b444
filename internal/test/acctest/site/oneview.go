package site

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakehttp"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
)

// OneView is a fake appliance for one test. The tests do not run with a real appliance.
type OneView struct {
	Endpoint   string
	CACertFile string // CA certificate of the appliance
	Username   string
	Password   string
	Fake       *fakeoneview.Server
	Blades     fakeoneview.Fleet // free and off

	t testing.TB
}

// StartOneView starts an appliance with TLS and free blades for a test: the given fake (nil: an empty one). The test fails if it
// changes anything of another user, or leaves a profile of its own.
func StartOneView(t testing.TB, fake *fakeoneview.Server, blades int) *OneView {
	t.Helper()
	SkipUnlessAsked(t)
	if fake == nil {
		fake = &fakeoneview.Server{}
	}
	fake.Username, fake.Password = "ironic", "tell-nobody-33cc"
	o := &OneView{Username: fake.Username, Password: fake.Password, Fake: fake, CACertFile: filepath.Join(t.TempDir(), "ca.pem"), t: t}
	o.Blades = fake.AddBlades(blades)
	authority, err := fakehttp.New()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(fake)
	if server.TLS, err = authority.ServerConfig("127.0.0.1"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.CACertFile, authority.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	o.Endpoint = server.URL
	t.Cleanup(o.sweep)
	return o
}

// sweep fails a test that changed something of another user, and a test that passed but left a profile.
func (o *OneView) sweep() {
	for _, harm := range o.Fake.Harm() {
		o.t.Errorf("another user of OneView was harmed: %s", harm)
	}
	if left := o.Profiles(); len(left) > 0 && !o.t.Failed() {
		o.t.Errorf("left in OneView: %+v", left)
	}
}

// Profiles returns the profiles except those of other users.
func (o *OneView) Profiles() []fakeoneview.Profile {
	var ours []fakeoneview.Profile
	for _, p := range o.Fake.Profiles() {
		if !p.Others {
			ours = append(ours, p)
		}
	}
	return ours
}

// Hardware returns the present state of the nth blade, counted from 1.
func (o *OneView) Hardware(n int) fakeoneview.Hardware {
	return o.Fake.HardwareAt(o.Blades.Hardware[n-1])
}

// Take acts as another user who takes the nth blade. It returns the name of the user's profile.
func (o *OneView) Take(n int) string {
	o.t.Helper()
	uri := o.Fake.TakeHardware(o.Blades.Hardware[n-1])
	for _, p := range o.Fake.Profiles() {
		if p.URI == uri {
			return p.Name
		}
	}
	o.t.Fatalf("blade %d has a profile already", n)
	return ""
}

// GiveBack acts as another user who frees the nth blade.
func (o *OneView) GiveBack(n int) { o.Fake.ReleaseHardware(o.Blades.Hardware[n-1]) }

// Setting returns the attribute oneview of a provider block, with further settings.
func (o *OneView) Setting(settings ...string) string {
	all := append([]string{
		fmt.Sprintf("endpoint = %q", o.Endpoint), fmt.Sprintf("cacert_file = %q", o.CACertFile),
		fmt.Sprintf("username = %q", o.Username), fmt.Sprintf("password = %q", o.Password),
	}, settings...)
	return "oneview = {\n    " + strings.Join(all, "\n    ") + "\n  }"
}

// Setenv sets the appliance in an environment, such as a workspace's, instead of the provider block.
func (o *OneView) Setenv(set func(name, value string)) {
	set("ONEVIEW_ENDPOINT", o.Endpoint)
	set("ONEVIEW_CACERT_FILE", o.CACertFile)
	set("ONEVIEW_USERNAME", o.Username)
	set("ONEVIEW_PASSWORD", o.Password)
}
