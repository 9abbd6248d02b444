package replay

import (
	"errors"
	"regexp"
	"strings"
)

// Known is a difference that stays: a row of the table in reference/fakes.md#where-the-fake-differs.
type Known struct {
	Request, Place string // a star stands for anything
	Ironic         string // the version of Ironic; "": all
}

// Covers reports whether a difference from a version of Ironic is the known one.
func (k Known) Covers(d Difference, ironic string) bool {
	return (k.Ironic == "" || k.Ironic == ironic) && matches(k.Request, d.Request) && matches(k.Place, d.Place)
}

func matches(pattern, text string) bool {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$").MatchString(text)
}

// ReadKnown reads the rows of the table: request, place, version of Ironic or "all", and why.
func ReadKnown(page string) (all []Known, err error) {
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || !strings.HasPrefix(line, "| `") {
			continue
		}
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		if cells[2] == "all" {
			cells[2] = ""
		}
		all = append(all, Known{Request: cells[0], Place: cells[1], Ironic: cells[2]})
	}
	if len(all) == 0 {
		return nil, errors.New("the page has no table of differences")
	}
	return all, nil
}
