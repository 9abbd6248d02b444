package evidence

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/reason"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// Each look-up belongs to a reason of the table, tells something, asks for at most three things, and changes nothing. A site that does not
// answer only makes facts missing.
func TestLook_asksAtMostThreeTimes(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(1)
	id := fake.Nodes()[0].UUID
	fake.Set(id, "last_error", "BIOS apply configuration failed for BootMode")
	fake.Set(id, "boot_interface", "ipxe")
	asked, broken := []string{}, false
	transport := ironictest.Transport(func(r *http.Request) (*http.Response, error) {
		if broken {
			return nil, errors.New("no answer")
		}
		if asked = append(asked, r.Method+" "+r.URL.Path); r.URL.Host == "images.test" {
			return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody, Request: r}, nil
		}
		return fake.RoundTrip(r)
	})
	client := ironic.New(api.Config{
		Endpoint: "http://ironic.test", Auth: api.AuthNone, RequestTimeout: time.Second, Transport: transport,
	}, ironic.Polls{})
	look := Look{Ironic: client, Images: transport, Image: "http://images.test/db.qcow2"}
	node, err := client.Node(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for id := range lookups {
		at := slices.IndexFunc(reason.All(), func(r reason.Reason) bool { return r.ID == id })
		if at < 0 {
			t.Fatalf("the table has no reason %s", id)
		}
		broken, asked = false, nil
		facts := look.Of(t.Context(), node, &reason.All()[at])
		if len(asked) > 3 || len(asked) == 0 || len(facts) == 0 && id != "bios-setting" {
			t.Errorf("%s: %q after %q", id, facts, asked)
		}
		for _, r := range asked {
			if !strings.HasPrefix(r, "GET ") && !strings.HasPrefix(r, "HEAD ") {
				t.Errorf("%s: %s", id, r)
			}
		}
		broken = true
		if facts := look.Of(t.Context(), node, &reason.All()[at]); len(facts) > 0 && !strings.HasPrefix(id, "image-") {
			t.Errorf("%s: %q without an answer", id, facts)
		}
	}
	if facts := look.Of(t.Context(), node, nil); facts != nil {
		t.Errorf("without a reason: %q", facts)
	}
}

// A server that redirects has answered. Where Ironic takes no heartbeats, a missing one proves nothing.
func TestLook_claimsOnlyWhatIsProven(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(1)
	transport := ironictest.Transport(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host != "images.test" {
			return fake.RoundTrip(r)
		}
		return &http.Response{
			StatusCode: http.StatusFound, Header: http.Header{"Location": {"https://cdn.test/db?sig=s"}}, Body: http.NoBody, Request: r,
		}, nil
	})
	client := ironic.New(api.Config{
		Endpoint: "http://ironic.test", Auth: api.AuthNone, RequestTimeout: time.Second, Transport: transport,
	}, ironic.Polls{})
	look := Look{Ironic: client, Images: transport, Image: "http://images.test/db.qcow2"}
	of := func(id, state string) string {
		fake.Set("node-000", "provision_state", state)
		node, err := client.Node(t.Context(), fake.Nodes()[0].UUID)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(look.Of(t.Context(), node, reason.ByID(id)), " ")
	}
	if said := of("image-404", "deploy failed"); !strings.Contains(said, "302 Found") || !strings.Contains(said, "redirects to https://cdn.test,") {
		t.Error(said)
	}
	if said := of("inspection-timeout", "inspect failed"); strings.Contains(said, "agent") {
		t.Error(said)
	}
	if said := of("callback-timeout", "deploy failed"); !strings.Contains(said, "The agent of Ironic's ramdisk has not reported") {
		t.Error(said)
	}
}
