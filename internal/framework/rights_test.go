package framework

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

func TestRights_coverWhatWasSeen(t *testing.T) {
	t.Parallel()
	member := api.Rights{Project: "a", Roles: []string{"member", "reader"}}
	for _, tc := range []struct {
		now    api.Rights
		covers bool
	}{
		{member, true},
		{api.Rights{Project: "a", Roles: []string{"admin", "member", "reader"}}, true},
		{api.Rights{Roles: []string{"admin", "member", "reader"}}, true}, // of the system
		{api.Rights{Project: "a", Roles: []string{"reader"}}, false},
		{api.Rights{Project: "b", Roles: []string{"admin", "member", "reader"}}, false},
		{api.Rights{Roles: []string{"reader"}}, false},
	} {
		if tc.now.Covers(member) != tc.covers {
			t.Errorf("%+v covers %+v: want %t", tc.now, member, tc.covers)
		}
		seen := Private(nil).WithRights(&member)
		again := seen.WithRights(&tc.now)
		if changed := string(again) != string(seen); changed == tc.covers {
			t.Errorf("with %+v the record changes: %t", tc.now, changed)
		}
		for err, hidden := range map[error]bool{
			&api.StatusError{Status: http.StatusNotFound}:  !tc.covers,
			&api.StatusError{Status: http.StatusForbidden}: false,
			nil: false,
		} {
			var diags diag.Diagnostics
			refused := refuseHidden(t.Context(), seen, "node n1", func(context.Context) error {
				return err
			}, func() *api.Rights { return &tc.now }, &diags)
			if refused != hidden || diags.HasError() != hidden {
				t.Errorf("%+v, %v: refused %t, %v", tc.now, err, refused, diags)
			}
			if hidden && !strings.Contains(diags[0].Detail(), "terraform state rm") {
				t.Errorf("the error is %v", diags)
			}
		}
	}
	if kept := Private(nil).WithRights(nil); kept != nil {
		t.Errorf("without Keystone the private state is %s", kept)
	}
}
