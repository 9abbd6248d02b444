package machine_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/identity"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

func in(state string) *ironic.Node {
	return &ironic.Node{
		UUID: "6f2f6c4e-0000-4000-8000-000000000009", Name: "rack1-01", ProvisionState: state,
		LastError: "it broke\nat line 7", BootInterface: "ipmi-boot",
	}
}

// update makes the test write the golden file: go test ./internal/machine -run Explain -update.
var update = flag.Bool("update", false, "write the golden file")

// A reviewer reads all explanations in testdata/explained.txt.
func TestExplain_advice(t *testing.T) {
	t.Parallel()
	status := func(code int, message string) error { return &api.StatusError{Status: code, Message: message} }
	faulty, reserved := in("clean failed"), in("available")
	faulty.Fault, reserved.InstanceUUID = "clean failure", "6f2f6c4e-0000-4000-8000-000000000001"
	hidden := in("deploy failed")
	hidden.LastError, hidden.Hidden.LastError = "", true
	allocated := in("available")
	allocated.InstanceUUID, allocated.AllocationUUID = "6f2f6c4e-0000-4000-8000-000000000002", "6f2f6c4e-0000-4000-8000-000000000002"
	ipmi := in("enroll")
	ipmi.LastError = "Failed to get power state for node 6f2f6c4e-0000-4000-8000-000000000009. Error: IPMI call failed: power status."
	ipmi.DriverInfo = map[string]any{"ipmi_address": "192.0.2.1", "ipmi_port": 6230, "ipmi_username": "o'neill", "ipmi_password": "******"}
	run := &machine.Site{}
	deploy.MadeDeployment(run, reserved.InstanceUUID)
	var all strings.Builder
	for _, tc := range []struct {
		err  error
		want []string
	}{
		{rest.UnknownConfig("endpoint"), []string{"endpoint depends on something", "-target"}},
		{&api.ConnectError{
			Stage: api.AtKeystone, URL: "https://k/v3", Place: "the OS_* variables", Setting: "OS_AUTH_URL",
			Err: status(401, "No"),
		}, []string{"Keystone at https://k/v3 refuses the credentials of the OS_* variables: No (401 " +
			"Unauthorized)", "openstack token issue"}},
		{api.TooOld{Feature: "shard", Needs: 82, Have: 80, Server: 80}.Err(), []string{"shard needs API 1.82", "Upgrade Ironic"}},
		{api.TooOld{Feature: "shard", Needs: 82, Have: 80, Server: 115}.Err(), []string{"up to 1.115", "Raise microversion", `"1.82"`}},
		{machine.FailedOn(ipmi, "", "", nil), []string{
			"ipmitool -v -I lanplus -H '192.0.2.1' -p '6230' -U 'o'\\''neill' -E power status",
			"a wrong password", "no answer", "IPMI call failed",
		}},
		{machine.FailedOn(in("enroll"), "", "", nil), []string{"rack1-01", "6f2f6c4e", `"enroll"`, "it broke", "BMC"}},
		{machine.FailedOn(in("deploy failed"), "", "", nil), []string{"it broke", "the image, the checksum, the network and"}},
		{machine.FailedOn(in("clean failed"), "", "", nil), []string{"repeats the cleaning"}},
		{machine.FailedOn(faulty, "", "", nil), []string{"maintenance", `"clean failure"`}},
		{machine.FailedOn(in("inspect failed"), "", "", nil), []string{"repeats the inspection"}},
		{machine.FailedOn(in("error"), "", "", nil), []string{"run the same command again", "terraform apply undeploys the node"}},
		{machine.FailedOn(in("adopt failed"), "", "", nil), []string{"conductor's log"}},
		{machine.Late(in("deploying"), "", time.Hour, nil), []string{
			"still in state", `"deploying"`, "1h0m0s", "timeouts",
			"terraform untaint",
		}},
		{machine.CheckReservation(reserved, ""), []string{
			"reserved by 6f2f6c4e-0000-4000-8000-000000000001",
			"terraform state list -id=6f2f6c4e-0000-4000-8000-000000000009", "Do not import the node a second time", "terraform import",
			"6f2f6c4e-0000-4000-8000-000000000009",
		}},
		{deploy.NameHolder(run, machine.CheckReservation(reserved, "")), []string{
			"Another metal_deployment of this apply has this node",
			"terraform state list -id=",
		}},
		{machine.CheckReservation(allocated, ""), []string{
			"reserved by 6f2f6c4e-0000-4000-8000-000000000002",
			"An allocation has reserved the node", "set allocation_id to its id, 6f2f6c4e-0000-4000-8000-000000000002",
		}},
		{machine.CheckReservation(in("available"), "a-1"), []string{"not reserved by a-1 any more", "terraform plan again"}},
		{ironic.ParentDefect(nil), []string{"29.0.5", "Upgrade Ironic"}},
		{
			(&allocate.NoMatch{LastError: "none", Census: allocate.Census{Total: 2, OtherClass: 2}}).Err(),
			[]string{"0 of 2 nodes: 2 other class", "none", "Make more nodes available"},
		},
		{machine.RefusedFor(in("active"), "it runs. Stop it first"), []string{"rack1-01", `"active"`, "Stop it first"}},
		{&api.ConnectError{Stage: api.AtEndpoint, URL: "http://i", Err: syscall.ECONNREFUSED}, []string{"Ironic at http://i does not " +
			"answer: connection refused", "Is Ironic running there", "METAL_ENDPOINT", "api_timeout"}},
		{
			&api.ConnectError{Stage: api.AtEndpoint, URL: "http://i", Err: errors.New("the answer is not JSON")},
			[]string{"METAL_ENDPOINT", "https://ironic.example.com:6385"},
		},
		{
			&api.ConnectError{Stage: api.AtEndpoint, URL: "http://i", Err: &net.DNSError{Err: "no such host", Name: "i", IsNotFound: true}},
			[]string{"No such host: check the host name i in endpoint (METAL_ENDPOINT)"},
		},
		{
			&api.ConnectError{Stage: api.AtEndpoint, URL: "http://i", Err: &net.DNSError{Err: "server misbehaving", Name: "i"}},
			[]string{"check it in endpoint (METAL_ENDPOINT), and the name servers"},
		},
		{
			machine.UnknownDriver("redfsh", []string{"ipmi", "redfish"}, status(400, "which supports driver redfsh")),
			[]string{"no driver redfsh. Enabled are ipmi, redfish", "enabled_hardware_types"},
		},
		{
			&api.ConnectError{
				Stage: api.AtEndpoint, URL: "http://i",
				Err: &api.StatusError{Method: "GET", URL: "http://i/v1/", Status: 404},
			},
			[]string{"not Ironic", "the path before /v1"},
		},
		{&api.ConnectError{Stage: api.AtEndpoint, URL: "https://i", Err: &tls.CertificateVerificationError{
			Err: x509.UnknownAuthorityError{},
		}}, []string{"certificate is not trusted", "cacert_file"}},
		{&api.StatusError{Method: "GET", URL: "http://i/v1/nodes", Status: 404, Foreign: true}, []string{"not Ironic", "METAL_ENDPOINT"}},
		{status(401, "Incorrect username or password"), []string{"METAL_USERNAME", "METAL_PASSWORD", "OS_CLOUD"}},
		{status(403, "Access was denied"), []string{"role"}},
		{
			status(403, "Access was denied to the following resource: baremetal:node:update:instance_uuid"),
			[]string{"rule baremetal:node:update:instance_uuid", "member with system scope or member in the project that owns the node"},
		},
		{
			status(403, "Access was denied to the following resource: baremetal:node:set_provision_state"),
			[]string{"member in the project that owns the node or manager in the project that leases it", "policy.yaml"},
		},
		{
			status(403, "Access was denied to the following resource: baremetal:allocation:update"),
			[]string{"member in the project that owns the allocation"},
		},
		{
			status(403, "Access was denied to the following resource: baremetal:something:new"),
			[]string{"rule baremetal:something:new", "policy.yaml"},
		},
		{&api.StatusError{
			Status: 500, RequestID: "req-2",
			Message: `"baremetal:driver:get": "role:reader and system_scope:all" requires a scope of ['system'], request was made with project scope.`,
		}, []string{"rule baremetal:driver:get", "reader with system scope", "OS_SYSTEM_SCOPE=all"}},
		{&api.StatusError{Status: 404, Project: "p1", Message: "Node U could not be found."}, []string{"does not show it to project p1"}},
		{machine.FailedOn(hidden, "", "", nil), []string{"hides last_error from this user", "baremetal:node:get:last_error"}},
		{status(403, "Node U is protected and cannot be undeployed, rebuilt or deleted"), []string{"protected = false"}},
		{status(409, "A node with name X already exists."), []string{
			"Import the existing node, or choose another name",
			"an earlier run of yours that was killed", "terraform import <address of the metal_host> X",
		}},
		{
			status(409, "A port with MAC address M already exists."),
			[]string{"Import the node that has it", "terraform import <address of the metal_host> M"},
		},
		{status(409, "An allocation with name X already exists."), []string{
			"Import the existing allocation, or choose another name",
			"terraform import <address of the metal_allocation> X",
		}},
		{
			status(409, "Cannot remove allocation A for node U, because the node is active (and maintenance mode is off)"),
			[]string{"Destroy its metal_deployment first"},
		},
		{status(409, "Node U is associated with instance I."), []string{"metal_deployment and metal_allocation first"}},
		{
			status(409, `Can not delete node "U" while it is in provision state "active".`),
			[]string{"The node is in use. Destroy what runs on it first"},
		},
		{
			status(409, "Node U is locked by host H, please retry after the current operation is completed."),
			[]string{"Try again when it has ended"},
		},
		{status(409, "Node U can not be updated while a state transition is in progress."), []string{"Try again when it has ended"}},
		{
			status(400, "No conductor service registered which supports driver nope for conductor group"),
			[]string{"No running conductor serves this driver", "Check driver and conductor_group"},
		},
		{
			status(400, "The provisioning operation can't be performed on node U because it's in maintenance mode."),
			[]string{"maintenance = false"},
		},
		{status(400, "Cannot complete the requested action because portgroup U contains ports."), []string{"mistakes it", "port_groups"}},
		{status(400, "Node U failed to validate deploy image info."), []string{"Check image and driver_info"}},
		{status(400, "Nodes cannot be found: nope"), []string{"Check candidate_nodes"}},
		{&api.StatusError{Status: 500, Message: "oh", RequestID: "req-1"}, []string{"oh (500 Internal Server Error)", "req-1"}},
		{&api.StatusError{Method: "GET", URL: "http://i/v1/x", Status: 500}, []string{"GET http://i/v1/x: 500"}},
		{context.Canceled, []string{"interrupted", "next apply continues from there"}},
		{errors.New("élan is missing"), []string{"Élan is missing."}},
		{errors.New("rack1-01 is gone."), []string{"Rack1-01 is gone."}}, //nolint:revive // some of Ironic's texts end so
		{
			(&host.Taken{What: identity.Name, Value: "rack1-01", Node: in("manageable")}).Err(),
			[]string{"a node with name rack1-01 already exists", "terraform import"},
		},
		{
			(&host.Taken{What: identity.BMC, Value: "ipmi://192.0.2.1", Node: in("manageable")}).Err(),
			[]string{"has the BMC ipmi://192.0.2.1 already", "are one machine"},
		},
		{
			(&host.Taken{What: identity.Address, Value: "52:54:00:aa:bb:01", Node: in("manageable")}).Err(),
			[]string{"on node rack1-01", "terraform import"},
		},
		{
			machine.InvalidNode(in("available"), "Cannot validate image information: ramdisk_boot"),
			[]string{"cannot boot a live ISO", "redfish-virtual-media"},
		},
		{deploy.NoConfigDrive(in("available")), []string{"config drive", "virtual media"}},
		{
			deploy.BootLoop(ironic.NodeLabel(in("active")), bootiso.Record{Boots: 4}),
			[]string{"restarted with this image", "resets the count"},
		},
		{deploy.BootChanged(in("active"), "it is protected"), []string{"has changed since the plan", "terraform plan again"}},
		{deploy.ImageChanged("images.example.com"), []string{"images.example.com", "terraform plan again"}},
		{status(409, "Node U can not have 'retired' set to True while in available"), []string{"Make the node manageable first"}},
		{
			status(409, "Node U can not have resource_class updated unless it is in one of these states"),
			[]string{"leave resource_class as it is"},
		},
		{
			status(409, "Port P can not have any connectivity attributes updated unless node U is in a enroll state"),
			[]string{"Put the node into maintenance"},
		},
	} {
		_, detail := failure.Explain("do it", tc.err)
		all.WriteString(strings.Repeat("-", 80) + "\n" + detail + "\n")
		for _, err := range []error{tc.err, fmt.Errorf("port 52:54:00:aa:bb:01: %w", tc.err)} {
			summary, detail := failure.Explain("deploy node rack1-01", err)
			if summary != "Could not deploy node rack1-01" {
				t.Errorf("summary %q", summary)
			}
			for _, want := range tc.want {
				if !strings.Contains(strings.ToLower(detail), strings.ToLower(want)) {
					t.Errorf("%T: %q lacks %q", tc.err, detail, want)
				}
			}
			if strings.Contains(detail, "..") || strings.Contains(detail, "%!") {
				t.Errorf("%T: %q", tc.err, detail)
			}
		}
	}
	compareGolden(t, filepath.Join("testdata", "explained.txt"), all.String())
}

