// Package oneview has the commands of metal oneview.
package oneview

import (
	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
)

const aboutOneView = `metal oneview manages the servers that OpenStack Ironic and HPE OneView share.

A node shares its server hardware if its driver_info has server_hardware_uri and dynamic_allocation = true. If
dynamic_allocation is not set, applied_server_profile_uri must be set. The server profile on the hardware says who uses
it:

  free       the hardware has no profile
  ironic     its profile is the one in applied_server_profile_uri of the node's driver_info
  oneview    it has another profile; the commands change neither this profile nor the server`

// Command returns the command metal oneview.
func Command(s *cli.Settings) *cobra.Command {
	group := cli.NewGroup("oneview", "Share servers between Ironic and HPE OneView", aboutOneView)
	group.Annotations = map[string]string{cli.Environment: "  ONEVIEW_PASSWORD  The password of the user of the appliance."}
	group.PersistentFlags().AddFlagSet(s.OneViewFlags())
	group.AddCommand(newStatus(s), newSync(s), newMigrate(s))
	help := cli.NewHelp(group)
	help.Hidden = true
	group.AddCommand(help)
	return group
}
