package deploy_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/disks"
)

// A plan that replaces the host of a deployment that stays says so: it is refused if an allocation reserves the node all the same.
func TestDecide_hostIsReplaced(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		allocation deploy.Text
		refused    bool
	}{"with an allocation": {decide.Known("a1"), true}, "without": {deploy.Text{}, false}} {
		was := deploy.Wish{Node: decide.Known("n1"), Allocation: tt.allocation}
		p := deploy.Decide(was, deploy.Seen{Was: was, ID: "n1", Instance: "a1", State: "active", HostLeaves: true, Label: "n1"})
		if len(p.Notices) != 1 || p.Notices[0].Summary != "Deployed host is replaced" || p.Refused() != tt.refused {
			t.Errorf("%s: %+v", name, p.Notices)
		}
	}
}

// A plan that undeploys a node before its host keeps more disks is refused; one that leaves the machine alone is not.
func TestDecide_disksAreNotKeptTooLate(t *testing.T) {
	t.Parallel()
	kept := deploy.Wish{Node: decide.Known("n1")}
	forgotten := deploy.Wish{Node: decide.Known("n1"), OnDestroy: decide.Known(deploy.DestroyForgets)}
	for name, tt := range map[string]struct {
		was     deploy.Wish
		refused bool
	}{"undeployed": {kept, true}, "forgotten": {forgotten, false}} {
		p := deploy.Decide(deploy.Wish{Destroy: true}, deploy.Seen{Was: tt.was, ID: "n1", State: "active", KeepsDisks: true, Label: "n1"})
		if p.Refused() != tt.refused {
			t.Errorf("%s: %+v", name, p.Notices)
		}
	}
}

// A plan that rebuilds says which disks of the node are kept, and is refused if its root disk is. One that writes no disk says nothing.
func TestDecide_rebuildTellsKeptDisks(t *testing.T) {
	t.Parallel()
	const kept, none = "Rebuild keeps some disks", "No disk to keep"
	all := []ironic.Disk{{Name: "/dev/sda", Serial: "A"}, {Name: "/dev/sdb", Serial: "B"}}
	serial := func(s string) []disks.Hint { return []disks.Hint{{"serial": s}} }
	for name, tt := range map[string]struct {
		wish         string
		disks        deploy.Disks
		root         string
		says, detail string
	}{
		"rebuilt":         {"image=v2", deploy.Disks{Hints: serial("B"), All: all}, "", kept, "were /dev/sdb (B). Not kept: /dev/sda (A)."},
		"not inspected":   {"image=v2", deploy.Disks{Hints: serial("B")}, "", kept, `names: serial = "B".`},
		"fits none":       {"image=v2", deploy.Disks{Hints: serial("C"), All: all}, "", kept + ", " + none, `no disk with serial = "C"`},
		"root is kept":    {"image=v2", deploy.Disks{Hints: serial("B"), All: all}, "B", "!Root disk is kept", `(serial = "B")`},
		"root is another": {"image=v2", deploy.Disks{Hints: serial("B"), All: all}, "A", kept, "Not kept: /dev/sda (A)."},
		"nothing is kept": {"image=v2", deploy.Disks{}, "", "", ""},
		"restarted":       {"restart=2", deploy.Disks{Hints: serial("B"), All: all}, "", "", ""},
	} {
		s := runningMachine("image=v1")
		s.Disks = tt.disks
		wish := changed(s.Was, tt.wish)
		if tt.root != "" {
			wish.Deployment.RootDevice = map[string]any{"serial": tt.root}
		}
		var says, details []string
		for _, n := range deploy.Decide(wish, s).Notices {
			if n.Severity == decide.Refusal {
				n.Summary = "!" + n.Summary
			}
			if strings.Contains(n.Summary, "isk") && n.Summary != "Rebuild wipes the root disk" {
				says, details = append(says, n.Summary), append(details, n.Detail)
			}
		}
		if strings.Join(says, ", ") != tt.says || !strings.Contains(strings.Join(details, " "), tt.detail) {
			t.Errorf("%s: %q: %q", name, says, details)
		}
	}
}
