package oneviewprofile_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// A list has the profiles that Ironic uses: no other profile of the appliance, and no profile that OneView does not have any more.
func TestAccOneView_listFindsProfilesInUse(t *testing.T) {
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 3)
	o.Setenv(t.Setenv)
	node := addBlade(t, s, o, 1)
	uri := withProfile(s, o, node)
	t.Cleanup(func() { o.Fake.MarkOthers(uri) }) // nothing removes it
	o.Take(2)
	addBlade(t, s, o, 2)
	s.Patch(addBlade(t, s, o, 3), "add", "/driver_info/applied_server_profile_uri", "/rest/server-profiles/gone")
	query := acctest.Query{Type: "metal_oneview_profile", Filters: map[string]string{}}
	for _, query.Resource = range []bool{false, true} {
		all := acctest.Search(t, s, query)
		if len(all) != 1 || all[0].ID != uri || all[0].Name != "by hand" {
			t.Fatalf("found %v, want %s", all, uri)
		}
		if query.Resource {
			acctest.NewLister(t, s).WantAsImported(t, query.Type, all[0])
		}
	}
	query.Filters["name_regex"] = `"^no-such-"`
	if all := acctest.Search(t, s, query); len(all) > 0 {
		t.Errorf("found %v, want nothing", all)
	}
}

func TestAccOneView_listNeedsAnAppliance(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	problems := acctest.NewLister(t, s).List(t, acctest.Query{Type: "metal_oneview_profile"}, func(acctest.Found) bool { return true })
	if len(problems) != 1 {
		t.Fatalf("diagnostics %v, want one", problems)
	}
	acctest.Mention(t, problems[0].Summary, "OneView is not configured")
}
