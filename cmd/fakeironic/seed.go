package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/seed"
)

// addSeed adds the machines of the files of -seed to a fake that has none, and returns notes on them.
func (o *options) addSeed(fake *fakeironic.Server) (notes []string, err error) {
	var records seed.Seed
	for _, file := range o.seeds {
		document, err := os.ReadFile(file) //nolint:gosec // the user names the file
		if err != nil {
			return nil, fmt.Errorf("-seed: %w", err)
		}
		if err := records.Read(file, document); err != nil {
			return nil, fmt.Errorf("-seed: %w", err)
		}
	}
	if err := records.Settle(); err != nil {
		return nil, fmt.Errorf("-seed: %w", err)
	}
	if len(o.seeds) > 0 && len(records.Nodes) == 0 {
		return nil, fmt.Errorf("-seed: there is no node in %q", o.seeds)
	}
	fake.AddSeed(&records)
	idle := []string{"enroll", "manageable", "available"}
	for _, node := range fake.Nodes() {
		if o.agents && node.Raw["power_interface"] == "agent" && slices.Contains(idle, node.ProvisionState) {
			fake.RunAgent(node.UUID, true)
		}
	}
	return records.Notes, nil
}
