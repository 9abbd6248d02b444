package host

import (
	"context"
	"errors"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

func TestMayFail(t *testing.T) {
	t.Parallel()
	warn, broken := types.StringValue(onFailureWarn), errors.New("the agent does not answer")
	for name, tt := range map[string]struct {
		onFailure types.String
		complete  bool
		err       error
		want      bool
	}{
		"no failure":                  {warn, true, nil, false},
		"failed":                      {warn, true, broken, true},
		"before Ironic has it":        {warn, false, broken, false},
		"default":                     {types.StringNull(), true, broken, false},
		"error":                       {types.StringValue(onFailureError), true, broken, false},
		"interrupted":                 {warn, true, context.Canceled, false},
		"taken over by another run":   {warn, true, &provision.SupersededError{By: &provision.Creation{}}, false},
		"failed, and another failure": {warn, true, errors.Join(broken, broken), true},
	} {
		if got := mayFail(tt.onFailure, tt.complete, tt.err); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func TestLeavesService(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		target               string
		retired, maintenance types.Bool
		want                 bool
	}{
		"available":                  {target: "available", want: true},
		"manageable":                 {target: "manageable"},
		"enroll":                     {target: "enroll"},
		"retired":                    {target: "available", retired: types.BoolValue(true)},
		"retired, not known":         {target: "available", retired: types.BoolUnknown()},
		"maintenance configured":     {target: "available", maintenance: types.BoolValue(false)},
		"maintenance is not known":   {target: "available", maintenance: types.BoolUnknown()},
		"in maintenance, configured": {target: "available", maintenance: types.BoolValue(true)},
	} {
		plan, config := &model{TargetState: types.StringValue(tt.target), Retired: tt.retired}, &model{Maintenance: tt.maintenance}
		if got := leavesService(plan, config); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
