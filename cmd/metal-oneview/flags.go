package main

import (
	"errors"
	"flag"
	"log/slog"
	"strings"
	"time"
)

// called is what the program calls a setting of the OneView client: a flag, and the variable that stands in for it.
func called(setting string) string {
	return "-oneview-" + strings.ReplaceAll(setting, "_", "-") + " (ONEVIEW_" + strings.ToUpper(setting) + ")"
}

// duration is a flag with a time, which says what one looks like if it is none.
type duration struct{ value *time.Duration }

// durationFlag declares a duration.
func durationFlag(flags *flag.FlagSet, name string, value time.Duration, usage string) *time.Duration {
	flags.Var(duration{&value}, name, usage+" (default "+value.String()+")")
	return &value
}

// Set reads the flag.
func (d duration) Set(text string) (err error) {
	if *d.value, err = time.ParseDuration(text); err != nil {
		return errors.New("it must be a number with its unit, such as 5m or 300s")
	}
	return nil
}

// String is empty: the default is in the usage.
func (duration) String() string { return "" }

// level is the flag -log-level.
type level struct{ value *slog.Level }

// Set reads the flag.
func (l level) Set(text string) error {
	if err := l.value.UnmarshalText([]byte(text)); err != nil {
		return errors.New("it must be debug, info, warn or error")
	}
	return nil
}

// String is empty: the default is in the usage.
func (level) String() string { return "" }
