package evidence_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/ports"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/evidence"
)

// read reads a file of testdata.
func read[T any](t *testing.T, file string) (value T) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// wants fails unless there is one fact with all parts; none: no fact.
func wants(t *testing.T, facts []string, parts ...string) {
	t.Helper()
	if len(facts) != min(1, len(parts)) {
		t.Fatalf("facts %q", facts)
	}
	for _, part := range parts {
		if !strings.Contains(facts[0], part) {
			t.Errorf("%q does not say %q", facts[0], part)
		}
	}
}

func TestDisks_sayWhetherTheHintIsToBlame(t *testing.T) {
	t.Parallel()
	server := read[*ironic.Inventory](t, "poweredge-r640.json")
	for name, tt := range map[string]struct {
		root  any
		found *ironic.Inventory
		want  []string
	}{
		"no inventory": {map[string]any{"serial": "S4"}, nil, []string{"no list of the node's disks", "inspect it"}},
		"mistyped": {
			map[string]any{"serial": "S5"},
			server,
			[]string{"found /dev/sda (61866da0abc), /dev/nvme0n1 (S4)", "fits none of them: correct it"},
		},
		"right":     {map[string]any{"serial": "S4"}, server, []string{"fits /dev/nvme0n1 (S4), so it is correct", "missing or failing now"}},
		"no hint":   {nil, server, []string{"has no root_device", "at least 4 GiB"}},
		"operators": {map[string]any{"model": "<in> PERC"}, server, []string{"Only Ironic's agent can compare"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wants(t, evidence.Disks(&ironic.Node{Properties: map[string]any{"root_device": tt.root}}, tt.found), tt.want...)
		})
	}
	kept := &ironic.Node{Properties: map[string]any{
		"root_device": map[string]any{"serial": "S4"}, "skip_block_devices": []any{map[string]any{"serial": "S4"}},
	}}
	wants(t, evidence.Disks(kept, server), "skip_block_devices keeps 1", "fits none of them")
}

func TestAgent_neverCameOrWasLost(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 29, 3, 0, 0, 0, time.UTC)
	node := func(heard string) *ironic.Node {
		return &ironic.Node{DriverInternalInfo: map[string]any{"agent_last_heartbeat": heard}}
	}
	wants(t, evidence.Agent(&ironic.Node{}, began), "has not reported since the operation began")
	wants(t, evidence.Agent(node("2026-11-29T02:59:00.1"), began), "has not reported since the operation began")
	wants(t, evidence.Agent(node("2026-11-29T03:04:05.1"), began), "last at 2026-11-29 03:04:05 UTC", "was lost then")
	wants(t, evidence.Agent(node("2026-11-29T03:04:05.1"), time.Time{}), "If the operation began later")
	hidden := node("2026-11-29T03:04:05.1")
	hidden.Hidden.DriverInternalInfo = true
	wants(t, evidence.Agent(hidden, began))
}

func TestCards_sayWhetherAnAddressIsMistyped(t *testing.T) {
	t.Parallel()
	server := read[*ironic.Inventory](t, "poweredge-r640.json")
	port := func(macs ...string) map[string]ironic.Port {
		all := map[string]ironic.Port{}
		for _, mac := range macs {
			all[mac] = ironic.Port{Port: ports.Port{PXEEnabled: true}}
		}
		return all
	}
	node := &ironic.Node{BootInterface: "ipxe"}
	wants(t, evidence.Cards(node, port("b0:7b:25:00:00:07"), server), "so no MAC address is mistyped", "nothing about cables")
	wants(t, evidence.Cards(node, port("b0:7b:25:00:00:70"), server), "the MAC address of port b0:7b:25:00:00:70: a typing error",
		"b0:7b:25:00:00:07, b0:7b:25:00:00:08")
	wants(t, evidence.Cards(node, port("b0:7b:25:00:00:08"), server), "booted from card b0:7b:25:00:00:07", "has no port for it")
	wants(t, evidence.Cards(node, nil, server), "(ipxe), and has no port")
	wants(t, evidence.Cards(node, port("b0:7b:25:00:00:07"), nil))
}

