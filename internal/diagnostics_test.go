package internal_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// update makes the test write the golden files: go test ./internal -run Diagnostics -update.
var update = flag.Bool("update", false, "write the golden files")

// TestDiagnostics_areReviewed compares the messages in the source of each package with testdata/diagnostics.txt in the package, where a
// reviewer reads all of them in one place. {x} stands for a value, and {x | y} for one of several texts. It also checks their style.
func TestDiagnostics_areReviewed(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		path, dir := relative(p.ImportPath), p.Dir
		if !strings.HasPrefix(path, "internal/") || strings.HasPrefix(path, "internal/fake/") || strings.HasPrefix(path, "internal/test/") {
			continue
		}
		found := messagesOf(t, dir)
		for _, m := range found {
			for _, fault := range m.faults() {
				t.Errorf("%s: %s: %s\n%s", path, m.title, fault, m.detail)
			}
		}
		compareGolden(t, filepath.Join(dir, "testdata", "diagnostics.txt"), found)
	}
}

// message is a diagnostic, or the text of an error, which becomes a part of one.
type message struct{ kind, title, detail string }

const cause = "cause"

// String returns the message as it is in the golden file.
func (m message) String() string {
	if m.detail == "" {
		return m.kind + ": " + m.title + "\n"
	}
	return m.kind + ": " + m.title + "\n    " + strings.ReplaceAll(wrap(m.detail, 116), "\n", "\n    ") + "\n"
}

