package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

func TestReadOptions_refusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"-no-such-flag":                   "flag provided but not defined: -no-such-flag; fakeironic -h explains the flags",
		"40":                              `"40" is not a flag`,
		"-nodes many":                     `invalid value "many" for flag -nodes`,
		"-nodes -1":                       "-nodes -1 is negative",
		"-discover -1":                    "-discover -1 is negative",
		"-step-time -1s":                  "-step-time -1s is negative",
		"-step-time 2":                    `invalid value "2" for flag -step-time`,
		"-serve-for -1s":                  "-serve-for -1s is negative",
		"-password x":                     "-password needs -username",
		"-max-microversion 2.1":           `-max-microversion "2.1" is not a version between 1.1 and 1.115`,
		"-max-microversion 1.116":         `-max-microversion "1.116" is not a version`,
		"-fail n1":                        `invalid value "n1" for flag -fail: write NODE=STATE, NODE=STATE:N or NODE=STATE@REASON`,
		"-fail =clean":                    `invalid value "=clean" for flag -fail: write NODE=STATE, NODE=STATE:N or NODE=STATE@REASON`,
		"-fail n1=cleaning":               `there is no state "cleaning": choose one of verify, inspect, clean, deploy,`,
		"-fail n1=clean@fire":             `there is no reason "fire": choose one of redfish-auth, redfish-cert,`,
		"-fail n1=clean@":                 `there is no reason ""`,
		"-fail n1=clean:0":                `"0" is not a number of failures above 0`,
		"-fail n1=clean:":                 `"" is not a number of failures above 0`,
		"-fail n1=clean -fail n1=clean:2": "n1=clean is there twice",
		"-bmcs 192.0.2.0/33":              `"192.0.2.0/33" is no address, network such as 192.0.2.0/24, or name`,
		"-bmcs 192.0.2.1,":                `"" is no address`,
	} {
		_, err := readOptions(strings.Fields(given), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", given, err, want)
		}
	}
}

func TestReadOptions_helpNamesEachFlagAndState(t *testing.T) {
	t.Parallel()
	var help strings.Builder
	if _, err := readOptions([]string{"-h"}, &help); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("error %v", err)
	}
	for _, want := range append(append(stateNames(), reasonNames()...), "-agents\n", "-bmcs LIST", "-seed FILE", "-fail NODE=STATE", "-serve-for TIME", "/v1/continue_inspection") {
		if !strings.Contains(help.String(), want) {
			t.Errorf("the help does not have %q", want)
		}
	}
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nodes.json")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serverOf returns the fake of some flags, and the notes on its seed.
func serverOf(t *testing.T, args ...string) (*fakeironic.Server, string) {
	t.Helper()
	o, err := readOptions(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	fake, notes, err := o.server()
	if err != nil {
		t.Fatal(err)
	}
	return fake, strings.Join(notes, "\n")
}

func TestServer_hasTheSeedAndTheFleet(t *testing.T) {
	t.Parallel()
	nodes := file(t, `[{"name": "node-000", "driver": "redfish", "conductor_group": "rack1", "bios_interface": "redfish", "boot_interface": "ilo-uefi-https",
		"instance_info": {"deploy_interface": "ansible", "image_source": "http://x/a"}, "allocation_uuid": "7f1e2c9a-51d0-4b8e-8a43-0b6c9a7d4e21", "provision_state": "active"},
		{"name": "old", "driver": "ilo5", "boot_interface": "ilo-uefi-https"}, {"uuid": "4a3c7f10-6d2b-4e1f-9c55-000000000001"}]`)
	ports := file(t, `{"address": "52:54:00:00:00:01", "node_uuid": "4a3c7f10-6d2b-4e1f-9c55-000000000001"}`)
	fake, notes := serverOf(t, "-seed", nodes, "-seed", ports, "-nodes", "1", "-step-time", "2s")
	var names []string
	for _, node := range fake.Nodes() {
		names = append(names, node.Name)
	}
	if got := strings.Join(names, ","); got != "node-000,old,,node-001" || fake.StepTime != 2*time.Second {
		t.Errorf("the nodes are %s", got)
	}
	seeded, _ := fake.Node("node-000")
	info, _ := seeded.Raw["instance_info"].(map[string]any)
	if seeded.ProvisionState != "active" || seeded.Raw["boot_interface"] == "ilo-uefi-https" || seeded.Raw["conductor_group"] != "rack1" ||
		info["deploy_interface"] != nil || info["image_source"] != "http://x/a" {
		t.Errorf("node-000 is %v", seeded.Raw)
	}
	if old, _ := fake.Node("old"); old.Raw["driver"] != "fake-hardware" || old.ProvisionState != "available" {
		t.Errorf("old is %v", old.Raw)
	}
	for _, want := range []string{
		"node node-000 has the boot_interface ilo-uefi-https, which the fake lacks for redfish",
		"node old has the driver ilo5, which the fake lacks",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q: %s", want, notes)
		}
	}
}