func TestSettings_sayWhatTheBIOSTakes(t *testing.T) {
	t.Parallel()
	all := map[string]ironic.BIOSSetting{}
	for _, s := range read[[]ironic.BIOSSetting](t, "bios-registry.json") {
		all[s.Name] = s
	}
	says := func(words string) []string { return evidence.Settings(words, all) }
	wants(t, says("BIOS apply configuration failed: BootMode: 'legacy' is not allowed"), `BootMode takes Bios, Uefi, and is "Uefi"`)
	wants(t, says("Attributes {'SystemServiceTag': 'X'} are not updated"), "SystemServiceTag is read-only")
	wants(t, says("AcPwrRcryUserDelay=5"), "takes 60 to 600, and is 60")
	wants(t, says("BIOS apply configuration failed: Bootmode"))
}

func TestConductors_sayWhichIsDown(t *testing.T) {
	t.Parallel()
	all := []ironic.Conductor{{Hostname: "c1", Alive: true}, {Hostname: "c2", UpdatedAt: time.Date(2026, 11, 29, 3, 0, 0, 0, time.UTC)}}
	wants(t, evidence.Conductors(&ironic.Node{Conductor: "c1"}, all), "1 of 2 conductors run; so does c1")
	wants(t, evidence.Conductors(&ironic.Node{Conductor: "c2"}, all), "c2, which works for the node, has not reported since 2026-11-29 03:00")
	wants(t, evidence.Conductors(&ironic.Node{}, all), "1 of 2 conductors run.")
}

func TestImage_isAHint(t *testing.T) {
	t.Parallel()
	wants(t, evidence.Image("https://me:secret@images.example.com/db.qcow2?sig=secret", 404, nil), "answers 404 Not Found to "+
		"https://images.example.com/db.qcow2", "hint only")
	wants(t, evidence.Image("https://me:secret@images.example.com/db.qcow2?sig=secret", 0, errors.New("no route")), "does not answer here (https://images.example.com)")
	for _, fact := range append(evidence.Image("https://me:secret@x/y?sig=secret", 0, errors.New("no route")), evidence.Image("https://me:secret@x/?sig=secret", 200, nil)...) {
		if strings.Contains(fact, "secret") {
			t.Error(fact)
		}
	}
}

func TestCommon_isCertainOrSilent(t *testing.T) {
	t.Parallel()
	fleet := func(n int, conductor string) (all []*ironic.Node) {
		for i := range n {
			all = append(all, &ironic.Node{
				Conductor: conductor, ResourceClass: "gpu",
				DriverInfo: map[string]any{"redfish_address": fmt.Sprintf("https://192.0.2.%d", i+1)},
			})
		}
		return all
	}
	for name, tt := range map[string]struct {
		failed, others []*ironic.Node
		want           string
	}{
		"one conductor":  {fleet(12, "c2"), fleet(28, "c1"), "12 of 12 failed: conductor c2; 0 of 28 elsewhere."},
		"most of them":   {fleet(12, "c2"), append(fleet(28, "c1"), fleet(2, "c2")...), "12 of 14 failed: conductor c2; 0 of 28 elsewhere."},
		"by chance":      {fleet(2, "c2"), append(fleet(2, "c1"), fleet(2, "c2")...), ""},
		"all are alike":  {fleet(12, "c2"), fleet(28, "c2"), ""},
		"one failure":    {fleet(1, "c2"), fleet(200, "c1"), ""},
		"no comparison":  {fleet(12, "c2"), nil, ""},
		"different ones": {append(fleet(3, "c1"), fleet(3, "c2")...), fleet(40, "c3"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := evidence.Common(tt.failed, tt.others); got != tt.want {
				t.Errorf("%q", got)
			}
		})
	}
}
