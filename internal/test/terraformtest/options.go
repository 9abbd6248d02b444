package terraformtest

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/core"
)

// options are the flags of a command.
type options struct {
	destroy, refreshOnly, refresh      bool
	detailedExit, approved, preDestroy bool
	json                               bool
	parallelism                        int
	targets, replace                   []string
	variables                          map[string]string
	out                                string
	args                               []string
}

// parse reads the flags of a command.
func parse(args []string) (options, error) {
	o := options{refresh: true, parallelism: 10, variables: map[string]string{}}
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(args[i], "=")
		if !strings.HasPrefix(name, "-") {
			o.args = append(o.args, args[i])
			continue
		}
		name = strings.TrimPrefix(name, "-")
		if slices.Contains([]string{"out", "target", "replace", "var", "parallelism"}, name) && !has {
			if i++; i == len(args) {
				return o, core.Unsupported("flag %s without a value", name)
			}
			value = args[i]
		}
		isTrue := !has || value == "true"
		var err error
		switch name {
		case "destroy":
			o.destroy = isTrue
		case "refresh-only":
			o.refreshOnly = isTrue
		case "refresh":
			o.refresh = isTrue
		case "detailed-exitcode":
			o.detailedExit = isTrue
		case "auto-approve":
			o.approved = isTrue
		case "json":
			o.json = isTrue
		case "parallelism":
			o.parallelism, err = strconv.Atoi(value)
		case "target":
			o.targets = append(o.targets, value)
		case "replace":
			o.replace = append(o.replace, value)
		case "var":
			key, text, _ := strings.Cut(value, "=")
			o.variables[key] = text
		case "out":
			o.out = value
		case "input", "no-color", "compact-warnings":
			if name == "compact-warnings" {
				err = errors.New("not supported")
			}
		default:
			err = errors.New("unknown")
		}
		if err != nil {
			return o, core.Unsupported("flag %s: %v", args[i], err)
		}
	}
	return o, nil
}
