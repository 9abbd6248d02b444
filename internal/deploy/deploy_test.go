package deploy_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

func TestDeploy_runsImage(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, instanceID := sitetest.Reserved(t, 20*time.Minute)
		d := sitetest.Debian("12")
		d.DeploySteps = []ironic.DeployStep{{Interface: "bios", Step: "factory_reset", Args: map[string]any{}, Priority: 90}}
		node, attempts, err := sitetest.NewClient(fake).Deploy(t.Context(), id, d, sitetest.OnceIn4h(instanceID))
		if err != nil || node.ProvisionState != "active" || attempts != 1 || !d.DeployedWith(node) || !deploy.RunsInstance(node) {
			t.Fatalf("%+v after %d attempts, %v", node, attempts, err)
		}
		if image := deploy.ImageOf(node); image == nil || *image != *d.Image {
			t.Errorf("image %+v, want %+v", image, d.Image)
		}
		var sent map[string]any
		for _, r := range fake.Requests() {
			if r.Path == ironictest.ProvisionPath(id) {
				if err := json.Unmarshal([]byte(r.Body), &sent); err != nil {
					t.Fatal(err)
				}
			}
		}
		if want := map[string]any{
			"target": "active", "configdrive": d.ConfigDrive,
			"deploy_steps": d.DeploySteps,
		}; !ironic.SameJSON(sent, want) {
			t.Errorf("sent %v, want %v", sent, want)
		}
	})
}

func TestDeploy_continuesInterruptedRun(t *testing.T) {
	t.Parallel()
	for name, interruption := range map[string]time.Duration{"while deploying": time.Minute, "while it boots": 30 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, id, instance := sitetest.Reserved(t, 20*time.Minute)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(interruption, cancel)
				if node, _, err := sitetest.NewClient(fake).Deploy(ctx, id, sitetest.Debian("12"),
					sitetest.OnceIn4h(instance)); !api.IsInterrupted(err) || node == nil {
					t.Fatalf("%+v, %v, want an interruption with the node", node, err)
				}
				node, _, err := sitetest.NewClient(fake).Deploy(t.Context(), id, sitetest.Debian("12"), sitetest.OnceIn4h(instance))
				if err != nil || node.ProvisionState != "active" || !sitetest.Debian("12").DeployedWith(node) {
					t.Fatalf("%+v, %v", node, err)
				}
				if got := ironictest.Verbs(t, fake, id); !slices.Equal(got, []string{"active"}) {
					t.Errorf("verbs = %v: it was deployed more than once", got)
				}
			})
		})
	}
}

func TestDeploy_keepsRunningImage(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, instance := sitetest.Reserved(t, 0)
		client := sitetest.NewClient(fake)
		for range 2 {
			if _, attempts, err := client.Deploy(t.Context(), id, sitetest.Debian("12"), sitetest.OnceIn4h(instance)); err != nil ||
				attempts != 1 {
				t.Fatalf("%d attempts, %v", attempts, err)
			}
		}
		if got := ironictest.Verbs(t, fake, id); !slices.Equal(got, []string{"active"}) {
			t.Errorf("verbs = %v", got)
		}
	})
}

func TestDeploy_otherImage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		other deploy.Other
		says  string // "" is success
		verbs []string
		runs  string
	}{
		"is refused": {deploy.RefuseOther, "Import it", []string{"active"}, "debian-12"},
		"is left":    {deploy.KeepOther, "", []string{"active"}, "debian-12"},
		"is rebuilt": {deploy.RebuildOther, "", []string{"active", "rebuild"}, "debian-13"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, id, instanceID := sitetest.Reserved(t, 0)
				client := sitetest.NewClient(fake)
				if _, _, err := client.Deploy(t.Context(), id, sitetest.Debian("12"), sitetest.OnceIn4h(instanceID)); err != nil {
					t.Fatal(err)
				}
				options := sitetest.OnceIn4h(instanceID)
				options.Other = tc.other
				node, _, err := client.Deploy(t.Context(), id, sitetest.Debian("13"), options)
				if (err == nil) != (tc.says == "") || (err != nil && !strings.Contains(err.Error(), tc.says)) {
					t.Errorf("%v, want %q", err, tc.says)
				}
				if got := ironictest.Verbs(t, fake, id); !slices.Equal(got, tc.verbs) ||
					!strings.Contains(deploy.ImageSource(node), tc.runs) {
					t.Errorf("verbs = %v, want %v; it runs %s, want %s", got, tc.verbs, deploy.ImageSource(node), tc.runs)
				}
			})
		})
	}
}

