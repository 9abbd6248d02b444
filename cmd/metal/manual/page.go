package manual

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
)

// page writes the manual page of a command, in the language mdoc.
type page struct {
	strings.Builder
	cmd    *cobra.Command
	blocks []block // of the description
}

// pageOf returns the source of the page of a command.
func pageOf(cmd *cobra.Command, version string, date time.Time) string {
	p := page{cmd: cmd, blocks: blocksOf(cmd.Long)}
	if cmd.Long == "" {
		p.blocks = []block{{text: cmd.Short + "."}}
	}
	p.line("Dd", date.UTC().Format("January 2, 2006"))
	p.line("Dt", strings.ToUpper(nameOf(cmd)), "1")
	p.line("Os", "metal", version)
	p.line("Sh", "NAME")
	p.line("Nm", nameOf(cmd))
	p.line("Nd", printed.Replace(lowerFirst(cmd.Short)))
	p.synopsis()
	p.description()
	p.options()
	p.environment()
	p.section("FILES", itemsIn(cmd.Annotations[cli.Files]), "Pa")
	p.section("EXIT STATUS", itemsIn(cli.ExitCodes), "Li")
	p.examples()
	p.seeAlso()
	return p.String()
}

// nameOf is the name of the page of a command, such as metal-oneview-sync.
func nameOf(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// lowerFirst returns a text with a small first letter, unless its first word is an abbreviation.
func lowerFirst(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if second, _ := utf8.DecodeRuneInString(text[size:]); unicode.IsUpper(second) {
		return text
	}
	return string(unicode.ToLower(first)) + text[size:]
}

func upperFirst(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// line writes a macro with its arguments.
func (p *page) line(words ...string) { p.WriteString("." + strings.Join(words, " ") + "\n") }

// quoted returns a text as one argument of a macro, which is not a macro itself.
func quoted(text string) string {
	return `"\&` + strings.ReplaceAll(printed.Replace(text), `"`, `""`) + `"`
}

// synopsis writes how to call the command.
func (p *page) synopsis() {
	p.line("Sh", "SYNOPSIS")
	p.line("Nm", p.cmd.CommandPath())
	_, arguments, _ := strings.Cut(p.cmd.Use, " ")
	if p.cmd.HasAvailableSubCommands() {
		arguments = "COMMAND"
	}
	if arguments != "" {
		p.line("Ar", quoted(arguments))
	}
	p.line("Op", "Ar", "flags")
}

// description writes what help shows, without the examples, and the commands of a group.
func (p *page) description() {
	p.line("Sh", "DESCRIPTION")
	begun := false
	for _, b := range p.blocks {
		switch {
		case b.isExample(p.cmd.Root().Name()):
			continue
		case b.items != nil:
			p.list(b.items, "Sy")
		default:
			if begun {
				p.line("Pp")
			}
			fill(&p.Builder, b.text)
		}
		begun = true
	}
	if !p.cmd.HasAvailableSubCommands() {
		return
	}
	p.line("Pp")
	p.WriteString("The commands are:\n")
	p.line("Bl", "-tag", "-width", "Ds")
	for _, sub := range p.cmd.Commands() {
		if sub.IsAvailableCommand() {
			p.line("It", "Cm", quoted(sub.Use))
			fill(&p.Builder, sub.Short+".")
		}
	}
	p.line("El")
}

// section writes a section that is a list. Without items there is none.
func (p *page) section(title string, items []item, macro string) {
	if len(items) == 0 {
		return
	}
	p.line("Sh", title)
	p.list(items, macro)
}

// list writes items as terms with their texts, or as lines if one of them has no text.
func (p *page) list(items []item, macro string) {
	if slices.ContainsFunc(items, func(i item) bool { return i.text == "" }) {
		p.line("Bd", "-literal", "-offset", "indent")
		for _, i := range items {
			p.WriteString(`\&` + printed.Replace(strings.TrimSpace(i.term+"  "+i.text)) + "\n")
		}
		p.line("Ed")
		return
	}
	p.line("Bl", "-tag", "-width", "Ds")
	for _, i := range items {
		p.line("It", macro, quoted(i.term))
		fill(&p.Builder, i.text)
	}
	p.line("El")
}

// options writes the flags that the command declares, under the titles of its help, and says where those are that it inherits.
func (p *page) options() {
	p.line("Sh", "OPTIONS")
	title := ""
	for _, f := range ownFlags(p.cmd) {
		switch now := cli.SectionOf(f); {
		case title == "":
			p.line("Bl", "-tag", "-width", "Ds")
		case title != now:
			p.line("El")
			p.line("Ss", printed.Replace(now))
			p.line("Bl", "-tag", "-width", "Ds")
		}
		title = cli.SectionOf(f)
		p.option(f)
	}
	p.line("El")
	p.inherited("The flags of", "are accepted, too.")
}

// option writes a flag.
func (p *page) option(f *pflag.Flag) {
	value, usage := pflag.UnquoteUsage(f)
	words := []string{"It", "Fl", `\-` + printed.Replace(f.Name)}
	if f.Shorthand != "" {
		words = []string{"It", "Fl", f.Shorthand, ",", `\-` + printed.Replace(f.Name)}
	}
	if value != "" {
		words = append(words, "Ar", quoted(value))
	}
	p.line(words...)
	if standard := f.DefValue; standard != "" && standard != "false" && standard != "0" && standard != "[]" {
		usage += " (default " + standard + ")"
	}
	fill(&p.Builder, upperFirst(usage)+".")
}

// ownFlags returns the flags that the command declares, those of a title together, in the order of their declaration: first those of the command
// alone.
func ownFlags(cmd *cobra.Command) []*pflag.Flag {
	var alone, shared []*pflag.Flag
	inherited, persistent := cmd.InheritedFlags(), cmd.PersistentFlags()
	persistent.SortFlags = false
	persistent.VisitAll(func(f *pflag.Flag) { shared = append(shared, f) })
	cmd.Flags().SortFlags = false
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if persistent.Lookup(f.Name) == nil && inherited.Lookup(f.Name) == nil {
			alone = append(alone, f)
		}
	})
	own := slices.DeleteFunc(append(alone, shared...), func(f *pflag.Flag) bool { return f.Hidden })
	titles := []string{cli.NoSection}
	for _, f := range own {
		if title := cli.SectionOf(f); !slices.Contains(titles, title) {
			titles = append(titles, title)
		}
	}
	slices.SortStableFunc(own, func(a, b *pflag.Flag) int {
		return slices.Index(titles, cli.SectionOf(a)) - slices.Index(titles, cli.SectionOf(b))
	})
	return own
}