func TestBMCs_answer(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"":                                      "192.0.2.1 192.0.3.1 192.0.3.1:8443 2001:db8::1 bmc.example.com other",
		"-bmcs 192.0.2.0/24":                    "192.0.2.1",
		"-bmcs 192.0.3.1 -bmcs BMC.example.com": "192.0.3.1 bmc.example.com",
		"-bmcs 2001:db8::/32,192.0.2.1,192.0.2.2": "192.0.2.1 2001:db8::1",
		"-bmcs 192.0.3.1:8443":                    "192.0.3.1:8443",
	} {
		o, err := readOptions(strings.Fields(given), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		var answer []string
		for _, bmc := range []string{"192.0.2.1", "192.0.3.1", "192.0.3.1:8443", "2001:db8::1", "bmc.example.com", "other"} {
			if o.bmcs.answers(bmc) {
				answer = append(answer, bmc)
			}
		}
		if got := strings.Join(answer, " "); got != want {
			t.Errorf("with %s answer %s, want %s", given, got, want)
		}
	}
}

func TestServer_refusesAWrongSeed(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		filepath.Join(t.TempDir(), "none.json"): "-seed: open ",
		file(t, "+---"):                         "nodes.json is not JSON",
		file(t, `[]`):                           "-seed: there is no node in",
		file(t, `{"name": "rack 1"}`):           "-seed: node rack 1: no node of Ironic has such a name",
	} {
		o, err := readOptions([]string{"-seed", given}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := o.server(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", given, err, want)
		}
	}
}

// TestServer_hasDiscoveredMachines: the first plan takes them, however long a state takes.
func TestServer_hasDiscoveredMachines(t *testing.T) {
	t.Parallel()
	fake, _ := serverOf(t, "-discover", "1", "-step-time", "1h")
	node := fake.Nodes()[0]
	if node.Reservation != "" {
		t.Errorf("the node is locked by %s", node.Reservation)
	}
	for _, key := range []string{"created_at", "updated_at"} { // a plan leaves out what is younger than itself
		at, err := time.Parse(time.RFC3339, fmt.Sprint(node.Raw[key]))
		if err != nil || time.Since(at) < 30*time.Second {
			t.Errorf("%s is %v, %v", key, node.Raw[key], err)
		}
	}
}

// TestServer_agentsRun: the agent answers on discovered machines, and on those of the seed that are not deployed.
func TestServer_agentsRun(t *testing.T) {
	t.Parallel()
	idle := file(t, `[{"name": "idle", "driver": "manual-management", "power_interface": "agent", "provision_state": "manageable"},
		{"name": "deployed", "driver": "manual-management", "power_interface": "agent", "provision_state": "active"}]`)
	fake, _ := serverOf(t, "-seed", idle, "-discover", "1", "-agents")
	url := serve(t, fake)
	if !fake.Discovery || !fake.DiscoveryKeepsPower {
		t.Error("the fake discovers no machines that are posted, or switches them off")
	}
	discovered := ""
	for _, node := range fake.Nodes() {
		if node.Name == "" {
			discovered = node.UUID
		}
	}
	fake.Set(discovered, "power_interface", "agent")
	for node, want := range map[string]bool{"idle": true, "deployed": false, discovered: true} {
		if got := powerOf(t, url, node); got != want {
			t.Errorf("the agent of %s answers: %t, want %t", node, got, want)
		}
	}
}
