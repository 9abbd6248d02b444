package main

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// published is where the registry finds files of the repository that are not pages, such as diagrams.
const published = "https://raw.githubusercontent.com/terraform-provider-metal/terraform-provider-metal/main/"

var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()

// site answers whether links have a target. It keeps the anchors of pages that it has read.
type site struct {
	root    string
	anchors map[string]map[string]bool
}

// check returns the findings in one page, each with the page and the line.
func check(s *site, page string, source []byte) []string {
	var found []string
	report := func(line int, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s:%d: %s", page, line, fmt.Sprintf(format, args...)))
	}
	if limit, words := limitOf(page), len(bytes.Fields(source)); limit > 0 && words > limit {
		report(1, "%d words, more than %d", words, limit)
	}
	body, skipped := withoutFrontMatter(source)
	lineOf := func(n ast.Node) int { return skipped + 1 + bytes.Count(body[:offset(n)], []byte("\n")) }
	for _, b := range blocks(body) {
		for _, f := range badPhrases(b.text) {
			report(lineOf(b.node), "%s", f)
		}
		for _, sentence := range longSentences(b.text) {
			report(lineOf(b.node), "a sentence of %d words: %s", len(strings.Fields(sentence)), sentence)
		}
		if strings.HasPrefix(b.text, "|") {
			report(lineOf(b.node), "a row without the head of its table: %s", b.text)
		}
	}
	for _, l := range links(body) {
		if reason := s.missing(page, l.destination); reason != "" {
			report(lineOf(l.node), "%s: %s", l.destination, reason)
		}
	}
	return found
}

// withoutFrontMatter cuts the YAML header of a page. It returns how many lines it has cut.
func withoutFrontMatter(source []byte) ([]byte, int) {
	if !bytes.HasPrefix(source, []byte("---\n")) {
		return source, 0
	}
	end := bytes.Index(source[4:], []byte("\n---\n"))
	if end < 0 {
		return source, 0
	}
	end += 4 + len("\n---\n")
	return source[end:], bytes.Count(source[:end], []byte("\n"))
}

// block is a paragraph, heading, list item or table cell, as the reader sees it. Each piece of code is the word "code".
type block struct {
	node ast.Node
	text string
}

func blocks(source []byte) []block {
	var all []block
	walk(source, func(n ast.Node) ast.WalkStatus {
		switch n.(type) {
		case *ast.Paragraph, *ast.TextBlock, *ast.Heading, *east.TableCell:
			all = append(all, block{n, strings.TrimSpace(plain(n, source))})
			return ast.WalkSkipChildren
		}
		return ast.WalkContinue
	})
	return all
}

// plain is the text of a node without markup.
func plain(n ast.Node, source []byte) string {
	var out strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			out.Write(c.Segment.Value(source))
			if c.SoftLineBreak() || c.HardLineBreak() {
				out.WriteByte(' ')
			}
		case *ast.CodeSpan:
			out.WriteString("code")
		case *ast.RawHTML:
			if regexp.MustCompile(`^<br`).Match(c.Segments.Value(source)) {
				out.WriteString(". ")
			}
		case *ast.Image:
			out.WriteString(plain(c, source) + ". ")
		case *ast.AutoLink:
			out.WriteString("link")
		default:
			out.WriteString(plain(c, source))
		}
	}
	return out.String()
}

type link struct {
	node        ast.Node
	destination string
}

func links(source []byte) []link {
	var all []link
	walk(source, func(n ast.Node) ast.WalkStatus {
		switch n := n.(type) {
		case *ast.Link:
			all = append(all, link{n, string(n.Destination)})
		case *ast.Image:
			all = append(all, link{n, string(n.Destination)})
		}
		return ast.WalkContinue
	})
	return all
}

func walk(source []byte, visit func(ast.Node) ast.WalkStatus) {
	_ = ast.Walk(markdown.Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		return visit(n), nil
	})
}

// offset is where a node, or the block around it, begins in the source.
func offset(n ast.Node) int {
	for ; n != nil; n = n.Parent() {
		if n.Type() == ast.TypeInline {
			continue
		}
		if lines := n.Lines(); lines != nil && lines.Len() > 0 {
			return lines.At(0).Start
		}
		if n.FirstChild() != nil {
			if t, ok := n.FirstChild().(*ast.Text); ok {
				return t.Segment.Start
			}
		}
	}
	return 0
}

// missing returns the target of a link if it does not exist, otherwise "". Links to other sites are not followed.
func (s *site) missing(page, destination string) string {
	if file, ours := strings.CutPrefix(destination, published); ours {
		return s.missingFile(file)
	}
	u, err := url.Parse(destination)
	if err != nil {
		return err.Error()
	}
	if u.Scheme != "" {
		return ""
	}
	target := page
	if u.Path != "" {
		target = path.Join(path.Dir(page), u.Path)
		if reason := s.missingFile(target); reason != "" {
			return reason
		}
	}
	if u.Fragment != "" && strings.HasSuffix(target, ".md") && !s.anchorsOf(target)[u.Fragment] {
		return "no such heading in " + target
	}
	return ""
}

func (s *site) missingFile(file string) string {
	if _, err := os.Stat(filepath.Join(s.root, file)); err != nil {
		return "no such file"
	}
	return ""
}

var (
	idAttribute = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}\-_ ]`)
)

// anchorsOf are the places in a page that a link can name: its headings, as GitHub and the registry write them, and its ids.
func (s *site) anchorsOf(page string) map[string]bool {
	if known := s.anchors[page]; known != nil {
		return known
	}
	anchors := map[string]bool{}
	s.anchors[page] = anchors
	source, err := os.ReadFile(filepath.Join(s.root, page))
	if err != nil {
		return anchors
	}
	body, _ := withoutFrontMatter(source)
	walk(body, func(n ast.Node) ast.WalkStatus {
		if h, ok := n.(*ast.Heading); ok {
			anchors[anchor(headingText(h, body))] = true
		}
		return ast.WalkContinue
	})
	for _, id := range idAttribute.FindAllSubmatch(body, -1) {
		anchors[string(id[1])] = true
	}
	return anchors
}

// headingText is the text of a heading, code included.
func headingText(n ast.Node, source []byte) string {
	var out strings.Builder
	_ = ast.Walk(n, func(c ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := c.(*ast.Text); ok && entering {
			out.Write(t.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return out.String()
}

// anchor is the name that GitHub gives to a heading.
func anchor(heading string) string {
	return strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), ""), " ", "-")
}
