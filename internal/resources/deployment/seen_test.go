package deployment

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

// liveISOTypes are the types of the attributes of live_iso.
func liveISOTypes(t *testing.T) map[string]attr.Type {
	t.Helper()
	object, ok := liveISOSchema().GetType().(types.ObjectType)
	if !ok {
		t.Fatal("live_iso is no object")
	}
	return object.AttrTypes
}

// An apply that was interrupted while an image settled goes on with what is left of the quiet period.
func TestFirstSeen_countsFromTheFirstApplyThatWantsTheImage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := private{}
		seen := func(version string) time.Time {
			url := "http://images/" + version + ".iso?token=" + time.Now().Format("150405")
			iso, diags := types.ObjectValueFrom(t.Context(), liveISOTypes(t), liveISOModel{framework.LiveISO{
				URL: types.StringValue(url), SharedContent: types.MapNull(types.StringType), HostContent: types.MapNull(types.StringType),
				Contains: types.MapNull(types.StringType),
			}})
			m := model{LiveISO: iso}
			at := m.firstSeen(t.Context(), &kept)
			if diags.HasError() {
				t.Fatal(diags)
			}
			return at
		}
		first := time.Now()
		for _, version := range []string{"v1", "v1", "v1"} {
			if at := seen(version); !at.Equal(first) {
				t.Errorf("%s: seen at %s, want %s", version, at, first)
			}
			<-time.After(time.Minute)
		}
		if at := seen("v2"); !at.Equal(time.Now()) {
			t.Errorf("another image: seen at %s, want now", at)
		}
	})
}
