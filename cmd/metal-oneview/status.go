package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

const aboutStatus = `metal-oneview status shows who uses the server hardware of every node that has server_hardware_uri in its driver_info:

  OWNER    free, ironic, oneview; "unknown" if the hardware cannot be read; "-" if the node is pre-allocated, so that no
           rule says whose it is
  PROFILE  the server profile that is on the hardware
  STATE    the node's provision state, and its maintenance with the reason

With -json it is an array of objects, which also have the URIs, the power state, the mode of allocation, and what the next
pass of sync does with the node ("leave", also if it can do nothing; "withdraw" or "return").
`

// status runs the command status.
func (c *command) status(ctx context.Context, args []string) int {
	var s settings
	flags := flag.NewFlagSet("metal-oneview status", flag.ContinueOnError)
	asJSON := flags.Bool("json", false, "write JSON")
	w, code, done := c.begin(flags, aboutStatus, &s, args)
	if done {
		return code
	}
	defer w.closePool(ctx)
	all, err := w.pool.Status(ctx)
	if err == nil && *asJSON {
		encoder := json.NewEncoder(c.stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(all)
	} else if err == nil {
		err = table(c.stdout, all)
	}
	if err != nil {
		w.log.ErrorContext(ctx, "no status", "error", err)
		return exitError
	}
	code = exitDone
	for _, one := range all {
		if one.Error != "" {
			w.log.ErrorContext(ctx, "its hardware cannot be read", "node", one.NodeID, "name", one.NodeName, "error", one.Error)
			code = exitNodesFailed
		}
	}
	return code
}

// table writes the status for people.
func table(to io.Writer, all []oneview.Standing) error {
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tHARDWARE\tOWNER\tPROFILE\tSTATE")
	for _, one := range all {
		owner := string(one.Owner)
		if one.Mode != oneview.Dynamic && one.Error == "" {
			owner = "-"
		}
		state := one.ProvisionState
		if one.Maintenance {
			state += ", maintenance: " + cmp.Or(one.MaintenanceReason, "no reason given")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", cmp.Or(one.NodeName, one.NodeID), cmp.Or(one.HardwareName, one.HardwareURI), owner,
			cmp.Or(one.ProfileName, one.ProfileURI, "-"), state)
	}
	return w.Flush()
}
