package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
)

func TestMan_aPageForEachCommand(t *testing.T) {
	t.Parallel()
	pages := manPages(t, map[string]string{"SOURCE_DATE_EPOCH": "1764115200"})
	commands := 0
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.Name() == "help" {
			return
		}
		commands++
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
		page, found := pages[name+".1"]
		if !found {
			t.Errorf("%s has no page", cmd.CommandPath())
			return
		}
		for _, want := range []string{
			`"2025-11-26"`, "\n" + name + " - " + cmd.Short, `\fB` + cmd.CommandPath() + " ",
			".SH EXIT STATUS\n",
		} {
			if !strings.Contains(page, want) {
				t.Errorf("%s.1 lacks %q", name, want)
			}
		}
		has := func(f *pflag.Flag) {
			if !regexp.MustCompile(`(?m)^\.TP\n\\fB(-.\\fP, \\fB)?--` + f.Name + `\\fP.*\n.`).MatchString(page) {
				t.Errorf("%s.1 lacks --%s", name, f.Name)
			}
		}
		cmd.LocalFlags().VisitAll(has)
		cmd.InheritedFlags().VisitAll(has)
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check(newRoot(os.Getenv, nil))
	if completion := pages["metal-completion.1"]; !strings.Contains(completion, term("zsh")) || pages["metal-completion-zsh.1"] == "" {
		t.Errorf("metal-completion.1 names no shell: %s", completion)
	}
	if len(pages) != commands+5 {
		t.Errorf("%d pages for %d commands, metal completion and four shells", len(pages), commands)
	}
}

// term returns how a page begins an item of a list.
func term(text string) string { return ".TP\n\\fB" + text + `\fR` + "\n" }

func TestMan_whatAPageSays(t *testing.T) {
	t.Parallel()
	pages := manPages(t, nil)
	for page, wants := range map[string][]string{
		"metal.1": {
			"(env METAL_ENDPOINT", term("METAL_PASSWORD"), term("OS_*"), ".SH FILES", "clouds.yaml", "metal-oneview(1)",
			term("console NODE") + "Tell how to reach the console of a machine.\n", term("8") + "a confirmation is missing",
		},
		"metal-watch.1": {
			`\fB--goal\fP=""` + "\n", "What counts as done:\n" + term("with --goal") + "a machine at rest in this state;",
			term("metal watch --name-regex '^rack12-' --html rack12.html") + "one rack", `\fB--endpoint\fP`,
		},
		"metal-power-off.1":    {`\fB--soft\fP[=false]`},
		"metal-console.1":      {"metal console NODE [flags]", `\fB--timeout\fP=5m`},
		"metal-oneview.1":      {term("ONEVIEW_PASSWORD"), `\fB--oneview-endpoint\fP`, "metal-oneview-sync(1)"},
		"metal-oneview-sync.1": {"(env MAX_CONCURRENT_PROVISIONING_HOSTS)", "metal-oneview(1)", term("left over") + "An interrupted run"},
		"metal-timeline.1":     {"NODE|ALLOCATION"},
		"metal-doctor.1":       {"unknown; > says what"},
	} {
		for _, want := range wants {
			if !strings.Contains(pages[page], want) {
				t.Errorf("%s lacks %q:\n%s", page, want, pages[page])
			}
		}
	}
	for name, page := range pages {
		if strings.Contains(page, "\t") || strings.Contains(page, "Auto generated") {
			t.Errorf("%s has tabs, or praises its generator:\n%s", name, page)
		}
	}
}

// manPages returns the pages that metal man writes, by the names of their files.
func manPages(t *testing.T, env map[string]string) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "share", "man1")
	s := &site{env: env}
	if code, stdout, stderr := s.run(t, "man", dir); code != cli.ExitDone || stdout != "" || stderr != "" {
		t.Fatalf("exit code %d, said %q and %q", code, stdout, stderr)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		pages[file.Name()] = string(text)
	}
	return pages
}

func TestMan_failures(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, want string
		args       []string
		date       string
		code       int
	}{
		{name: "no directory", args: []string{"man"}, code: cli.ExitUsage, want: "the directory"},
		{
			name: "a date that is not a number", args: []string{"man", file}, date: "today", code: cli.ExitUsage,
			want: `SOURCE_DATE_EPOCH is "today"`,
		},
		{name: "a file in the place of the directory", args: []string{"man", file}, code: cli.ExitError, want: file},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &site{env: map[string]string{"SOURCE_DATE_EPOCH": tt.date}}
			if code, _, stderr := s.run(t, tt.args...); code != tt.code || !strings.Contains(stderr, tt.want) {
				t.Errorf("exit code %d, said %q", code, stderr)
			}
		})
	}
}
