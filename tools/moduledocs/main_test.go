package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// directory returns a directory with one module.
func directory(t *testing.T, readme string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"README.md": readme,
		"main.tf": `
terraform {
  required_version = ">= 1.11"
}

variable "size" {
  description = "How many."
  type        = number
  default     = 3
}

variable "machines" {
  description = "The machines."
  type = map(object({
    name = optional(string)
  }))
}

output "hosts" {
  description = "The hosts."
  value       = var.machines
}
`,
	} {
		if err := os.MkdirAll(filepath.Join(dir, "fleet"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "fleet", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRun_describesInputsAndOutputs(t *testing.T) {
	t.Parallel()
	dir := directory(t, "# Fleet\n"+begin+"old\n"+end+"The end.\n")
	if err := run([]string{dir}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "fleet", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	required, optional := strings.Index(string(text), "### `machines` (required)"), strings.Index(string(text), "### `size`\n")
	if required < 0 || optional < required {
		t.Errorf("the required inputs are not first:\n%s", text)
	}
	for _, want := range []string{
		"| Terraform or OpenTofu | >= 1.11 |", "  name = optional(string)\n}))", "Type: `number`. Default: `3`",
		"- `hosts`: The hosts.", "The end.",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "old") {
		t.Error("the old text is left")
	}
}

func TestRun_refusesAReadmeWithoutMarks(t *testing.T) {
	t.Parallel()
	if err := run([]string{directory(t, "# Fleet\n")}); err == nil || !strings.Contains(err.Error(), "are missing") {
		t.Errorf("error is %v, want one on missing marks", err)
	}
}