// wrap breaks the paragraphs of a text into lines.
func wrap(text string, width int) string {
	var out []string
	for paragraph := range strings.SplitSeq(text, "\n") {
		line := ""
		for _, word := range strings.Fields(paragraph) {
			if line != "" && len(line)+len(word) >= width {
				out, line = append(out, line), ""
			}
			line = strings.TrimPrefix(line+" "+word, " ")
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// unwanted are words that do not say who does what.
var unwanted = regexp.MustCompile(
	`(?i)\b(somebody|someone|nobody|whoever|anybody|is no error|in work|looks at|counts for nothing|by itself|apart from that|failed to)\b`)

const longestSentence = 40

// faults returns what is wrong with the style of a message.
func (m message) faults() (faults []string) {
	if m.kind != cause {
		switch first := []rune(m.title)[0]; {
		case strings.HasSuffix(m.title, "."):
			faults = append(faults, "the title ends with a full stop")
		case strings.Trim(placeholder.ReplaceAllString(m.title, ""), " :") == "":
			faults = append(faults, "the title is made where this test does not read it")
		case unicode.IsLower(first):
			faults = append(faults, "the title begins with a small letter")
		}
		if last := m.detail; last != "" && !strings.HasSuffix(last, ".") && !strings.HasSuffix(last, "}") &&
			!strings.Contains(last, "\n  terraform ") && !strings.Contains(last, ": baremetal ") {
			faults = append(faults, "the detail does not end with a full stop")
		}
	}
	if word := unwanted.FindString(m.title + " " + m.detail); word != "" {
		faults = append(faults, fmt.Sprintf("it says %q", word))
	}
	for sentence := range strings.SplitSeq(placeholder.ReplaceAllString(m.title+". "+m.detail, "X"), ". ") {
		if n := len(strings.Fields(sentence)); n > longestSentence {
			faults = append(faults, fmt.Sprintf("a sentence has %d words: %s", n, sentence))
		}
	}
	return faults
}

var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

func compareGolden(t *testing.T, file string, found []message) {
	t.Helper()
	var text strings.Builder
	for _, m := range found {
		text.WriteString(m.String() + "\n")
	}
	if *update {
		if len(found) == 0 {
			return
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	golden, err := os.ReadFile(file)
	if err != nil && len(found) > 0 {
		t.Errorf("%v: run go test ./internal -run Diagnostics -update", err)
	} else if string(golden) != text.String() {
		t.Errorf("%s is out of date: run go test ./internal -run Diagnostics -update, and read the difference", file)
	}
}

// messagesOf returns the messages in the source of a package, sorted.
func messagesOf(t *testing.T, dir string) []message {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{set: token.NewFileSet(), constants: map[string]ast.Expr{}, labels: map[string]ast.Expr{}}
	var parsed []*ast.File
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(r.set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
		r.readConstants(f)
		r.readLabels(f)
	}
	all := map[message]bool{}
	for _, f := range parsed {
		for _, decl := range f.Decls {
			r.function, _ = decl.(*ast.FuncDecl)
			ast.Inspect(decl, func(n ast.Node) bool {
				for _, m := range r.messages(n) {
					all[m] = true
				}
				if where := r.untraced(n); where != "" {
					t.Errorf("%s: no test reads the title of this message: pass it to a method warn or refuse, or write Summary and "+
						"Detail in one literal", where)
				}
				return true
			})
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b message) int {
		return strings.Compare(a.kind+a.title+a.detail, b.kind+b.title+b.detail)
	})
}

// reader reads the messages of a package.
type reader struct {
	set       *token.FileSet
	constants map[string]ast.Expr
	labels    map[string]ast.Expr // what methods such as label return
	function  *ast.FuncDecl       // that is being read
}

// readLabels reads the methods without parameters that return one string, which names an object.
func (r *reader) readLabels(f *ast.File) {
	for _, decl := range f.Decls {
		method, ok := decl.(*ast.FuncDecl)
		if !ok || method.Recv == nil || method.Name.Name != "label" && method.Name.Name != "Subject" {
			continue
		}
		ast.Inspect(method.Body, func(n ast.Node) bool {
			if first, ok := n.(*ast.ReturnStmt); ok && r.labels[method.Name.Name] == nil {
				r.labels[method.Name.Name] = first.Results[0]
			}
			return true
		})
	}
}

func (r *reader) readConstants(f *ast.File) {
	for _, decl := range f.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			value, _ := spec.(*ast.ValueSpec)
			for i, name := range value.Names {
				if i < len(value.Values) {
					r.constants[name.Name] = value.Values[i]
				}
			}
		}
	}
}

// messages returns the messages that a node of the syntax tree makes.
func (r *reader) messages(n ast.Node) []message {
	var m message
	var ok bool
	switch n := n.(type) {
	case *ast.CallExpr:
		if doings := r.doings(n); len(doings) > 0 {
			return couldNot(r.kindOf(n), doings)
		}
		m, ok = r.call(n)
	case *ast.CompositeLit:
		if n.Type != nil && strings.HasPrefix(r.source(n.Type), "framework.Collected[") {
			label := r.text(r.labels["Subject"], 0)
			return couldNot("error", []string{"read " + label, "create " + label, "change " + label, "delete " + label})
		}
		if doing := r.operation(n); doing != nil {
			texts := r.texts(doing)
			for i := range texts {
				texts[i] += " node {node}"
			}
			return couldNot("error", texts)
		}
		m, ok = r.literal(n)
	case *ast.ReturnStmt:
		return r.returned(n)
	}
	if !ok {
		return nil
	}
	var all []message
	for title := range strings.SplitSeq(m.title, " | ") {
		if title != m.title {
			title = strings.Trim(title, "{}")
		}
		all = append(all, message{m.kind, title, m.detail})
	}
	return all
}

// couldNot returns the messages about what could not be done, except for what only the caller knows.
func couldNot(kind string, doings []string) (all []message) {
	for _, doing := range doings {
		if strings.Trim(placeholder.ReplaceAllString(doing, ""), " ") != "" {
			all = append(all, message{kind, "Could not " + doing, ""})
		}
	}
	return all
}

// operation returns what an operate.Operation of an action says of what it does; nil if a literal is none. Those in a table, without a
// type, have the same action.
func (r *reader) operation(n *ast.CompositeLit) (doing ast.Expr) {
	invoked := n.Type == nil
	for _, element := range n.Elts {
		if field, ok := element.(*ast.KeyValueExpr); ok {
			switch r.source(field.Key) {
			case "Action":
				invoked = true
			case "Doing":
				doing = field.Value
			}
		}
	}
	if !invoked {
		return nil
	}
	return doing
}

// reports are the functions that report an error, with the number of the argument that says what was done, as an infinitive.
var reports = map[string]int{
	"Report": 1, "ReportImport": 1, "ReportUndone": 1, "ReportCreation": 1, "ReportOnce": 1, "report": 1, "reportTurn": 1, "reportTaken": 3,
	"Explain": 0,
}

// doings returns what a call reports as not done.
func (r *reader) doings(n *ast.CallExpr) (all []string) {
	name, _, _ := strings.Cut(r.source(n.Fun), "[")
	name = name[strings.LastIndex(name, ".")+1:]
	at, ok := reports[name]
	if !ok || len(n.Args) <= at || r.function == nil || reports[r.function.Name.Name] != 0 {
		return nil
	}
	for _, text := range r.texts(n.Args[at]) {
		if !strings.HasSuffix(text, ".Subject}") { // of a framework.Collected: its package has the text
			all = append(all, text)
		}
	}
	return all
}

// kindOf returns the kind of the message that a call reports. A function that explains an error may warn of it.
func (r *reader) kindOf(n *ast.CallExpr) string {
	kind := "error"
	if !strings.HasSuffix(r.source(n.Fun), "Explain") {
		return kind
	}
	ast.Inspect(r.function, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 2 {
			name := r.source(call.Fun)
			if r.source(call.Args[1]) == "summary" && strings.HasSuffix(strings.ToLower(name), "warn") {
				kind = "warning"
			}
		}
		return true
	})
	return kind
}

// texts returns the texts that an expression may have: those of a variable, those of a map's values, or its own.
func (r *reader) texts(e ast.Expr) (all []string) {
	switch e := e.(type) {
	case *ast.Ident:
		for _, value := range r.assignedTo(e.Name) {
			if _, copied := value.(*ast.Ident); !copied {
				all = append(all, r.texts(value)...)
			}
		}
		return all
	case *ast.IndexExpr:
		if values, ok := e.X.(*ast.CompositeLit); ok {
			for _, element := range values.Elts {
				if pair, ok := element.(*ast.KeyValueExpr); ok {
					element = pair.Value
				}
				all = append(all, r.text(element, 0))
			}
			return all
		}
	case *ast.CallExpr:
		switch r.source(e.Fun) {
		case "cmp.Or":
			return r.texts(e.Args[len(e.Args)-1])
		case "fmt.Sprintf":
			if _, chosen := e.Args[0].(*ast.IndexExpr); chosen {
				for _, format := range r.texts(e.Args[0]) {
					all = append(all, verb.ReplaceAllString(format, "{x}"))
				}
				return all
			}
		}
	}
	return []string{r.text(e, 0)}
}

// assignedTo returns what the function assigns to a variable.
func (r *reader) assignedTo(name string) (values []ast.Expr) {
	ast.Inspect(r.function, func(n ast.Node) bool {
		set, ok := n.(*ast.AssignStmt)
		if !ok || len(set.Lhs) != len(set.Rhs) {
			return true
		}
		for i, left := range set.Lhs {
			if variable, isName := left.(*ast.Ident); isName && variable.Name == name {
				values = append(values, set.Rhs[i])
			}
		}
		return true
	})
	return values
}

// returned returns the messages of a function that returns what it was doing, or the summary of a doubt.
func (r *reader) returned(n *ast.ReturnStmt) []message {
	if r.function == nil || r.function.Type.Results == nil || len(n.Results) == 0 {
		return nil
	}
	results := r.function.Type.Results.List
	at := 0
	for _, result := range results {
		for _, name := range result.Names {
			if name.Name == "doing" && at < len(n.Results) {
				return couldNot("error", r.texts(n.Results[at]))
			}
			at++
		}
	}
	switch r.function.Name.Name {
	case "Summary":
		return []message{{"warning", r.text(n.Results[0], 0), ""}}
	case "Of": // a phase of a deployment
		if r.function.Recv != nil && r.source(r.function.Recv.List[0].Type) == "Phase" {
			return couldNot("error", r.texts(n.Results[0]))
		}
	}
	return nil
}

// call returns the message of a function's call.
func (r *reader) call(n *ast.CallExpr) (message, bool) {
	name, args := r.source(n.Fun), n.Args
	if name == "d.warn" || name == "d.refuse" { // of a decision
		name = "decide." + strings.ToUpper(name[2:3]) + name[3:]
	}
	name = name[strings.LastIndex(name, ".")+1:]
	kind := "error"
	if strings.Contains(name, "Warning") || strings.EqualFold(name, "warn") {
		kind = "warning"
	}
	switch name {
	case "AddAttributeError", "AddAttributeWarning":
		args = args[1:]
	case "Warn", "Refuse", "warn", "refuse": // a notice, with the path of its attribute
		if !isNotice(args) {
			return message{}, false // another function
		}
		args = args[1:]
	case "problem": // of a deploy interface
		if kind, args = "warning", args[1:]; len(args) != 2 {
			return message{}, false
		}
	case "AddError", "AddWarning", "NewErrorDiagnostic", "NewWarningDiagnostic":
	case "NewAttributeErrorDiagnostic", "NewAttributeWarningDiagnostic":
		args = args[1:]
	case "Errorf", "New":
		if source := r.source(n.Fun); source == "fmt.Errorf" || source == "errors.New" {
			return message{cause, r.text(&ast.CallExpr{Fun: n.Fun, Args: args}, 0), ""}, true
		}
		return message{}, false
	default:
		return message{}, false
	}
	if len(args) < 2 { // AddError(Explain(...))
		return message{}, false
	}
	title := r.text(args[0], 0)
	detail := r.text(args[1], 0)
	for _, advice := range args[2:] {
		detail += " " + r.text(advice, 0)
	}
	return message{kind, title, detail}, !passedOn.MatchString(title)
}

// isNotice reports whether these are the arguments of a notice: a path, a title and a text. Other functions of the same names take a format
// first.
func isNotice(args []ast.Expr) bool {
	if len(args) < 3 {
		return false
	}
	format, ok := args[0].(*ast.BasicLit)
	return !ok || !strings.Contains(format.Value, " ")
}

var passedOn = regexp.MustCompile(`^\{(\w+\.)?(Summary|summary)(\(\))?\}$`) // a title that is made elsewhere

// literal returns the message of a rule for strings, or of a notice of a run.
func (r *reader) literal(n *ast.CompositeLit) (message, bool) {
	fields := r.fields(n)
	if fields["Summary"] != "" && fields["Detail"] != "" && !passedOn.MatchString(fields["Summary"]) {
		kind := "warning"
		if fields["Fatal"] == "{true}" || strings.HasSuffix(fields["Severity"], "Error}") {
			kind = "error"
		}
		return message{kind, fields["Summary"], fields["Detail"]}, true
	}
	if n.Type == nil {
		return message{}, false
	}
	switch r.source(n.Type) {
	case "Notice":
		if len(n.Elts) == 2 {
			return message{"warning", r.text(n.Elts[0], 0), r.text(n.Elts[1], 0)}, true
		}
	case "text", "rule":
		if fields["summary"] != "" {
			return message{"error", fields["summary"], "{value} " + fields["must"] + "."}, true
		}
	}
	if fields["Title"] != "" && fields["Fact"] != "" { // of a failure.Error
		return message{"error", fields["Title"], fields["Fact"]}, true
	}
	if strings.HasPrefix(fields["Doing"], "list ") && !strings.Contains(fields["Doing"], "{") {
		return message{"error", "Could not " + fields["Doing"], ""}, true
	}
	return message{}, false
}

// untraced returns the place of a message whose title comes from code that the reader does not read, or "".
func (r *reader) untraced(n ast.Node) string {
	unread := false
	switch n := n.(type) {
	case *ast.CallExpr:
		unread = slices.ContainsFunc(n.Args, r.isUnreadTitle)
	case *ast.CompositeLit:
		fields := r.fields(n)
		unread = fields["Summary"] != "" && fields["Detail"] == "" && n.Type != nil && isMessage.MatchString(r.source(n.Type))
	}
	if !unread {
		return ""
	}
	return r.set.Position(n.Pos()).String()
}

// isUnreadTitle reports whether an argument is a title that the function gets from a caller whose titles are not read. What explains an
// error gets its title from what was being done, which the reader reads.
func (r *reader) isUnreadTitle(e ast.Expr) bool {
	name, ok := e.(*ast.Ident)
	if !ok || name.Name != "summary" || r.function == nil || titled[r.function.Name.Name] || r.assigned(name.Name, 0) != "" {
		return false
	}
	explained := false
	ast.Inspect(r.function, func(n ast.Node) bool {
		if set, ok := n.(*ast.AssignStmt); ok && len(set.Rhs) == 1 && r.source(set.Lhs[0]) == "summary" {
			call, isCall := set.Rhs[0].(*ast.CallExpr)
			explained = explained || isCall && isExplanation.MatchString(r.source(call.Fun))
		}
		return true
	})
	return !explained
}

var (
	// titled are the functions whose callers' titles the reader reads.
	titled        = map[string]bool{"Warn": true, "Refuse": true, "warn": true, "refuse": true, "problem": true}
	isMessage     = regexp.MustCompile(`(^|\.)(Notice|Doubt|Problem|Diagnostic)$`)
	isExplanation = regexp.MustCompile(`(^|\.)[eE]xplain(Action)?$`)
)

// fields returns the texts of a literal's fields.
func (r *reader) fields(n *ast.CompositeLit) map[string]string {
	fields := map[string]string{}
	for _, element := range n.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			fields[r.source(pair.Key)] = r.text(pair.Value, 0)
		}
	}
	return fields
}

