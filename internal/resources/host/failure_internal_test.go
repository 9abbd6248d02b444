package host

import (
	"context"
	"errors"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/marks"
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
		"taken over by another run":   {warn, true, &failure.Error{Kind: marks.KindSuperseded}, false},
		"failed, and another failure": {warn, true, errors.Join(broken, broken), true},
	} {
		if got := mayFail(tt.onFailure, tt.complete, tt.err); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
