package operate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
)

const aboutInspect = `metal inspect inspects free machines again, and waits for that. A machine ends manageable; one that was available becomes
available again, and Ironic cleans it on the way unless automated cleaning is off: that erases its disks, so its name must be typed, or be
in --yes-erase. Deployed and reserved machines are refused.

An available machine leaves the pool when it has a slot of the limit. Until then, allocations may reserve it; the command then refuses it.
If the command is killed, the next metal inspect of the machine does the rest.

  metal inspect rack1-07
  metal inspect --resource-class baremetal --provision-state manageable --yes`

const aboutManage = `metal manage makes free machines manageable, as metal clean needs them, and waits for that. Ironic verifies the BMC of an
enrolled machine; an available one leaves the pool. A machine whose cleaning or inspection has failed becomes manageable, too.

  metal manage rack1-07`

const aboutProvide = `metal provide makes free machines available, and waits for that. Ironic cleans them on the way, which erases their disks unless
automated cleaning is off for the site or the node. So the name of a machine must be typed, or be in --yes-erase, unless cleaning is
off for the node.

  metal provide rack1-07
  metal provide rack1-07 --yes-erase rack1-07`

// orderFlags are the flags that say what Ironic runs.
type orderFlags struct {
	steps, runbook string
	noRamdisk      bool
}

func (f *orderFlags) declare(cmd *cobra.Command) {
	f.declareSteps(cmd)
	cmd.Flags().BoolVar(&f.noRamdisk, "disable-ramdisk", false, "do not boot Ironic's ramdisk for the steps; a runbook has a setting of "+
		"its own")
}

func (f *orderFlags) declareSteps(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.steps, "steps", "", "`steps` in their order: names such as bios.factory_reset with commas between them; as JSON, "+
		"with arguments; or @FILE with JSON, @- is standard input")
	flags.StringVar(&f.runbook, "runbook", "", "`name` or UUID of a runbook that has the steps")
}

func (f *orderFlags) order(cmd *cobra.Command) (order ironic.Order, err error) {
	order = ironic.Order{Runbook: f.runbook, NoRamdisk: f.noRamdisk}
	switch {
	case (f.steps == "") == (f.runbook == ""):
		return order, errors.New("set one of --steps and --runbook")
	case f.runbook != "" && f.noRamdisk:
		return order, errors.New("--disable-ramdisk does not go with --runbook, which has a setting of its own")
	case f.runbook != "":
		return order, nil
	}
	if order.Steps, err = readSteps(cmd, f.steps); err != nil {
		return order, fmt.Errorf("--steps: %w", err)
	}
	return order, nil
}

func readSteps(cmd *cobra.Command, text string) (steps []ironic.CleanStep, err error) {
	if name, ok := strings.CutPrefix(text, "@"); ok {
		content, err := cli.ReadFile(cmd, name)
		if err != nil {
			return nil, err
		}
		text = string(content)
	}
	if strings.HasPrefix(strings.TrimSpace(text), "[") {
		if err := document.Decode([]byte(text), &steps); err != nil {
			return nil, fmt.Errorf("it is no JSON list of steps: %w", err)
		}
	} else {
		for name := range strings.SplitSeq(text, ",") {
			kind, step, _ := strings.Cut(strings.TrimSpace(name), ".")
			steps = append(steps, ironic.CleanStep{Interface: kind, Step: step})
		}
	}
	for _, step := range steps {
		if step.Interface == "" || step.Step == "" {
			return nil, fmt.Errorf("a step needs an interface and a name, such as bios.factory_reset, but one is %q",
				strings.Trim(step.String(), "."))
		}
	}
	if len(steps) == 0 {
		return nil, errors.New("there is no step")
	}
	return steps, nil
}

