package networkdata

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	tableRow = regexp.MustCompile("^\\| (`[^|]*`) \\| ([^|]*) \\|")
	keyName  = regexp.MustCompile("`([^`]+)`")
)

// documented are the keys in the table that follows a text of the function's page; a required one has an asterisk.
func documented(t *testing.T, after string) (keys []string) {
	t.Helper()
	page, err := os.ReadFile("../../../templates/functions/network_data.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), after)
	if !found {
		t.Fatalf("the page does not say %q", after)
	}
	inTable := false
	for line := range strings.Lines(rest) {
		row := tableRow.FindStringSubmatch(line)
		if inTable = inTable || row != nil; inTable && row == nil {
			break
		}
		if row == nil {
			continue
		}
		for _, key := range keyName.FindAllStringSubmatch(row[1], -1) {
			if strings.HasPrefix(row[2], "**required**") {
				key[1] += "*"
			}
			keys = append(keys, key[1])
		}
	}
	return keys
}

// known are the keys of an object that Build reads, in the same form.
func known[T any](keys []key[T], not []key[T]) (all []string) {
	for _, k := range keys {
		if slices.ContainsFunc(not, func(other key[T]) bool { return other.name == k.name }) {
			continue
		}
		if k.required {
			k.name += "*"
		}
		all = append(all, k.name)
	}
	return all
}

// The tables of the function's page name the keys that there are.
func TestKeys_areDocumented(t *testing.T) {
	t.Parallel()
	for after, want := range map[string][]string{
		"## The argument":             known(networkKeys, nil),
		"An element of `interfaces`:": known(interfaceKeys, deviceKeys),
		"An element of `bonds`:":      known(bondKeys, deviceKeys),
		"An element of `vlans`:":      known(vlanKeys, deviceKeys),
		"Each element of the three":   known(deviceKeys, nil),
	} {
		if got := documented(t, after); !slices.Equal(got, want) {
			t.Errorf("after %q the page has the keys %v, want %v", after, got, want)
		}
	}
}
