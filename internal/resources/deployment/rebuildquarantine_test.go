package deployment_test

import (
	"sync/atomic"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// A machine that cannot be rebuilt is put into quarantine, and the next apply deploys another one. After max_nodes failures, it stays.
func TestAccDeployment_quarantineAfterRebuild(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	const once = `max_nodes = 1`
	w := acctest.NewWorkspace(t, rack(s)+acctest.Allocated(acctest.Image("v1"), quarantine, once))
	w.Must(acctest.Apply()...)
	bad := acctest.Deployed(t, w).Values["id"]

	w.Configure(rack(s) + acctest.Allocated(acctest.Image("v2"), quarantine, once, acctest.FailingStep))
	acctest.Fails(t, w, acctest.Apply(), "Ironic's last_error: "+acctest.LastErrorOfFailingStep,
		`The node is in quarantine: it is undeployed, retired and in state "manageable"`)
	node := s.Node(site.Text(bad))
	if node["retired"] != true || node["provision_state"] != "manageable" || node["instance_uuid"] != nil {
		t.Errorf("the node is retired %v, in state %v, reserved by %v", node["retired"], node["provision_state"], node["instance_uuid"])
	}
	site.WantVerbs(t, s, site.Text(bad), "manage", "provide", "active", "rebuild", "deleted")

	w.Configure(rack(s) + acctest.Allocated(acctest.Image("v2"), quarantine, "max_nodes = 2"))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Deployment is gone", "is in quarantine: the deployment for allocation "+s.Name("web")+" failed on it",
		"2 to add, 0 to change, 0 to destroy")
	w.Must(acctest.Apply()...)
	good := acctest.Deployed(t, w).Values["id"]
	if good == bad {
		t.Errorf("the deployment is on the failed node %v", bad)
	}
	acctest.NoChanges(t, w)

	w.Configure(rack(s) + acctest.Allocated(acctest.Image("v3"), quarantine, once, acctest.FailingStep))
	acctest.Fails(t, w, acctest.Apply(), "Could not put node", "ave failed on 1 of at most 1 nodes (max_nodes)",
		"The node stays reserved, and the next apply deploys it again")
	if node := s.Node(site.Text(good)); node["retired"] == true || node["instance_uuid"] == nil {
		t.Errorf("the node is retired %v, reserved by %v", node["retired"], node["instance_uuid"])
	}
	w.Configure(rack(s) + acctest.Allocated(acctest.Image("v3"), quarantine, once))
	w.Must(acctest.Apply()...)
	if d := acctest.Deployed(t, w); d.Values["id"] != good {
		t.Errorf("in state is %+v", d)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
	giveBack(s, "h1", "h2")
}

// By default, and for a live ISO, a machine on which an update fails stays, and the next apply tries it again.
func TestFakeDeployment_noQuarantineAfterUpdate(t *testing.T) {
	t.Parallel()
	const always = `reboot_policy = "always"`
	iso := bmc.ServeISO(t)
	for name, content := range map[string][]string{
		"keep":     {acctest.Image("v1"), acctest.Image("v2"), `on_failure = "keep"`},
		"live ISO": {liveISO(iso.URL("v1"), always), liveISO(iso.URL("v2"), always), quarantine},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var broken atomic.Bool
			s := site.StartFake(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
				if broken.Load() && (verb == "active" || verb == "rebuild") {
					return "no space left on device"
				}
				return ""
			}})
			addLiveNode(t, s, 1, nil)
			config := func(content, onFailure string) string {
				return s.Provider() + named(s) + acctest.Allocated(content, onFailure)
			}
			w := acctest.NewWorkspace(t, config(content[0], content[2]))
			w.Must(acctest.Apply()...)
			broken.Store(true)
			w.Configure(config(content[1], content[2]))
			acctest.NeverMention(t, acctest.Fails(t, w, acctest.Apply(), "no space left on device"), "quarantine: it is")
			if failed := retired(s, "n1"); len(failed) > 0 {
				t.Errorf("in quarantine are %v", failed)
			}
			broken.Store(false)
			w.Must(acctest.Apply()...)
			acctest.NoChanges(t, w)
			w.Must("destroy", "-auto-approve")
		})
	}
}
