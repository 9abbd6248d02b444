package ironic_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

func TestNode_hiddenFieldsAreUnknown(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer string
		want   ironic.Hidden
	}{
		"reservation": {
			`{"reservation": "** Redacted - requires baremetal:node:get:reservation permission. **"}`,
			ironic.Hidden{Reservation: true},
		},
		"last error": {
			`{"last_error": "** Value Redacted - Requires baremetal:node:get:last_error permission. **"}`,
			ironic.Hidden{LastError: true},
		},
		"driver info": {
			`{"driver_info": {"content": "** Redacted - requires baremetal:node:get:driver_info permission. **"}}`,
			ironic.Hidden{DriverInfo: true},
		},
		"driver internal info": {
			`{"driver_internal_info": {"content": "** Redacted - Requires baremetal:node:get:driver_internal_info permission. **"}}`,
			ironic.Hidden{DriverInternalInfo: true},
		},
		"null": {
			`{"reservation": null, "last_error": null, "driver_info": {}, "driver_internal_info": null}`,
			ironic.Hidden{},
		},
	} {
		node, err := answering(tt.answer).Node(t.Context(), "n")
		if err != nil {
			t.Fatal(err)
		}
		if node.Hidden != tt.want || node.Reservation+node.LastError != "" || len(node.DriverInfo)+len(node.DriverInternalInfo) > 0 {
			t.Errorf("%s: %+v, hidden %+v", name, node, node.Hidden)
		}
	}
	plain, err := answering(`{"reservation": "c1", "last_error": "e", "driver_info": {"content": "x"}}`).Node(t.Context(), "n")
	if err != nil || plain.Hidden != (ironic.Hidden{}) || plain.Reservation != "c1" || plain.LastError != "e" ||
		plain.DriverInfo["content"] != "x" {
		t.Errorf("%+v, %v, want the values of Ironic", plain, err)
	}
}

// answering returns a client of an Ironic that answers reads of nodes with a text.
func answering(text string) *ironic.Client {
	fake := &fakeironic.Server{}
	fake.Reject = func(r *http.Request) *fakeironic.Rejection {
		if !strings.HasPrefix(r.URL.Path, "/v1/nodes") {
			return nil
		}
		status := http.StatusOK
		if r.Method == http.MethodPost {
			status = http.StatusCreated
		}
		return &fakeironic.Rejection{Status: status, Body: text}
	}
	return newClient(fake)
}

// Every request that answers with nodes is one of these.
func TestClient_hiddenFieldsAreUnknownInEveryAnswer(t *testing.T) {
	t.Parallel()
	const node = `{"uuid": "n", "last_error": "** Value Redacted - Requires baremetal:node:get:last_error permission. **"}`
	one, list := answering(node), answering(`{"nodes": [`+node+`]}`)
	want := func(read string, node *ironic.Node, err error) {
		t.Helper()
		if err != nil || !node.Hidden.LastError || node.LastError != "" {
			t.Errorf("%s: %+v, %v", read, node, err)
		}
	}
	read, err := one.Node(t.Context(), "n")
	want("a read", read, err)
	made, err := one.CreateNode(t.Context(), "n", ironic.Settings{"driver": "fake-hardware"})
	want("the answer of a creation", made, err)
	polled, _, err := one.PollNode(t.Context(), "n", time.Hour)
	want("a poll", polled, err)
	var p ironic.Patch
	p.Set("/description", "d")
	patched, err := one.PatchNode(t.Context(), "n", p)
	want("the answer of a patch", patched, err)
	short, err := list.ShortNodes(t.Context())
	want("a list of polls", short["n"], err)
	all, err := list.ListNodesByID(t.Context())
	want("a list with all fields", all["n"], err)
	for streamed, err := range list.StreamNodes(t.Context(), ironic.NodeFilter{}, 0) {
		want("a stream", streamed, err)
	}
}

// Ironic 21.4 hides fields from the owner of a node, too, if a list does not ask for its owner.
func TestClient_asksForTheOwnerWithEveryListOfFields(t *testing.T) {
	t.Parallel()
	for version, want := range map[string][]string{"1.115": {"owner", "lessee"}, "1.64": {"owner"}, "1.49": nil} {
		inVirtualTime(t, func(t *testing.T) {
			fake := &fakeironic.Server{MaxMicroversion: version}
			fake.AddFleet(1, "c")
			id := fake.Nodes()[0].UUID
			client := newClient(fake)
			if _, err := client.ShortNodes(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, _, err := client.PollNode(t.Context(), id, time.Hour); err != nil {
				t.Fatal(err)
			}
			if _, err := client.ListNodeFields(t.Context(), ironic.NodeFilter{}, []string{"uuid", "reservation"}); err != nil {
				t.Fatal(err)
			}
			for _, err := range client.StreamNodes(t.Context(), ironic.NodeFilter{}, 0, "uuid", "last_error") {
				if err != nil {
					t.Fatal(err)
				}
			}
			asked := 0
			for _, r := range fake.Requests() {
				if !strings.HasPrefix(r.Path, "/v1/nodes") || r.Method != http.MethodGet {
					continue
				}
				asked++
				for _, field := range []string{"owner", "lessee"} {
					fields := strings.Split(strings.ReplaceAll(r.Query, "%2C", ","), "&")
					has := strings.Contains(strings.Join(fields, ",")+",", ","+field+",")
					if want := strings.Contains(strings.Join(want, ","), field); has != want {
						t.Errorf("1.x = %s: GET %s?%s asks for %s: %t, want %t", version, r.Path, r.Query, field, has, want)
					}
				}
			}
			if asked != 4 {
				t.Errorf("%d requests for nodes, want 4", asked)
			}
		})
	}
}

// Ironic 21.4 answers a list with a field that it does not have with 500.
func TestListNodeFields_leavesOutWhatTheAPIDoesNotHave(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"1.82": "", "1.108": "", "1.109": "Warning"} {
		fake := &fakeironic.Server{MaxMicroversion: version}
		client := newClient(fake)
		fake.Set(enrolled(t, client, "n"), "health", "Warning")
		nodes, err := client.ListNodeFields(t.Context(), ironic.NodeFilter{}, []string{"uuid", "name", "health", "parent_node"})
		if err != nil || len(nodes) != 1 || nodes[0].Health != want || nodes[0].Name != "n" {
			t.Errorf("API %s: %+v, %v", version, nodes, err)
		}
	}
}

// While Ironic uses another deploy interface in place of autodetect, the record has both.
func TestNode_deployInterfaceThatAutodetectReplaces(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"deploy_interface": "direct", "driver_internal_info": {"original_deploy_interface": "autodetect"}}`: "autodetect direct",
		`{"deploy_interface": "autodetect", "driver_internal_info": {}}`:                                      "autodetect autodetect",
		`{"deploy_interface": "ramdisk", "driver_internal_info": null}`:                                       "ramdisk ramdisk",
		`{"deploy_interface": null}`: " ",
	} {
		node, err := answering(text).Node(t.Context(), "n")
		if err != nil {
			t.Fatal(err)
		}
		if got := node.DeployInterface + " " + node.ActingDeploy; got != want ||
			ironic.InterfacesOf(node)["deploy"] != node.DeployInterface {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
