package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// right is a line of a table that the tests behind a real Keystone have made: what Ironic lets which roles do.
type right struct {
	deed, rules, requests string
	least                 [4]string // of the roles of system, owner, lessee and another project
}

// rights returns the table of rights with the default policy, and of those that an admin of any project has with the legacy policy. It
// notes where two versions of Ironic differ.
func rights(root string) (string, error) {
	tables := map[string][]right{}
	for _, name := range []string{"21.4", "39", "21.4-legacy", "39-legacy"} {
		var err error
		if tables[name], err = readRights(filepath.Join(root, "internal", "test", "keystonetest", "testdata", "rights-"+name+
			".txt")); err != nil {
			return "", err
		}
	}
	// cell is a column of a right on both versions.
	cell := func(deed, policy string, column int) string {
		of := func(version string) string {
			for _, r := range tables[version+policy] {
				if r.deed == deed {
					return r.least[column]
				}
			}
			return ""
		}
		if older, newer := of("21.4"), of("39"); older != "" && older != newer {
			return fmt.Sprintf("%s (21.4: %s)", newer, older)
		}
		return of("39")
	}
	var b strings.Builder
	b.WriteString("| Right to | System | Owner | Lessee | Legacy | Rules `baremetal:` | Requests |\n|---|---|---|---|---|---|---|\n")
	for _, right := range tables["39"] {
		cells := []string{cell(right.deed, "", 0), cell(right.deed, "", 1), cell(right.deed, "", 2), cell(right.deed, "-legacy", 3)}
		rules := cmp.Or(strings.ReplaceAll(right.rules, "baremetal:", ""), "-")
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", right.deed, strings.Join(cells, " | "), lines(rules, " "), lines(right.requests, ", "))
	}
	return b.String(), nil
}

// lines returns a list as code, one item a line of a cell.
func lines(list, separator string) string {
	return "`" + strings.ReplaceAll(list, separator, "`<br>`") + "`"
}

func readRights(file string) (all []right, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 7 {
			return nil, fmt.Errorf("%s: %q has %d cells, want 7", file, line, len(cells))
		}
		r := right{deed: cells[0], rules: cells[5], requests: cells[6]}
		for i := range r.least {
			_, r.least[i], _ = strings.Cut(cells[1+i], " ")
		}
		all = append(all, r)
	}
	return all, nil
}
