package observe

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/lint"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

const aboutLint = `metal lint finds keys that do not exist in the objects of a configuration, such as bmc = { user = "root" }.
Terraform drops them without a word: terraform validate accepts them, and the setting is missing.

It reads the files *.tf, *.tofu, *.tfquery.hcl, *.auto.tfvars and terraform.tfvars, also as JSON, of directories, and the modules
below them that have a local path. A file stands for its directory. It looks at the provider block, resources, data sources and
actions of this provider, and at the inputs of modules; it follows locals, variables, for_each, conditions and functions such as
merge as far as the files show their values. It needs no Terraform, and makes no request.

  metal lint
  metal lint site-a site-b
  metal lint --output sarif > lint.sarif   for a code scanner`

func newLint() *cobra.Command {
	cmd := &cobra.Command{Use: "lint [DIRECTORY...]", Short: "Find keys that Terraform drops from a configuration", Long: aboutLint}
	cmd.Flags().SortFlags = false
	output := cmd.Flags().String("output", "table", "`format`: table, json or sarif")
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := cli.CheckOutput(*output, "sarif"); err != nil {
			return err
		}
		if len(args) == 0 {
			args = []string{"."}
		}
		found, err := lint.Directories(args...)
		if err != nil {
			return &cli.Failure{Code: cli.ExitError, Err: err}
		}
		switch *output {
		case "json":
			err = rest.WriteJSON(cmd.OutOrStdout(), found)
		case "sarif":
			err = rest.WriteJSON(cmd.OutOrStdout(), lint.SARIF(found))
		default:
			for _, f := range found {
				cli.Line(cmd.OutOrStdout(), "%s:%d:%d: %s", f.File, f.Line, f.Column, f.Text)
			}
		}
		switch {
		case err != nil:
			return &cli.Failure{Code: cli.ExitError, Err: err}
		case len(found) > 0:
			return &cli.Failure{Code: cli.ExitFound, Err: fmt.Errorf("found %s that Terraform drops", words.Count(len(found), "key"))}
		}
		return nil
	}
	return cmd
}