func TestDeploy_rebuildReplacesContent(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, instanceID := sitetest.Reserved(t, 0)
		client := sitetest.NewClient(fake)
		partition := deploy.Deployment{
			Image: &deploy.Image{
				URL: "http://images/p", Checksum: "http://images/SUMS", Type: deploy.ImagePartition, Kernel: "http://images/k",
				Ramdisk: "http://images/r",
				RootGB:  10, SwapMB: 512, DiskFormat: "raw",
			},
			Capabilities: map[string]string{"boot_mode": "uefi"}, RootDevice: map[string]any{"serial": "S1"},
			InstanceInfo: map[string]any{"kernel_append_params": "quiet"}, ConfigDrive: map[string]any{"user_data": "x"},
		}
		if _, _, err := client.Deploy(t.Context(), id, partition, sitetest.OnceIn4h(instanceID)); err != nil {
			t.Fatal(err)
		}
		options := sitetest.OnceIn4h(instanceID)
		options.Other = deploy.RebuildOther
		whole := deploy.Deployment{Image: &deploy.Image{
			URL: "http://images/w", Checksum: strings.Repeat("ab", 32),
			Type: deploy.ImageWholeDisk,
		}}
		node, _, err := client.Deploy(t.Context(), id, whole, options)
		if err != nil {
			t.Fatal(err)
		}
		delete(node.InstanceInfo, "terraform_metal")
		delete(node.InstanceInfo, "image_url") // Ironic's own
		want := map[string]any{
			"image_source": "http://images/w", "image_type": "whole-disk", "image_os_hash_algo": "sha256",
			"image_os_hash_value": strings.Repeat("ab", 32),
		}
		if !ironic.SameJSON(node.InstanceInfo, want) {
			t.Errorf("instance_info %v, want %v", node.InstanceInfo, want)
		}
	})
}

func TestDeploy_attempts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		attempts, failures int
		works              bool
		took               int
	}{
		"one attempt":        {1, 1, false, 1},
		"zero means one":     {0, 1, false, 1},
		"the second works":   {3, 1, true, 2},
		"the third works":    {3, 2, true, 3},
		"three are too few":  {3, 3, false, 3},
		"none was necessary": {3, 0, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, id, instance := sitetest.Reserved(t, 20*time.Minute)
				failures := tc.failures
				fake.Fail = func(fakeironic.Node, string) string {
					if failures > 0 {
						failures--
						return "image not found"
					}
					return ""
				}
				options := sitetest.OnceIn4h(instance)
				options.Attempts = tc.attempts
				node, attempts, err := sitetest.NewClient(fake).Deploy(t.Context(), id, sitetest.Debian("12"), options)
				if attempts != tc.took || (err == nil) != tc.works || (!tc.works && !failure.Is(err, failure.KindFailed)) || node == nil {
					t.Errorf("%+v after %d attempts, %v", node, attempts, err)
				}
				if !tc.works && (node.ProvisionState != "deploy failed" || !strings.Contains(err.Error(), "image not found")) {
					t.Errorf("in %q: %v", node.ProvisionState, err)
				}
			})
		})
	}
}

func TestDeploy_nextRunRepeatsFailure(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, instance := sitetest.Reserved(t, 0)
		client := sitetest.NewClient(fake)
		fake.Fail = func(fakeironic.Node, string) string { return "image not found" }
		if _, _, err := client.Deploy(t.Context(), id, sitetest.Debian("12"), sitetest.OnceIn4h(instance)); err == nil {
			t.Fatal("it did not fail")
		}
		fake.Fail = nil
		node, attempts, err := client.Deploy(t.Context(), id, sitetest.Debian("13"), sitetest.OnceIn4h(instance))
		if err != nil || attempts != 1 || !sitetest.Debian("13").DeployedWith(node) {
			t.Errorf("%+v after %d attempts, %v", node, attempts, err)
		}
	})
}

