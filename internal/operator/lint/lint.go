// Package lint finds the keys of a configuration that Terraform drops, because the objects of the provider's schema do not have them.
package lint

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// Finding is a key that an object does not have.
type Finding struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Block  string `json:"block"`  // such as resource metal_host.web
	Object string `json:"object"` // the path of the object in the block, such as bmc
	Key    string `json:"key"`
	Meant  string `json:"meant,omitempty"` // the key that was probably meant
	Text   string `json:"text"`
}

// linter collects findings.
type linter struct {
	kinds map[string]map[string]Shape // as in schemaFile
	found map[string]Finding          // by place
	steps int                         // that are left: a configuration may double at each name
	open  map[hcl.Expression]bool     // the values of names that are being looked for
}

// check finds the keys that an object, or objects in it, do not have.
func (l *linter) check(v value, shape Shape, block, path string) {
	inner, several := shape[AnyKey]
	switch {
	case shape == nil:
		return
	case several:
		for _, element := range l.made(v, all) {
			l.check(element, inner, block, path+"[*]")
		}
		return
	}
	for _, object := range l.made(v) {
		pairs, _ := hcl.ExprMap(object.expr)
		for _, pair := range pairs {
			name, at := nameOf(pair.Key), pair.Key.Range()
			if inner, has := shape[name]; has {
				l.check(object.of(pair.Value), inner, block, path+"."+name)
			} else if _, is := l.found[at.String()]; !is && name != "" && name != "//" { // a comment of a JSON file
				f := Finding{at.Filename, at.Start.Line, at.Start.Column, block, path, name, shape.nearest(name), ""}
				advice := "the keys are " + strings.Join(shape.keys(), ", ")
				if f.Meant != "" {
					advice = fmt.Sprintf("did you mean %s?", f.Meant)
				}
				f.Text = fmt.Sprintf("%s: %s has no key %s, so Terraform drops it; %s", block, path, name, advice)
				l.found[at.String()] = f
			}
		}
	}
}
