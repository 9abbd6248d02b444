package operate

import (
	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
)

const aboutMaintenance = `metal maintenance puts machines into maintenance, or ends that. Ironic neither deploys nor cleans a machine in maintenance. A
metal_host that sets maintenance changes it back at its next apply.

  metal maintenance on rack1-07 --reason "fan 3 is broken, ticket 4711"`

func newMaintenance(s *cli.Settings) *cobra.Command {
	group := cli.NewGroup("maintenance", "Put machines into maintenance, or end that", aboutMaintenance)
	reason := ""
	on := newOperation(s, &cobra.Command{Use: "on [NODE...]", Short: "Put machines into maintenance"}, operate.RecordTimeout,
		func(*sharing.Pool) (operate.Operation, error) {
			return operate.Maintenance(machine.Maintenance{On: true, Reason: reason}), nil
		})
	on.Flags().StringVar(&reason, "reason", "", "`text` that says why; everybody who sees the node can read it")
	off := newOperation(s, &cobra.Command{Use: "off [NODE...]", Short: "End the maintenance of machines"}, operate.RecordTimeout,
		func(*sharing.Pool) (operate.Operation, error) {
			return operate.Maintenance(machine.Maintenance{}), nil
		})
	group.AddCommand(on, off)
	return group
}

const aboutRetire = `metal retire retires machines: nobody can reserve or deploy them any more, and what runs on them goes on. An available machine
becomes manageable first, because Ironic retires none that is available. If the command is killed, the next metal retire does the rest.

  metal retire rack1-07 --reason "end of warranty"`

func newRetire(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "retire [NODE...]", Short: "Retire machines", Long: aboutRetire}
	reason := ""
	newOperation(s, cmd, operate.RecordTimeout, func(*sharing.Pool) (operate.Operation, error) { return operate.Retire(reason), nil })
	cmd.Flags().StringVar(&reason, "reason", "", "`text` that says why; everybody who sees the node can read it")
	return cmd
}

const aboutUnretire = `metal unretire ends the retirement of machines, and the quarantine in which the provider has put them. They stay in their state.`

const aboutDelete = `metal delete deletes nodes: Ironic knows the machines no more. It sends nothing to a machine, and erases nothing. Machines that are
deployed, reserved or protected are refused.

The node of a machine that is dead can be deleted although Ironic calls it deployed: disconnect it from the power, so that it writes to
shared storage no more, put its node into maintenance, and use --dead.

If a configuration has a metal_host of the machine, remove it from there, too: its apply would make the node again.

  metal delete rack1-07                          asks for the name
  metal maintenance on rack1-07 --reason dead
  metal delete rack1-07 --dead`

func newDelete(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "delete [NODE...]", Short: "Delete nodes, which sends nothing to their machines", Long: aboutDelete}
	dead := false
	newOperation(s, cmd, operate.RecordTimeout, func(pool *sharing.Pool) (operate.Operation, error) {
		return operate.Delete(pool, dead), nil
	})
	cmd.Flags().BoolVar(&dead, "dead", false, "the machine is dead and disconnected: delete its node although it is deployed or "+
		"reserved, if it is in maintenance")
	return cmd
}

const aboutReady = `metal ready says that machines are available again for their rollout groups, although a run has left them away: it was killed, or its
ready check failed, and no apply of the same configuration will say so. Nothing is sent to the machines. Other members of the group may
change next, so check first that the machines do their work.

  metal ready rack1-07`

func newReady(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "ready [NODE...]", Short: "Say that machines are available for their rollout groups", Long: aboutReady}
	newOperation(s, cmd, operate.RecordTimeout, func(*sharing.Pool) (operate.Operation, error) { return operate.Ready(), nil })
	return cmd
}
