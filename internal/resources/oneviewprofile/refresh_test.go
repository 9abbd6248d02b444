package oneviewprofile_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// A refresh right after an apply changes nothing of a profile and its host.
func TestAccOneViewRefresh_afterApplyFindsNoDrift(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+blade(s, o, acctest.Target("available"))+profile("metal_host.h.id"))
	defer acctest.Destroy(t, s, w)
	w.Must(acctest.Apply()...)
	acctest.NoDrift(t, w)
}
