package deploy_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// A machine that exists and stays is not deployed without a notice, whatever it costs.
func TestDecide_deploysNothingSilently(t *testing.T) {
	t.Parallel()
	deploys := append(slices.Concat(says[deploy.DoRebuild], says[deploy.DoRepeat], says[deploy.DoBoot]),
		"Unfinished deployment is continued")
	stories(t, func(s story) error {
		p := deploy.Decide(s.wished, s.seen)
		announced := slices.ContainsFunc(p.Notices, func(n decide.Notice) bool { return slices.Contains(deploys, n.Summary) })
		for _, step := range p.Steps {
			visible := announced || s.seen.New || s.wished.Destroy || len(p.Replaces) > 0 // as Terraform shows it
			if step.Cost == decide.Wipe && !visible {
				return fmt.Errorf("%s has no notice: %s", step.Do, notices(p))
			}
		}
		return nil
	})
}

// A new deployment deploys or adopts its machine, and counts nothing.
func TestDecide_newDeploymentDeploysOnce(t *testing.T) {
	t.Parallel()
	stories(t, func(s story) error {
		if p := deploy.Decide(s.wished, s.seen); s.seen.New && !s.wished.OnChange.Unknown {
			if deploy.Has(p.Steps, deploy.DoAdopt) != s.wished.Adopt || deploy.Has(p.Steps, deploy.DoDeploy) == s.wished.Adopt ||
				counters(p) != "0/0" || !p.Forecast.Fresh {
				return fmt.Errorf("the plan is %s | %s", steps(p), counters(p))
			}
		}
		return nil
	})
}

// What ends a deployment undeploys its machine if on_destroy says so, and is refused if the machine is protected.
func TestDecide_protectedMachineIsNotEnded(t *testing.T) {
	t.Parallel()
	stories(t, func(s story) error {
		p := deploy.Decide(s.wished, s.seen)
		if s.seen.New || !s.wished.Destroy && len(p.Replaces) == 0 {
			return nil
		}
		onDestroy := s.seen.Was.OnDestroy.V // undeploy by default, besides an adoption
		undeploys := onDestroy == deploy.DestroyUndeploys || onDestroy == "" && !s.seen.Was.Adopt
		ends := deploy.Has(p.Steps, deploy.DoUndeploy, deploy.DoForget, deploy.DoRelease)
		switch {
		case undeploys && s.seen.Protected && (!p.Refused() || len(p.Steps) > 0):
			return fmt.Errorf("the machine is protected, and the plan is %s | %s", steps(p), notices(p))
		case deploy.Has(p.Steps, deploy.DoUndeploy) && !undeploys:
			return fmt.Errorf("on_destroy is %q, and the plan is %s", onDestroy, steps(p))
		case !p.Refused() && !ends, s.wished.Destroy && len(p.Steps) > 1, !s.wished.Destroy && ends != p.Forecast.Fresh:
			return fmt.Errorf("the plan is %s | %s", steps(p), notices(p))
		}
		return nil
	})
}

// The plan that imports a deployment neither wipes nor restarts its machine. It replaces a deployment only if nothing runs on the machine.
func TestDecide_importTouchesNoMachine(t *testing.T) {
	t.Parallel()
	stories(t, func(s story) error {
		p := deploy.Decide(s.wished, s.seen)
		if s.seen.Past.Phase != deploy.Importing || s.wished.Destroy {
			return nil
		}
		if len(p.Replaces) > 0 && !states.Occupied(s.seen.State) {
			return nil
		}
		if slices.ContainsFunc(p.Steps, func(step deploy.Step) bool { return step.Cost >= decide.Restart }) {
			return fmt.Errorf("the plan is %s", steps(p))
		}
		if !p.Refused() && counters(p) != fmt.Sprintf("%d/%d", s.seen.Rebuilds, s.seen.Restarts) {
			return fmt.Errorf("the plan shows the counters %s", counters(p))
		}
		return nil
	})
}
