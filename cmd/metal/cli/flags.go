package cli

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

// Annotations that the manual pages show.
const (
	Environment = "environment" // of a flag: the variables that replace it; of a command: a line for each other variable that it reads
	Files       = "files"       // of a command: a line for each file that it reads
)

// newFlags returns an empty set of flags. The help lists them in the order of their declaration.
func newFlags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.SortFlags = false
	return flags
}

// noSection is the title of flags that have no section.
const noSection = "Flags"

// section is the annotation of a flag with the title under which the help of its command shows it.
const section = "section"

// Section gives the flags that declare adds a title in the help. Flags without a section come first.
func Section(flags *pflag.FlagSet, title string, declare func()) {
	before := map[string]bool{}
	flags.VisitAll(func(f *pflag.Flag) { before[f.Name] = true })
	declare()
	flags.VisitAll(func(f *pflag.Flag) {
		if !before[f.Name] {
			annotate(f, section, title)
		}
	})
}

func annotate(f *pflag.Flag, key string, values ...string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[key] = values
}

// sectionOf returns the title of a flag.
func sectionOf(f *pflag.Flag) string {
	if titles := f.Annotations[section]; len(titles) > 0 {
		return titles[0]
	}
	return noSection
}

// FromEnvironment declares the environment variables that replace a missing flag. The first one that is set applies.
func FromEnvironment(flags *pflag.FlagSet, name string, variables ...string) {
	f := flags.Lookup(name)
	f.Usage += " (env " + strings.Join(variables, ", ") + ")"
	annotate(f, Environment, variables...)
}

// ReadEnvironment sets the missing flags to the values of their environment variables.
func ReadEnvironment(flags *pflag.FlagSet, getenv func(string) string) error {
	var wrong []error
	flags.VisitAll(func(f *pflag.Flag) {
		for _, variable := range f.Annotations[Environment] {
			value := getenv(variable)
			if value == "" || f.Changed {
				continue
			}
			if err := flags.Set(f.Name, value); err != nil {
				wrong = append(wrong, fmt.Errorf("%s is %q, which is not a valid value of --%s: %w", variable, value, f.Name, reason(err)))
			}
			break
		}
	})
	return errors.Join(wrong...)
}

// reason returns why pflag has refused a value, without the flag and the value.
func reason(err error) error {
	if refused, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		err = errors.Unwrap(refused)
	}
	if number, ok := errors.AsType[*strconv.NumError](err); ok {
		err = number.Err
	}
	return err
}

// settingName returns the name of a setting of the OneView client in messages: the flag and the environment variable.
func settingName(setting string) string {
	return "--oneview-" + strings.ReplaceAll(setting, "_", "-") + " (ONEVIEW_" + strings.ToUpper(setting) + ")"
}

// duration is the value of a flag that is a duration.
type duration time.Duration

// DurationVar declares a flag that is a duration.
func DurationVar(flags *pflag.FlagSet, value *time.Duration, name string, standard time.Duration, usage string) {
	*value = standard
	flags.Var((*duration)(value), name, usage)
}

// Set reads the flag.
func (d *duration) Set(text string) error {
	value, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("it must be a number with its unit, such as 5m or 300s")
	}
	*d = duration(value)
	return nil
}

// String returns the value without units that are zero, such as 5m. For zero it returns "", so that the help shows no default.
func (d *duration) String() string {
	if *d == 0 {
		return ""
	}
	return words.Short(time.Duration(*d))
}

// Type names the value in the help.
func (*duration) Type() string { return "duration" }

// level is the flag --log-level.
type level slog.Level

// Set reads the flag.
func (l *level) Set(text string) error {
	if err := (*slog.Level)(l).UnmarshalText([]byte(text)); err != nil {
		return errors.New("it must be debug, info, warn or error")
	}
	return nil
}

// String is empty: the default depends on the command.
func (*level) String() string { return "" }

// Type names the value in the help.
func (*level) Type() string { return "level" }

// Positive returns an error unless the value of a flag is more than zero.
func Positive[T cmp.Ordered](name string, value T) error {
	var zero T
	if value <= zero {
		return fmt.Errorf("--%s must be more than 0", name)
	}
	return nil
}

// NotNegative returns an error if the value of a flag is less than zero.
func NotNegative[T cmp.Ordered](name string, value T) error {
	var zero T
	if value < zero {
		return fmt.Errorf("--%s must not be less than 0", name)
	}
	return nil
}
