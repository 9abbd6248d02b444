package main

import "github.com/spf13/cobra"

const aboutOneView = `metal oneview manages the servers that OpenStack Ironic and HPE OneView share.

A node shares its server hardware if its driver_info has server_hardware_uri and dynamic_allocation = true. If
dynamic_allocation is not set, applied_server_profile_uri must be set. The server profile on the hardware says who uses
it:

  free       the hardware has no profile
  ironic     its profile is the one in applied_server_profile_uri of the node's driver_info
  oneview    it has another profile; the commands change neither this profile nor the server`

// newOneView returns the command metal oneview.
func newOneView(s *settings) *cobra.Command {
	group := newGroup("oneview", "Share servers between Ironic and HPE OneView", aboutOneView)
	group.AddCommand(newStatus(s), newSync(s), newMigrate(s))
	help := newHelp(group)
	help.Hidden = true
	group.AddCommand(help)
	return group
}
