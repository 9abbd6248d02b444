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
		for _, want := range []string{".Dd November 26, 2025\n", ".Nm " + name + "\n", ".Nm " + cmd.CommandPath() + "\n", ".Sh EXIT STATUS\n"} {
			if !strings.Contains(page, want) {
				t.Errorf("%s.1 lacks %q", name, want)
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			escaped := strings.ReplaceAll("--"+f.Name, "-", `\-`)[2:]
			if cmd.InheritedFlags().Lookup(f.Name) == nil && !regexp.MustCompile(`(?m)^\.It Fl .*`+regexp.QuoteMeta(escaped)+`( |$)`).MatchString(page) {
				t.Errorf("%s.1 lacks --%s", name, f.Name)
			}
		})
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check(newRoot(os.Getenv, nil))
	if completion := pages["metal-completion.1"]; !strings.Contains(completion, `.It Cm "\&zsh`) {
		t.Errorf("metal-completion.1 names no shell: %s", completion)
	}
	if len(pages) != commands+1 {
		t.Errorf("%d pages for %d commands and metal completion", len(pages), commands)
	}
}

func TestMan_whatAPageSays(t *testing.T) {
	t.Parallel()
	pages := manPages(t, nil)
	for page, wants := range map[string][]string{
		"metal.1":              {`.It Ev "\&METAL_ENDPOINT"`, `.It Ev "\&METAL_PASSWORD"`, ".Sh FILES", "clouds.yaml", ".Xr metal-oneview-sync 1", `.It Cm "\&console NODE"`},
		"metal-watch.1":        {`.It Fl \-goal Ar "\&state"`, `.Dl "\&metal watch \-\-resource\-class baremetal`, "The flags of\n.Xr metal 1\nare accepted"},
		"metal-power-off.1":    {`.Sh OPTIONS` + "\n.Bl -tag -width Ds\n.It Fl \\-soft", ".Ss OneView flags; "},
		"metal-console.1":      {`.Ar "\&NODE"`, "(default 5m)"},
		"metal-oneview.1":      {`.It Ev "\&ONEVIEW_PASSWORD"`, `.It Fl \-oneview\-endpoint Ar "\&URL"`},
		"metal-oneview-sync.1": {`.It Ev "\&MAX_CONCURRENT_PROVISIONING_HOSTS"`, ".Xr metal-oneview 1\nand\n.Xr metal 1"},
	} {
		for _, want := range wants {
			if !strings.Contains(pages[page], want) {
				t.Errorf("%s lacks %q:\n%s", page, want, pages[page])
			}
		}
	}
	if index := strings.Index; index(pages["metal.1"], `\-endpoint Ar`) > index(pages["metal.1"], `\-cacert\-file`) {
		t.Error("metal.1 does not list the flags in the order of their declaration")
	}
	if strings.Contains(pages["metal-watch.1"], "oneview-endpoint") || strings.Contains(pages["metal-watch.1"], `.It Ev "\&METAL_ENDPOINT"`) {
		t.Error("metal-watch.1 repeats what other pages say")
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
		{name: "a date that is not a number", args: []string{"man", file}, date: "today", code: cli.ExitUsage, want: `SOURCE_DATE_EPOCH is "today"`},
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