// deepest is how far text follows the variables of a message.
const deepest = 3

// text returns the text that an expression makes, with {} around what only a run knows.
func (r *reader) text(e ast.Expr, depth int) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return text
		}
	case *ast.ParenExpr:
		return r.text(e.X, depth)
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return r.text(e.X, depth) + r.text(e.Y, depth)
		}
	case *ast.Ident:
		if value, ok := r.constants[e.Name]; ok {
			return r.text(value, depth)
		}
		if depth < deepest {
			if values := r.assigned(e.Name, depth); values != "" {
				return values
			}
		}
	case *ast.CallExpr:
		switch r.source(e.Fun) {
		case "fmt.Sprintf", "fmt.Errorf", "errors.New":
			return r.formatted(e.Args, depth)
		}
		if method, ok := e.Fun.(*ast.SelectorExpr); ok && r.labels[method.Sel.Name] != nil && depth < deepest {
			return r.text(r.labels[method.Sel.Name], depth+1)
		}
	}
	return "{" + r.short(e) + "}"
}

// assigned returns the texts that the function assigns to a variable, if there are any.
func (r *reader) assigned(name string, depth int) string {
	if r.function == nil {
		return ""
	}
	var texts []string
	ast.Inspect(r.function, func(n ast.Node) bool {
		set, ok := n.(*ast.AssignStmt)
		if !ok || len(set.Lhs) != len(set.Rhs) {
			return true
		}
		for i, left := range set.Lhs {
			variable, isName := left.(*ast.Ident)
			if !isName || variable.Name != name {
				continue
			}
			if call, isCall := set.Rhs[i].(*ast.CallExpr); isCall && r.source(call.Fun) != "fmt.Sprintf" {
				continue
			}
			text := r.text(set.Rhs[i], depth+1)
			if set.Tok == token.ADD_ASSIGN {
				text = "…" + text
			}
			if strings.Contains(text, " ") && !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
		return true
	})
	if len(texts) == 1 && !strings.HasPrefix(texts[0], "…") {
		return texts[0]
	}
	if len(texts) == 0 {
		return ""
	}
	return "{" + strings.NewReplacer("{", "<", "}", ">").Replace(strings.Join(texts, " | ")) + "}"
}

var verb = regexp.MustCompile(`%[-+# 0]*[0-9]*[a-zA-Z%]`)

// formatted returns a format with its arguments.
func (r *reader) formatted(args []ast.Expr, depth int) string {
	next := 1
	return verb.ReplaceAllStringFunc(r.text(args[0], depth), func(verb string) string {
		if verb == "%%" {
			return "%"
		}
		if next >= len(args) {
			return "{" + verb + "}"
		}
		text := r.text(args[next], max(depth, deepest-1))
		if verb == "%q" {
			text = strconv.Quote("")[:1] + text + strconv.Quote("")[:1]
		}
		next++
		return text
	})
}

// accessors are the ends of expressions that a reader of messages does not need.
var accessors = regexp.MustCompile(`\.(ValueString|String|Error|ValueInt64)\(\)|\(\)`)

// short returns an expression as a placeholder: ironic.NodeLabel(node) is "node".
func (r *reader) short(e ast.Expr) string {
	source := r.source(e)
	if label, ok := strings.CutPrefix(source, "ironic.NodeLabel("); ok {
		source = strings.TrimSuffix(label, ")")
	}
	return strings.NewReplacer("{", "(", "}", ")").Replace(accessors.ReplaceAllString(source, ""))
}

func (r *reader) source(e ast.Expr) string {
	var text bytes.Buffer
	if err := printer.Fprint(&text, r.set, e); err != nil {
		return fmt.Sprintf("%T", e)
	}
	return strings.Join(strings.Fields(text.String()), " ")
}
