package observe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/lock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

const aboutLock = `metal lock writes what machines of a model have in common into a file: CPUs, memory, disks, network cards, GPUs,
BIOS settings and versions of firmware, by the product that their last inspection has found. The file is for a repository:
sorted, with one line a fact, so that a change is a line in a pull request. expect_hardware of metal_host takes a model of it.

A fact that differs among the machines of a model is left out, and told on standard error with its values. To write the file
from one machine that is right, name it. A fact of the file stays as it is written as long as all selected machines have it,
and models of which no machine is selected stay.

With --check, it writes nothing, and says which machines differ from the file, and where. Then it ends with exit code 2. What
Ironic does not know of a machine is no difference. Memory and sizes of disks may differ by 2 %, because firmware reserves
memory and vendors round sizes.

It makes up to three requests for each machine, and changes nothing in Ironic. BIOS settings and versions are those that
Ironic has read last; versions, except that of the BIOS, need API 1.86.

  metal lock --all                                  all models of the site
  metal lock rack1-07                               from a machine that is right
  metal lock --check --resource-class gpu           a job of CI
  metal lock --check --all --output json > audit.json`

func newLock(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "lock [NODE...]", Short: "Write what machines of a model have in common, or check them", Long: aboutLock}
	name := cmd.Flags().String("lock-file", "hardware.lock.json", "`file` with the models")
	check := cmd.Flags().Bool("check", false, "compare the machines with the file, and write nothing")
	return newReport(s, cmd, func(client *ironic.Client, nodes []ironic.Node, output string) error {
		file, err := readLock(*name)
		if err != nil && (*check || !errors.Is(err, fs.ErrNotExist)) {
			return &cli.Failure{Code: cli.ExitError, Err: fmt.Errorf("could not read %s: %w", *name, err)}
		}
		wanted := file
		if !*check {
			wanted = nil
		}
		machines, err := lock.Read(cmd.Context(), client, nodes, wanted)
		if err != nil {
			return s.Unread("the hardware", err)
		}
		if *check {
			return checkLock(cmd, file, machines, output)
		}
		return writeLock(cmd, *name, file, machines, output)
	})
}

func readLock(name string) (lock.File, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return lock.Parse(text)
}

// writeLock writes the file with what machines have in common.
func writeLock(cmd *cobra.Command, name string, before lock.File, machines []lock.Machine, output string) error {
	now, differ := before.With(machines)
	unknown := lock.Unknown(machines)
	for _, one := range unknown {
		cli.Line(cmd.ErrOrStderr(), "%s", one)
	}
	for _, one := range differ {
		cli.Line(cmd.ErrOrStderr(), "%s", one)
	}
	text, err := now.Encode()
	if err == nil && len(unknown) < len(machines) {
		err = os.WriteFile(name, text, 0o644) //nolint:gosec // the file is for a repository
	}
	if err == nil && output == "json" {
		err = rest.WriteJSON(cmd.OutOrStdout(), map[string]any{"lock_file": name, "left_out": differ, "unknown": unknown})
	}
	switch {
	case err != nil:
		return &cli.Failure{Code: cli.ExitError, Err: err}
	case len(unknown) > 0:
		return &cli.Failure{Code: cli.ExitNodesFailed, Err: fmt.Errorf("%s: %s of %d belong to no model; see above", name,
			words.Count(len(unknown), "machine"), len(machines))}
	case output != "json":
		cli.Line(cmd.OutOrStdout(), "%s: %s, from %s", name, words.Count(len(now), "model"), words.Count(len(machines), "machine"))
	}
	return nil
}

// checkLock says which machines differ from the file.
func checkLock(cmd *cobra.Command, file lock.File, machines []lock.Machine, output string) error {
	found, differ, unknown := file.Check(machines), 0, 0
	for _, one := range found {
		if output != "json" && one.String() != "" {
			cli.Line(cmd.OutOrStdout(), "%s", one)
		}
		if one.Unknown != "" {
			unknown++
		}
		if len(one.Differences) > 0 {
			differ++
		}
	}
	if output == "json" {
		if err := rest.WriteJSON(cmd.OutOrStdout(), found); err != nil {
			return &cli.Failure{Code: cli.ExitError, Err: err}
		}
	}
	switch {
	case differ > 0:
		return &cli.Failure{Code: cli.ExitFound, Err: fmt.Errorf("%d of %s differ from their model", differ,
			words.Count(len(machines), "machine"))}
	case unknown > 0:
		return &cli.Failure{Code: cli.ExitNodesFailed, Err: fmt.Errorf("%d of %s could not be compared", unknown,
			words.Count(len(machines), "machine"))}
	case output != "json":
		cli.Line(cmd.OutOrStdout(), "%s as expected", words.Count(len(machines), "machine"))
	}
	return nil
}
