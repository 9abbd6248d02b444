package operate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
)

const aboutUndeploy = `metal undeploy ends what is deployed on machines and waits until Ironic has cleaned them, as destroying a metal_deployment
does. That erases their disks. It also ends an undeployment that was interrupted.

A machine keeps the allocation that has reserved it: Ironic deletes the allocation with the instance, and the command creates it
again with the same UUID. With --release it does not. Protected machines are refused.

If a configuration has the machine, its next plan deploys the machine again. To prevent that, remove the metal_deployment from
the configuration, or use terraform destroy.

  metal undeploy rack1-07                                    asks for the name
  metal undeploy rack1-07 --release --yes-erase rack1-07     also gives the reservation up`

func newUndeploy(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{
		Use: "undeploy [NODE...]", Short: "End what is deployed on machines, which erases their disks",
		Long: aboutUndeploy,
	}
	release := false
	newOperation(s, cmd, operate.UndeployTimeout, func(pool *sharing.Pool) (operate.Operation, error) {
		return operate.Undeploy(pool, release), nil
	})
	cmd.Flags().BoolVar(&release, "release", false, "give up the reservation of each machine, too")
	return cmd
}

const aboutRescue = `metal rescue boots Ironic's rescue system on deployed machines, and waits until it runs. Their power is cut; their disks keep
their data. A machine that runs the rescue system already boots it again, with the new password.

The user of the rescue system is rescue. Its password comes from a file, or is asked for on the terminal, and is never shown.

  metal rescue rack1-07                                              asks for a password, and for the name
  metal rescue rack1-07 --password-file /root/pw --yes-erase rack1-07
  ssh rescue@<address>                                               its address in the network of the rescue system
  metal unrescue rack1-07                                            starts what is deployed`

func newRescue(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "rescue [NODE...]", Short: "Boot the rescue system on deployed machines", Long: aboutRescue}
	file := ""
	newOperation(s, cmd, operate.RescueTimeout, func(*sharing.Pool) (operate.Operation, error) {
		if dryRun, _ := cmd.Flags().GetBool("dry-run"); dryRun {
			return operate.Rescue(""), nil
		}
		password, err := readPassword(cmd, file)
		s.Ironic.Secrets.Hide(password) // no log, message or trace shows it
		return operate.Rescue(password), err
	})
	cmd.Flags().StringVar(&file, "password-file", "", "`file` with the password of the user rescue in its first line; - is standard "+
		"input. Default: the terminal")
	return cmd
}

func readPassword(cmd *cobra.Command, file string) (password string, err error) {
	switch names, _ := cmd.Flags().GetString("file"); {
	case file == "":
		password, err = cli.NewAsker(cmd).Secret("Password of the user rescue:")
		if err == nil && password == "" {
			err = errors.New("rescue needs a password. Use --password-file")
		}
		return password, err
	case file == "-" && names == "-":
		return "", errors.New("--file and --password-file cannot both be standard input")
	}
	text, err := cli.ReadFile(cmd, file)
	if err != nil && file != "-" {
		return "", fmt.Errorf("--password-file: %w", err)
	}
	password, _, _ = strings.Cut(string(text), "\n")
	if password = strings.TrimSuffix(password, "\r"); err == nil && strings.TrimSpace(password) == "" {
		err = fmt.Errorf("--password-file %s: its first line is empty", file)
	}
	return password, err
}

const aboutUnrescue = `metal unrescue ends the rescue system of machines, and starts what is deployed on them. Their power is cut.

  metal unrescue rack1-07
  metal unrescue --provision-state rescue --resource-class gpu --dry-run`
