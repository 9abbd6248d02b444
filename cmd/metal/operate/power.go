package operate

import (
	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
)

const aboutPower = `metal power switches machines on or off, or restarts them, and waits for that.

  metal power off rack1-07 --soft              asks its operating system to shut down
  metal power reboot --name-regex '^rack1-' --provision-state active --yes-erase rack1-07,rack1-08`

func newPower(s *cli.Settings) *cobra.Command {
	group := cli.NewGroup("power", "Switch machines on or off, or restart them", aboutPower)
	for _, c := range []struct {
		name, short string
		hard, soft  machine.PowerAction
	}{
		{"on", "Switch machines on", machine.ActionOn, ""},
		{"off", "Switch machines off", machine.ActionOff, machine.ActionSoftOff},
		{"reboot", "Restart machines; a machine that is off is switched on", machine.ActionReboot, machine.ActionSoftReboot},
	} {
		cmd := &cobra.Command{Use: c.name + " [NODE...]", Short: c.short}
		soft := false
		newOperation(s, cmd, operate.PowerTimeout, func(*sharing.Pool) (operate.Operation, error) {
			if soft {
				return operate.Power(c.soft), nil
			}
			return operate.Power(c.hard), nil
		})
		if c.soft != "" {
			cmd.Flags().BoolVar(&soft, "soft", false, "ask the operating system, instead of cutting the power; fails if the "+
				"machine stays on")
		}
		group.AddCommand(cmd)
	}
	return group
}
