package deploy_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
)

// TestAfter_everyEnding lists what an update leaves in the state after each failure and interruption.
func TestAfter_everyEnding(t *testing.T) {
	t.Parallel()
	type (
		ending  = deploy.Ending
		outcome = deploy.Outcome
	)
	steps := func(kinds ...deploy.Kind) (steps []deploy.Step) {
		for _, kind := range kinds {
			step := deploy.Step{Do: kind}
			if kind == deploy.DoRebuild {
				step.Cost = decide.Wipe
			}
			steps = append(steps, step)
		}
		return steps
	}
	rebuild, checked := steps(deploy.DoRebuild), steps(deploy.DoRebuild, deploy.DoCheck)
	yes, no := decide.Known(true), decide.Known(false)
	open := decide.Unknown[bool]()
	former, unsure := deploy.RescueFormer, deploy.RescueUnsure
	for name, tt := range map[string]struct {
		end  ending
		want outcome
	}{
		"nothing to do":     {ending{Phase: deploy.Deploys}, outcome{Arrived: true}},
		"content, recorded": {ending{Phase: deploy.Deploys, NewContent: true}, outcome{Arrived: true, Footprint: deploy.FootprintAbsent}},
		"a rebuild": {
			ending{Steps: rebuild, Phase: deploy.Deploys, Runs: true, NewContent: true},
			outcome{Arrived: true, ForgetNames: true, Footprint: deploy.FootprintAsked},
		},
		"a rebuild with a check": {
			ending{Steps: checked, Phase: deploy.Deploys, Runs: true, NewContent: true, Ready: open},
			outcome{Arrived: true, ForgetNames: true, Ready: yes, Footprint: deploy.FootprintAsked},
		},
		"content of an adoption": {
			ending{Phase: deploy.Deploys, NewContent: true, Adopts: true},
			outcome{Arrived: true, Footprint: deploy.FootprintKnown},
		},

		"protection stays": {
			ending{Steps: rebuild, Phase: deploy.Unprotects, Failed: true, NewContent: true},
			outcome{Rescue: former, ReadProtected: true, Undone: true},
		},
		"a rebuild is refused": {
			ending{Steps: rebuild, Phase: deploy.Deploys, Failed: true, NewContent: true},
			outcome{
				KeepsRebuilds: true, KeepsRestarts: true, Rescue: former, ReadProtected: true, Undone: true,
			},
		},
		"Ctrl-C before a rebuild": {
			ending{Steps: rebuild, Phase: deploy.Deploys, Failed: true, Interrupted: true, NewContent: true},
			outcome{Rescue: former, Undone: true},
		},
		"a rebuild fails": {
			ending{Steps: rebuild, Phase: deploy.Deploys, Failed: true, Runs: true, NewContent: true, State: "deploy failed"},
			outcome{
				Arrived: true, KeepsRebuilds: true, KeepsRestarts: true, Rescue: former, ReadProtected: true,
				Footprint: deploy.FootprintAbsent,
			},
		},
		"Ctrl-C during a rebuild": {
			ending{
				Steps: rebuild, Phase: deploy.Deploys, Failed: true, Interrupted: true, Runs: true, NewContent: true, State: "deploying",
			},
			outcome{Arrived: true, Rescue: former, Footprint: deploy.FootprintAbsent},
		},
		"a restart is refused": {
			ending{Steps: steps(deploy.DoRestart), Phase: deploy.Restarts, Failed: true},
			outcome{Rescue: former, ReadProtected: true, Undone: true},
		},
		"Ctrl-C before a restart": {
			ending{Steps: steps(deploy.DoRestart), Phase: deploy.Restarts, Failed: true, Interrupted: true},
			outcome{Rescue: former, Undone: true},
		},
		"Ctrl-C during a restart": {
			ending{Steps: steps(deploy.DoRestart), Phase: deploy.Restarts, Failed: true, Interrupted: true, Restarting: true},
			outcome{Arrived: true, Rescue: former},
		},
		"a switch fails": {
			ending{Steps: steps(deploy.DoPowerOff), Phase: deploy.Switches, Failed: true},
			outcome{Arrived: true, Rescue: former, ReadProtected: true},
		},
		"it is not ready": {
			ending{Steps: checked, Phase: deploy.Checks, Failed: true, Runs: true, NewContent: true, Ready: open},
			outcome{Arrived: true, ForgetNames: true, Rescue: former, ReadProtected: true, Ready: no, Footprint: deploy.FootprintAsked},
		},
		"it is not ready, checked again": {
			ending{Steps: steps(deploy.DoCheck), Phase: deploy.Checks, Failed: true, Runs: true, Ready: yes},
			outcome{Arrived: true, Rescue: former, ReadProtected: true, Ready: no, Undone: true, Footprint: deploy.FootprintAsked},
		},
		"protecting fails after the check": {
			ending{Steps: checked, Phase: deploy.Protects, Failed: true, Runs: true, NewContent: true, Ready: open},
			outcome{Arrived: true, Rescue: former, ReadProtected: true, Ready: yes, Footprint: deploy.FootprintAbsent},
		},
		"a rescue is refused": {
			ending{Steps: steps(deploy.DoEnterRescue), Phase: deploy.EntersRescue, Failed: true, Rescues: true, State: "active"},
			outcome{Arrived: true, KeepsRestarts: true, Rescue: former, RescueAgain: true, ReadProtected: true, Undone: true},
		},
		"a rescue fails": {
			ending{Steps: steps(deploy.DoEnterRescue), Phase: deploy.EntersRescue, Failed: true, Rescues: true, State: "rescue failed"},
			outcome{Arrived: true, KeepsRestarts: true, Rescue: unsure, RescueAgain: true, ReadProtected: true, Undone: true},
		},
		"Ctrl-C during a rescue": {
			ending{
				Steps: steps(deploy.DoEnterRescue), Phase: deploy.EntersRescue, Failed: true, Interrupted: true, Rescues: true,
				State: "rescuing",
			},
			outcome{Arrived: true},
		},
		"the rescue does not end": {
			ending{Steps: steps(deploy.DoUnrescue), Phase: deploy.LeavesRescue, Failed: true, Rescues: true, State: "unrescue failed"},
			outcome{KeepsRestarts: true, Rescue: former, RescueAgain: true, ReadProtected: true, Undone: true},
		},
		"it has ended, and a switch fails": {
			ending{Steps: steps(deploy.DoUnrescue, deploy.DoPowerOn), Phase: deploy.Switches, Failed: true, Rescues: true, State: "active"},
			outcome{Arrived: true, ReadProtected: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := deploy.After(tt.end); got != tt.want {
				t.Errorf("After returns\n%+v, want\n%+v", got, tt.want)
			}
		})
	}
}