const aboutClean = `metal clean runs steps of yours on free, manageable machines (a manual cleaning), and waits for their end. A machine restarts,
unless Ironic's ramdisk is disabled, and stays manageable. Steps that erase disks or replace volumes are refused without --erase.

  metal clean rack1-07 --steps bios.factory_reset,deploy.burnin_cpu
  metal clean rack1-07 --runbook erase-nvme --erase --yes-erase rack1-07`

func newClean(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "clean [NODE...]", Short: "Run steps on free, manageable machines", Long: aboutClean}
	var f orderFlags
	erase := false
	newOperation(s, cmd, operate.CleanTimeout, func(pool *sharing.Pool) (operate.Operation, error) {
		order, err := f.order(cmd)
		return operate.Clean(pool, order, erase), err
	})
	f.declare(cmd)
	cmd.Flags().BoolVar(&erase, "erase", false, "the steps may erase disks and replace volumes")
	return cmd
}

const aboutQualify = `metal qualify runs the steps by which free machines prove that they are fit for work, such as a burn-in, waits for that, and notes
the outcome. They are those by which a metal_host with qualification, or this command, has qualified the machine last, unless flags name
others. A machine that fails is retired, in quarantine.

A machine of the pool leaves it for the steps, and returns to it if it passes; Ironic cleans it on the way unless automated cleaning is off.
Others end manageable. A retired one stays retired: use metal unretire. If the command is killed, the next metal qualify does the rest.

  metal qualify rack1-07                            again, after a repair; asks before it erases anything
  metal qualify rack1-07 --steps deploy.burnin_cpu --parameters '{"agent_burnin_cpu_timeout": 3600}' --yes`

func newQualify(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "qualify [NODE...]", Short: "Let free machines prove that they are fit for work", Long: aboutQualify}
	var f orderFlags
	parameters := ""
	newOperation(s, cmd, operate.QualifyTimeout, func(pool *sharing.Pool) (operate.Operation, error) {
		recipe, err := f.recipe(cmd, parameters)
		return operate.Qualify(pool, recipe), err
	})
	f.declareSteps(cmd)
	cmd.Flags().StringVar(&parameters, "parameters", "", "keys of driver_info that begin with agent_burnin_, as a `JSON` object: they are "+
		"there while the steps run")
	return cmd
}

// recipe returns how machines qualify; empty if no flag says it.
func (f *orderFlags) recipe(cmd *cobra.Command, parameters string) (recipe notes.Recipe, err error) {
	if f.steps == "" && f.runbook == "" && parameters == "" {
		return recipe, nil
	}
	order, err := f.order(cmd)
	recipe.Runbook, recipe.Steps = order.Runbook, order.Steps
	if err != nil || parameters == "" {
		return recipe, err
	}
	wrong := document.Decode([]byte(parameters), &recipe.Parameters) != nil
	for key := range recipe.Parameters {
		wrong = wrong || !notes.IsBurnInKey(key)
	}
	if wrong {
		err = errors.New("--parameters must be a JSON object whose keys begin with agent_burnin_")
	}
	return recipe, err
}

const aboutService = `metal service runs steps on deployed machines, brings them back to active, and waits for that. The system of a machine restarts,
unless Ironic's ramdisk is disabled. Steps that erase disks are refused.

  metal service web-3 --steps firmware.update --yes-erase web-3`

func newService(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "service [NODE...]", Short: "Run steps on deployed machines, which keep their data", Long: aboutService}
	var f orderFlags
	newOperation(s, cmd, operate.ServiceTimeout, func(*sharing.Pool) (operate.Operation, error) {
		order, err := f.order(cmd)
		return operate.Service(order), err
	})
	f.declare(cmd)
	return cmd
}

const aboutAbort = `metal abort ends operations in which Ironic waits for the machine, or which a step holds, and waits for that. The operation has then failed;
after a failed service, the machine is active again. It also works while a run of Terraform waits for the operation, which then fails.`

const aboutUnhold = `metal unhold continues operations that a step holds, and waits for their end. A cleaning or a deployment may then erase disks, so that the name of
the machine must be typed for it.`