func TestDeploy_needsReservation(t *testing.T) {
	t.Parallel()
	for name, holder := range map[string]any{"unreserved": nil, "by another instance": ironic.NewUUID()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake, id, instance := sitetest.Reserved(t, 0)
			fake.Set(id, "instance_uuid", holder)
			_, _, err := sitetest.NewClient(fake).Deploy(t.Context(), id, sitetest.Debian("12"), sitetest.OnceIn4h(instance))
			if !failure.Is(err, machine.KindReserved) {
				t.Errorf("%v, want an error of KindReserved", err)
			}
			for _, r := range fake.Requests() {
				if r.Method != http.MethodGet {
					t.Errorf("%s %s was sent", r.Method, r.Path)
				}
			}
		})
	}
}

func TestDeploy_doesNotAwaitCleaning(t *testing.T) {
	t.Parallel()
	fake, id, instance := sitetest.Reserved(t, time.Hour)
	fake.Set(id, "provision_state", "cleaning")
	_, _, err := sitetest.NewClient(fake).Deploy(t.Context(), id, sitetest.Debian("12"), sitetest.OnceIn4h(instance))
	if !failure.Is(err, machine.KindRefused) || !strings.Contains(err.Error(), "Apply again when it is available") {
		t.Errorf("%v, want a refusal: after it the node would be deployed without an image", err)
	}
}

func TestDeploy_validatesFirst(t *testing.T) {
	t.Parallel()
	fake, id, instanceID := sitetest.Reserved(t, 0)
	node, _, err := sitetest.NewClient(fake).Deploy(t.Context(), id,
		deploy.Deployment{Image: &deploy.Image{URL: "http://images/no-checksum"}}, sitetest.OnceIn4h(instanceID))
	if err == nil || !strings.Contains(err.Error(), "node-000") || !strings.Contains(err.Error(), "image_checksum") || node == nil {
		t.Errorf("%+v, %v", node, err)
	}
	if state := ironictest.NodeOf(t, fake, id).ProvisionState; state != "available" {
		t.Errorf("the node is in state %q: something was begun", state)
	}
}

func TestReserve_oneOfTwoWins(t *testing.T) {
	t.Parallel()
	for range 20 {
		fake := ironictest.Fleet(1)
		id := ironictest.NodeOf(t, fake, "node-000").UUID
		instances := []string{ironic.NewUUID(), ironic.NewUUID()}
		errs := make([]error, 2)
		ready := sync.WaitGroup{}
		ready.Add(2)
		fake.Reject = func(r *http.Request) *fakeironic.Rejection { // both have seen the node free before either writes
			if r.Method == http.MethodPatch {
				ready.Done()
				ready.Wait()
			}
			return nil
		}
		var wg sync.WaitGroup
		for i, instance := range instances {
			wg.Go(func() { _, errs[i] = sitetest.NewClient(fake).ReserveNode(t.Context(), id, instance) })
		}
		wg.Wait()
		winner := slices.Index(instances, ironictest.NodeOf(t, fake, id).InstanceUUID)
		if winner < 0 {
			t.Fatalf("no client got it: %v", errs)
		}
		if errs[winner] != nil || !failure.Is(errs[1-winner], machine.KindReserved) ||
			!strings.Contains(errs[1-winner].Error(), instances[winner]) {
			t.Fatalf("the winner: %v, the other: %v", errs[winner], errs[1-winner])
		}
	}
}

// A deployment that names an allocation begins only on the node that the allocation reserves.
func TestReserveNew_nodeWithoutItsAllocation(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, gone := ironictest.Fleet(1), ironic.NewUUID()
		m, err := sitetest.NewClient(fake).Machine(t.Context(), "node-000")
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = deploy.ReserveNew(t.Context(), m, sitetest.Debian("12"), gone, time.Now().Add(time.Hour))
		if !failure.Is(err, machine.KindReserved) || !strings.Contains(err.Error(), "is not reserved by "+gone) {
			t.Errorf("the error is %v", err)
		}
		if node := ironictest.NodeOf(t, fake, "node-000"); node.InstanceUUID != "" || node.ProvisionState != "available" {
			t.Errorf("the node is %s, reserved by %q", node.ProvisionState, node.InstanceUUID)
		}
	})
}

