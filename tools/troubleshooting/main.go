// Command troubleshooting writes the guides about messages: it joins the titles in testdata/diagnostics.txt of the packages with what the
// pages in tools/troubleshooting say of each. It takes the root of the repository.
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "troubleshooting:", err)
		os.Exit(1)
	}
}

// index is the page that lists all titles, in place of the line listHere.
const (
	index    = "troubleshooting.md"
	listHere = "LIST OF TITLES"
)

// run writes a guide for each page in tools/troubleshooting.
func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: troubleshooting ROOT")
	}
	root := args[0]
	known, err := titles(root)
	if err != nil {
		return err
	}
	sources, err := filepath.Glob(filepath.Join(root, "tools", "troubleshooting", "*.md"))
	if err != nil {
		return err
	}
	list := map[string][]string{} // the places of each title
	guides := map[string]string{}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		name := filepath.Base(source)
		guides[name], err = page(name, string(text), known, list)
		if err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
	}
	if guides["failure-reasons.md"], err = reasons(root); err != nil {
		return err
	}
	guides[index] = strings.Replace(guides[index], listHere+"\n", listed(list), 1)
	for name, text := range guides {
		if err := os.WriteFile(filepath.Join(root, "templates", "guides", name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// reasons returns the guide to the reasons of failures, from the table of the product.
func reasons(root string) (string, error) {
	table, err := os.ReadFile(filepath.Join(root, "internal", "machine", "reason", "reasons.tsv"))
	if err != nil {
		return "", err
	}
	var page strings.Builder
	page.WriteString(reasonsHead)
	for _, row := range strings.Split(strings.TrimSpace(string(table)), "\n")[1:] {
		f := append(strings.Split(row, "\t"), "") // reason, blame, meaning, next step, causes, where to look, pattern, mark
		switch {
		case f[7] == "passes":
			f[1] += "; passes by itself"
		case strings.HasPrefix(f[7], "passes "):
			f[1] += "; may pass by itself"
		}
		fmt.Fprintf(&page, "\n## %s\n\n**%s** %s\n\n* Blame: %s\n* Causes: %s\n* Look: %s\n", f[0], f[2], f[3], f[1], f[4], f[5])
	}
	return page.String(), nil
}

const reasonsHead = `---
page_title: "Reasons of failures"
description: |-
  What Ironic's words about a failed operation mean, who is to blame, and what to do.
---

# Reasons of failures

Errors of the provider, ` + "`metal doctor`, `metal show` and `metal watch`, and `failure` of `data.metal_host`" + ` name one of these reasons. A text
that none of them has is shown as Ironic wrote it. Blame says whose fault it is: ` + "`machine`, `request` (what you asked for), `site`, or\n`unclear`" + ` if one text has several causes. The most frequent cause stands first.

In a configuration:

` + "```terraform" + `
check "db" {
  data "metal_host" "db" { name = "db-01" }
  assert {
    condition     = data.metal_host.db.failure == null
    error_message = try(data.metal_host.db.failure.words, "no failure")
  }
}
` + "```" + `

With ` + "`on_failure = \"quarantine\"`" + `, only a machine that is to blame is retired. With another blame, it stays reserved, and a warning says
so. ` + "`unclear`" + ` speaks against the machine only if the same run has deployed the same image on another one. A text that none of these
reasons has counts against the machine.

When two machines have failed for one reason with the blame ` + "`request`" + `, the run starts no other deployment of the same image; with the
blame ` + "`site`" + `, none with the same conductor, image server, ramdisk or networks. Nothing is sent to those machines, and nothing is tainted.
` + "`max_failures = 0`" + ` does not switch that off. ` + "`metal manage`, `provide` and `inspect`" + ` stop in the same way.

What passes by itself is tried again: up to three times, after 15 s, 30 s and 60 s. The log names each try.
`

var (
	message  = regexp.MustCompile(`(?m)^(error|warning): (.*)$`)
	variable = regexp.MustCompile(`\{[^{}]*\}`)
)

// titles returns the kinds, "Error" and "Warning", of each title, with … for its variable parts.
func titles(root string) (map[string][]string, error) {
	known := map[string][]string{}
	for _, pattern := range []string{
		"internal/*/testdata/diagnostics.txt", "internal/*/*/testdata/diagnostics.txt",
		"internal/*/*/*/testdata/diagnostics.txt",
	} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			for _, m := range message.FindAllStringSubmatch(string(text), -1) {
				kind, title := strings.ToUpper(m[1][:1])+m[1][1:], variable.ReplaceAllString(m[2], "…")
				if !slices.Contains(known[title], kind) {
					known[title] = append(known[title], kind)
				}
			}
		}
	}
	for _, kinds := range known {
		slices.Sort(kinds)
	}
	return known, nil
}

// entry is what a page says of titles.
type entry struct {
	titles      []string
	cause, next string
}

const tableHead = "| Message | Cause | Next step |\n|---|---|---|\n"

// page makes a guide of a page: entries that follow each other become a table. It adds the places of the titles to the list.
func page(name, text string, known map[string][]string, list map[string][]string) (string, error) {
	var out []string
	heading, inTable := "", false
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		e, ok := parse(block)
		if !ok {
			if title, found := strings.CutPrefix(block, "## "); found {
				heading = title
			}
			out, inTable = append(out, block), false
			continue
		}
		row, err := e.row(known)
		if err != nil {
			return "", err
		}
		for _, title := range e.titles {
			list[title] = append(list[title], name+"#"+anchor(heading))
		}
		if inTable {
			out[len(out)-1] += row
		} else {
			out, inTable = append(out, tableHead+row), true
		}
	}
	for i, block := range out {
		out[i] = strings.TrimSuffix(block, "\n")
	}
	return strings.Join(out, "\n\n") + "\n", nil
}

// parse reads an entry: titles, each on its line, then the lines cause and next.
func parse(block string) (e entry, ok bool) {
	lines := strings.Split(block, "\n")
	n := len(lines) - 2
	if n < 1 || !strings.HasPrefix(lines[n], "cause: ") || !strings.HasPrefix(lines[n+1], "next: ") {
		return entry{}, false
	}
	return entry{lines[:n], strings.TrimPrefix(lines[n], "cause: "), strings.TrimPrefix(lines[n+1], "next: ")}, true
}

// row returns the entry as a row of a table. Each title begins as Terraform prints it.
func (e entry) row(known map[string][]string) (string, error) {
	var cells []string
	for _, title := range e.titles {
		kinds := known[title]
		if len(kinds) == 0 {
			return "", fmt.Errorf("the provider has no message with the title %q", title)
		}
		for _, kind := range kinds {
			cells = append(cells, "`"+kind+": "+title+"`")
		}
	}
	return fmt.Sprintf("| %s | %s | %s |\n", strings.Join(cells, "<br>"), e.cause, e.next), nil
}

// anchor returns the anchor of a heading.
func anchor(heading string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(heading), ",", ""), " ", "-")
}

// listed returns the list of titles, sorted, each with links to its places.
func listed(list map[string][]string) string {
	var text strings.Builder
	for _, title := range slices.Sorted(maps.Keys(list)) {
		fmt.Fprintf(&text, "* [`%s`](%s)", title, list[title][0])
		for _, place := range list[title][1:] {
			fmt.Fprintf(&text, ", [also here](%s)", place)
		}
		text.WriteString("\n")
	}
	return text.String()
}
