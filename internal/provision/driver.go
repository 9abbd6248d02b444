package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// UnknownDriver says that no conductor of the site has enabled a driver. err is Ironic's answer; nil if it was not tried.
func UnknownDriver(driver string, enabled []string, err error) error {
	return &Error{
		Fact:   fmt.Sprintf("the site has no driver %s. Enabled are %s", driver, strings.Join(enabled, ", ")),
		Advice: "Set driver to one of them, or enable it in enabled_hardware_types of the conductors' configuration.", Err: err,
	}
}

// CheckDriver returns an error if no conductor has enabled a driver, and nil if Ironic does not tell, or has no
// conductor. It is called during plan.
func (s *Site) CheckDriver(ctx context.Context, driver string) error {
	names := namesOf(s.driversForPlan(ctx))
	if len(names) == 0 || slices.Contains(names, driver) {
		return nil
	}
	return UnknownDriver(driver, names, nil)
}

// explainDriver returns an error that names the enabled drivers if Ironic has refused a driver that no conductor has enabled; else err.
func (s *Site) explainDriver(ctx context.Context, driver string, err error) error {
	var status *ironic.StatusError
	if !errors.As(err, &status) || driver == "" || !strings.Contains(status.Message, "which supports driver") {
		return err
	}
	all, problem := s.Drivers(ctx)
	enabled := namesOf(all)
	if problem != nil || slices.Contains(enabled, driver) { // no conductor of the group has it
		return err
	}
	return UnknownDriver(driver, enabled, err)
}

// driverOf returns the driver that a patch sets; "" if none.
func driverOf(patch ironic.Patch) string {
	for _, edit := range patch {
		if driver, isText := edit.Value.(string); isText && edit.Path == "/driver" {
			return driver
		}
	}
	return ""
}