// Ironic's words come last. The ID of a request helps only where Ironic's log has more than its answer.
func TestExplain_factAdviceWords(t *testing.T) {
	t.Parallel()
	refused := &api.StatusError{Status: 409, Message: "Node U is associated with instance I.", RequestID: "req-1"}
	broken := &api.StatusError{Status: 500, Message: "oh", RequestID: "req-1"}
	withoutDisk := in("deploy failed")
	withoutDisk.LastError = "Deploy step deploy.write_image failed:\nNo suitable device was found for deployment using these hints " +
		"{'name': 's== /dev/sda'}"
	for want, err := range map[string]error{
		"Something is allocated to or deployed on the node. Destroy its metal_deployment and metal_allocation first.\n\n" +
			"Ironic's answer: Node U is associated with instance I (409 Conflict).": refused,
		"Ironic's answer: oh (500 Internal Server Error).\n\nFind the request in Ironic's log by its ID, req-1.": broken,
		"Node rack1-01 (6f2f6c4e-0000-4000-8000-000000000009) is in state \"inspect failed\".\n\n" +
			"Fix the cause and apply again, which repeats the inspection.\n\nIronic's last_error: " +
			"it broke\nat line 7.": machine.FailedOn(in("inspect failed"), "", "", nil),
		"Node rack1-01 (6f2f6c4e-0000-4000-8000-000000000009) is in state \"deploy failed\".\n" +
			"No disk of the machine fits root_device.\n" +
			"Compare root_device with the disks of the inventory.\n\n" +
			"Ironic's last_error (reason root-device-none): Deploy step deploy.write_image failed:\n" +
			"No suitable device was found for deployment using these hints {'name': 's== /dev/sda'}.\n\n" +
			"Fix the cause and apply again. The node stays reserved until then.": machine.FailedOn(withoutDisk, "", "", nil),
	} {
		if _, got := failure.Explain("do it", err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func compareGolden(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if golden, err := os.ReadFile(file); err != nil || string(golden) != text {
		t.Errorf("%s is out of date (%v): run the test with -update, and read the difference", file, err)
	}
}

func TestExplain_sentence(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"élan is missing": "Élan is missing.", "done.": "Done.", "": ""} {
		if _, got := failure.Explain("do it", errors.New(text)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestExplain_hidesSecrets(t *testing.T) {
	t.Parallel()
	const secret, userData = "calvin-7Q", "#cloud-config\npassword: tiger-8K"
	leak := "ipmitool -U root -P " + secret + " failed with " + userData
	hidden := func(fake *fakeironic.Server) *sitetest.Client {
		secrets := &rest.Secrets{}
		secrets.Hide(secret)
		secrets.Hide(userData)
		return sitetest.NewClient(fake, func(cfg *machine.Config) { cfg.Secrets = secrets })
	}
	for name, provoke := range map[string]func(t *testing.T) (*ironic.Node, error){
		"a refusal": func(t *testing.T) (*ironic.Node, error) {
			t.Helper()
			fake := ironictest.Fleet(1)
			fake.Reject = ironictest.Times(1, http.MethodPatch, "/v1/nodes/", ironictest.Fault(http.StatusBadRequest, leak))
			return hidden(fake).PatchNode(t.Context(), ironictest.NodeOf(t, fake, "node-000").UUID, sitetest.Setting("/description", "x"))
		},
		"last_error": func(t *testing.T) (*ironic.Node, error) {
			t.Helper()
			fake := ironictest.Fleet(1)
			fake.Fail = func(fakeironic.Node, string) string { return leak }
			return hidden(fake).Reach(t.Context(), ironictest.NodeOf(t, fake, "node-000").UUID, states.GoalDeployed, time.Hour)
		},
		"last_error of a power change": func(t *testing.T) (*ironic.Node, error) {
			t.Helper()
			fake := ironictest.Fleet(1)
			fake.Fail = func(fakeironic.Node, string) string { return leak }
			return hidden(fake).SetPower(t.Context(), ironictest.NodeOf(t, fake, "node-000").UUID, true, time.Hour)
		},
		"maintenance_reason": func(t *testing.T) (*ironic.Node, error) {
			t.Helper()
			fake := ironictest.Fleet(1)
			fake.Set("node-000", "maintenance", true)
			fake.Set("node-000", "maintenance_reason", leak)
			return hidden(fake).ReserveNode(t.Context(), ironictest.NodeOf(t, fake, "node-000").UUID, ironic.NewUUID())
		},
		"an allocation": func(t *testing.T) (*ironic.Node, error) {
			t.Helper()
			fake := ironictest.Fleet(1)
			spec := ironic.AllocationSpec{UUID: ironic.NewUUID(), ResourceClass: "baremetal"}
			fake.Reject = ironictest.Once(http.MethodGet, "/v1/allocations/", &fakeironic.Rejection{
				Status: http.StatusOK, Body: fmt.Sprintf(`{"uuid": %q, "state": "error", "last_error": %q}`, spec.UUID, leak),
			})
			_, err := sitetest.Allocate(t.Context(), hidden(fake), spec)
			return nil, err
		},
		"a validation": func(t *testing.T) (*ironic.Node, error) {
			t.Helper()
			fake, id, instance := sitetest.Reserved(t, 0)
			fake.Reject = ironictest.Once(http.MethodPut, ironictest.ProvisionPath(id),
				ironictest.Fault(http.StatusBadRequest, "Failed to validate deploy or power info: "+leak))
			node, _, err := hidden(fake).Deploy(t.Context(), id, sitetest.Debian("12"), sitetest.OnceIn4h(instance))
			return node, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				node, err := provoke(t)
				if err == nil {
					t.Fatal("nothing failed")
				}
				_, detail := failure.Explain("do it", err)
				if node != nil {
					detail += node.LastError + node.MaintenanceReason // what goes into state
				}
				if strings.Contains(detail, secret) || strings.Contains(detail, "tiger-8K") || strings.Contains(detail, "#cloud-config") {
					t.Errorf("detail %q", detail)
				}
				if !strings.Contains(detail, "******") {
					t.Errorf("detail %q does not have what Ironic said", detail)
				}
			})
		})
	}
}
