package oneview

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Outcome is how it went with a node.
type Outcome string

// How it can go.
const (
	Changed   Outcome = "changed"   // in a dry run: would be changed
	Unchanged Outcome = "unchanged" // it is so already
	Warned    Outcome = "warning"   // beside the change: somebody should know
	Skipped   Outcome = "skipped"   // not now, because somebody else is at work on it: it is looked at again next time
	Failed    Outcome = "failed"    // it stays as it is, or half way where the next run takes it up
)

// Finding is what there is to tell of a node, in one line.
type Finding struct {
	NodeID, NodeName string
	Outcome          Outcome
	Text             string // what was done, or would be in a dry run; or why it was not
	Err              error  // of Failed
}

// Node is how messages call the node.
func (f Finding) Node() string {
	return ironic.NodeLabel(&ironic.Node{UUID: f.NodeID, Name: f.NodeName})
}

// Tally counts findings.
type Tally struct{ Changed, Unchanged, Warned, Skipped, Failed int }

// findings counts and passes on what there is to tell, one at a time.
type findings struct {
	report   func(Finding) // may be nil
	progress Progress      // may be nil

	mu    sync.Mutex
	tally Tally
}

// Progress is told, after each node, how many of how many are done with. It is called by one goroutine at a time.
type Progress func(doing string, done, total int)

func (f *findings) tell(node *ironic.Node, outcome Outcome, text string) {
	f.add(Finding{NodeID: node.UUID, NodeName: node.Name, Outcome: outcome, Text: text})
}

// fail tells why something could not be done to a node. That the run was stopped is nobody's failure, and that Ironic is at
// work on the node is none either.
func (f *findings) fail(ctx context.Context, node *ironic.Node, doing string, err error) {
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, errOutdated):
		f.tell(node, Skipped, "it has changed meanwhile")
	case errors.Is(err, ironic.ErrNoSlot):
		f.tell(node, Skipped, ironic.ErrNoSlot.Error())
	case ironic.IsBusy(err):
		f.tell(node, Skipped, "Ironic is at work on it: "+err.Error())
	default:
		f.add(Finding{NodeID: node.UUID, NodeName: node.Name, Outcome: Failed, Text: doing, Err: err})
	}
}

func (f *findings) add(finding Finding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch finding.Outcome {
	case Changed:
		f.tally.Changed++
	case Unchanged:
		f.tally.Unchanged++
	case Warned:
		f.tally.Warned++
	case Skipped:
		f.tally.Skipped++
	case Failed:
		f.tally.Failed++
	}
	if f.report != nil {
		f.report(finding)
	}
}

// errOutdated says that a node is not any more what it was when it was decided about.
var errOutdated = errors.New("it has changed meanwhile")

// candidate is a node to work on.
type candidate struct {
	node    *ironic.Node
	binding Binding

	hardware  *Hardware // as last seen; nil: not looked at
	temporary *Profile  // a temporary profile that was made for this node, and is on its hardware; nil: none
	action    Action
}

// each works on candidates, so many at once, until all are done or ctx is. A panic is the failure of one node.
func (f *findings) each(ctx context.Context, doing string, parallel int, all []*candidate, work func(context.Context, *candidate)) {
	queue := make(chan *candidate)
	var workers sync.WaitGroup
	done := 0
	for range min(parallel, len(all)) {
		workers.Go(func() {
			for c := range queue {
				f.guarded(ctx, c, work)
				f.mu.Lock()
				if done++; f.progress != nil {
					f.progress(doing, done, len(all))
				}
				f.mu.Unlock()
			}
		})
	}
	for _, c := range all {
		if ctx.Err() != nil {
			break
		}
		queue <- c
	}
	close(queue)
	workers.Wait()
}

func (f *findings) guarded(ctx context.Context, c *candidate, work func(context.Context, *candidate)) {
	defer func() {
		if r := recover(); r != nil {
			f.fail(ctx, c.node, "work on it", fmt.Errorf("panic: %v", r))
		}
	}()
	work(ctx, c)
}
