package fakeironic_test

import (
	_ "embed"
	"strconv"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

//go:embed testdata/answers.tsv
var answers string

// What is refused changes nothing.
func TestServer_answersAsIronic(t *testing.T) {
	t.Parallel()
	about, site, rows := "", [][]string(nil), map[string][][]string{}
	for line := range strings.Lines(answers) {
		row := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case len(row) == 1:
			about = strings.TrimPrefix(row[0], "# ")
		case row[0] == "site":
			site = append(site, row)
		default:
			rows[about] = append(rows[about], row)
		}
	}
	for about, rows := range rows {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			for _, row := range rows {
				for _, version := range bothIronics {
					if row[0] == version || row[0] == "both" {
						answersAs(t, version, site, row)
					}
				}
			}
		})
	}
}

// answersAs sends the request of a row to a new site.
func answersAs(t *testing.T, ironic string, site [][]string, row []string) {
	t.Helper()
	fake := &fakeironic.Server{MaxMicroversion: ironic, Discovery: true}
	a := newAPI(t, fake)
	for _, made := range site {
		a.must(201, made[2], made[3], made[4])
	}
	if row[1] != "" {
		a = a.at(row[1])
	}
	before := len(fake.Nodes())
	got := a.do(row[2], row[3], row[4])
	compact := strings.NewReplacer(": ", ":", ", ", ",").Replace
	if strconv.Itoa(got.status) != row[5] || !strings.Contains(compact(got.text+got.fault()), compact(row[6])) {
		t.Errorf("%s: %d %s", strings.Join(row, " "), got.status, got.text)
	}
	if got.status >= 400 && len(fake.Nodes()) != before {
		t.Errorf("%s: it changes the nodes", strings.Join(row, " "))
	}
}