// inherited writes a sentence about the pages of the commands above, if there are any.
func (p *page) inherited(before, after string) {
	if !p.cmd.HasParent() {
		return
	}
	p.line("Pp")
	p.WriteString(before + "\n")
	for above := p.cmd.Parent(); above != nil; above = above.Parent() {
		p.line("Xr", nameOf(above), "1")
		if above.HasParent() {
			p.WriteString("and\n")
		}
	}
	p.WriteString(after + "\n")
}

// environment writes the variables that the command reads: those of its flags, and others.
func (p *page) environment() {
	var items []item
	for _, f := range ownFlags(p.cmd) {
		for _, variable := range f.Annotations[cli.Environment] {
			items = append(items, item{variable, fmt.Sprintf("The value of --%s, if it is not set.", f.Name)})
		}
	}
	p.section("ENVIRONMENT", append(items, itemsIn(p.cmd.Annotations[cli.Environment])...), "Ev")
}

// examples writes the calls at the end of the description.
func (p *page) examples() {
	var examples []item
	for _, b := range p.blocks {
		if b.isExample(p.cmd.Root().Name()) {
			examples = append(examples, b.items...)
		}
	}
	for n, i := range examples {
		if n == 0 {
			p.line("Sh", "EXAMPLES")
		} else {
			p.line("Pp")
		}
		if i.text != "" {
			fill(&p.Builder, upperFirst(i.text)+":")
		}
		p.line("Dl", quoted(i.term))
	}
}

// seeAlso names the pages of the commands above and below.
func (p *page) seeAlso() {
	var near []string
	for above := p.cmd.Parent(); above != nil; above = above.Parent() {
		near = append(near, nameOf(above))
	}
	for _, below := range described(p.cmd)[1:] {
		near = append(near, nameOf(below))
	}
	slices.Sort(near)
	p.line("Sh", "SEE ALSO")
	for _, name := range near {
		p.line("Xr", name, "1", ",")
	}
	p.line("Lk", "https://registry.terraform.io/providers/terraform-provider-metal/metal/latest/docs")
}
