package language

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// Text prints diagnostics as a CLI does: warnings first, and those of one summary together.
func (d *Diagnostics) Text(c *Config) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out strings.Builder
	for _, wantError := range []bool{false, true} {
		seen := map[string]int{}
		if !wantError {
			for _, one := range d.All {
				if !one.IsError && one.Subject != nil {
					seen[one.Summary]++
				}
			}
		}
		for _, one := range d.All {
			if one.IsError != wantError {
				continue
			}
			if n := seen[one.Summary]; !wantError && one.Subject != nil {
				if seen[one.Summary] = 0; n == 0 {
					continue
				}
				one.Detail += similar(n - 1)
			}
			out.WriteString(one.text(c))
		}
	}
	return out.String()
}

func similar(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "\n\n(and one more similar warning elsewhere)"
	}
	return fmt.Sprintf("\n\n(and %d more similar warnings elsewhere)", n)
}

func (d Diagnostic) text(c *Config) string {
	var lines []string
	if d.IsError {
		lines = append(lines, "Error: "+d.Summary, "")
	} else {
		lines = append(lines, "Warning: "+d.Summary, "")
	}
	if d.Address != "" {
		lines = append(lines, "  with "+d.Address+",")
	}
	if d.Subject != nil && c != nil {
		lines = append(lines, c.snippet(d.Subject)...)
	}
	if d.Address != "" || d.Subject != nil {
		lines = append(lines, "")
	}
	lines = append(lines, strings.Split(d.Detail, "\n")...)
	return "╷\n│ " + strings.Join(lines, "\n│ ") + "\n╵\n"
}

// snippet quotes a part of the configuration.
func (c *Config) snippet(of *hcl.Range) []string {
	file := c.files[of.Filename]
	if file == nil {
		return nil
	}
	in := ""
	if holder := c.holder(of); holder != "" {
		in = ", in " + holder
	}
	lines := []string{fmt.Sprintf("  on %s line %d%s:", of.Filename, of.Start.Line, in)}
	for i, line := range strings.Split(string(file.Bytes), "\n") {
		if i+1 >= of.Start.Line && i+1 <= of.End.Line {
			lines = append(lines, fmt.Sprintf("%4d: %s", i+1, line))
		}
	}
	return lines
}

// holder returns the header of the resource, data or provider block that contains a range, for messages; "" if none does.
func (c *Config) holder(of *hcl.Range) string {
	for address, r := range c.Resources {
		if at := r.At; at.Filename == of.Filename && blockRange(c, at).ContainsPos(of.Start) {
			kind := "resource"
			if r.Kind.IsData {
				kind = "data"
			}
			return fmt.Sprintf("%s %q %q", kind, r.Kind.Name, address[strings.LastIndex(address, ".")+1:])
		}
	}
	for name, p := range c.Providers {
		if blockRange(c, p.At).ContainsPos(of.Start) && p.At.Filename == of.Filename {
			return fmt.Sprintf("provider %q", name)
		}
	}
	return ""
}

// blockRange returns the whole of a block that begins at a place.
func blockRange(c *Config, at hcl.Range) hcl.Range {
	if block := c.files[at.Filename].OutermostBlockAtPos(at.Start); block != nil {
		if whole, is := block.Body.(interface{ Range() hcl.Range }); is {
			return hcl.RangeBetween(at, whole.Range())
		}
	}
	return at
}