func TestReserve_node(t *testing.T) {
	t.Parallel()
	ours := ironic.NewUUID()
	for name, tc := range map[string]struct {
		prepare map[string]any
		reject  *fakeironic.Rejection
		says    string // "" is success
	}{
		"that is free":                         {nil, nil, ""},
		"that is free, and the answer is lost": {nil, ironictest.Lost(), ""},
		"that is ours already":                 {map[string]any{"instance_uuid": ours}, nil, ""},
		"that is ours and deployed":            {map[string]any{"instance_uuid": ours, "provision_state": "active"}, nil, ""},
		"reserved by another instance": {
			map[string]any{"instance_uuid": "6f2f6c4e-0000-4000-8000-000000000001"},
			nil,
			"reserved by 6f2f6c4e",
		},
		"in maintenance":                 {map[string]any{"maintenance": true, "maintenance_reason": "new fans"}, nil, "new fans"},
		"that runs something unreserved": {map[string]any{"provision_state": "active"}, nil, "something is deployed on it"},
		"that is not available":          {map[string]any{"provision_state": "manageable"}, nil, "target_state = \"available\""},
		"that is being cleaned":          {map[string]any{"provision_state": "cleaning"}, nil, "Apply again when it is available"},
		"that is gone": {
			nil, ironictest.Fault(http.StatusNotFound, "Node could not be found."),
			"could not be found",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				for field, value := range tc.prepare {
					fake.Set("node-000", field, value)
				}
				if tc.reject != nil {
					fake.Reject = ironictest.Once(http.MethodPatch, "/v1/nodes/", tc.reject)
				}
				node, err := sitetest.NewClient(fake).ReserveNode(t.Context(), ironictest.NodeOf(t, fake, "node-000").UUID, ours)
				if tc.says == "" && (err != nil || node.InstanceUUID != ours) {
					t.Errorf("%+v, %v", node, err)
				}
				if tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
					t.Errorf("%v, want %q", err, tc.says)
				}
			})
		})
	}
}

func TestReserve_defectiveIronic(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(1)
	fake.MaxMicroversion, fake.ParentNodeDefect = "1.96", true
	_, err := sitetest.NewClient(fake).ReserveNode(t.Context(), ironictest.NodeOf(t, fake, "node-000").UUID, ironic.NewUUID())
	if !fault.Is(err, ironic.KindParentDefect) {
		t.Errorf("ReserveNode = %v, want KindParentDefect", err)
	}
}

// The user stops a run while a rebuild waits for a slot. What Ironic has recorded of the machine is what runs on it, as before: another
// client that rebuilds it gets that, and the message says that nothing was started.
func TestDeploy_stoppedInTheQueueChangesNothing(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(2)
		client := sitetest.NewClient(fake, sitetest.Slots(1))
		var first, second ironic.AllocationSpec
		var ids []string
		for _, spec := range []*ironic.AllocationSpec{&first, &second} {
			*spec = webAllocation()
			spec.Name, spec.Traits = spec.UUID, nil
			a, err := sitetest.Allocate(t.Context(), client, *spec)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := client.Deploy(t.Context(), a.NodeUUID, sitetest.Debian("12"), sitetest.OnceIn4h(spec.UUID)); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, a.NodeUUID)
		}
		before := ironictest.NodeOf(t, fake, ids[1]).Raw["instance_info"]
		fake.StepTime = time.Hour
		rebuild := func(ctx context.Context, id string, spec ironic.AllocationSpec) error {
			o := sitetest.OnceIn4h(spec.UUID)
			o.Other, o.Timeout = deploy.RebuildOther, 10*time.Hour
			_, _, err := client.Deploy(ctx, id, sitetest.Debian("13"), o)
			return err
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := rebuild(t.Context(), ids[0], first); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		err := rebuild(ctx, ids[1], second)
		_, text := failure.Explain("deploy node", err)
		if !api.IsInterrupted(err) || !strings.Contains(text, "waited for a slot") || !strings.Contains(text, "Nothing was started") {
			t.Errorf("%v: %s", err, text)
		}
		if after := ironictest.NodeOf(t, fake, ids[1]).Raw["instance_info"]; !ironic.SameJSON(after, before) {
			t.Errorf("instance_info is %v, want %v", after, before)
		}
		wg.Wait()
		if err := rebuild(t.Context(), ids[1], second); err != nil || !sitetest.Debian("13").DeployedWith(mustRead(t, client, ids[1])) {
			t.Errorf("the next run: %v", err)
		}
	})
}

func mustRead(t *testing.T, client *sitetest.Client, id string) *ironic.Node {
	t.Helper()
	node, err := client.Ironic.Node(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return node
}
