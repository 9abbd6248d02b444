package conductor

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
)

// operation is a sequence of transient states that the conductor takes a node through.
type operation struct {
	verb   string // the requested provision verb or power target
	phases []phase
	fail   func(n *Node, text string) // ends a failed operation
	done   func(n *Node)              // ends a successful operation
	defect string                     // last_error; if it is not empty, the last phase fails
	flow   string                     // whose steps Ironic 39 enters into the history; "": none
	boots  bool                       // the ramdisk boots before the steps
}

// The flows whose steps Ironic 39 enters into the history.
const (
	flowAutomated  = "automated cleaning"
	flowManual     = "manual cleaning"
	flowDeployment = "deployment"
)

// phase is a stay in one transient state.
type phase struct {
	in     State
	length time.Duration
	then   func(n *Node) // runs before the next phase; not after the last one
	step   string        // the clean step at work, such as "deploy.erase_devices"; "": none
}

// stay returns a phase of one StepTime for each state.
func (c *Conductor) stay(states ...State) []phase {
	phases := make([]phase, len(states))
	for i, in := range states {
		phases[i] = phase{in: in, length: c.StepTime}
	}
	return phases
}

// begin starts an operation that leads to the target state.
func (c *Conductor) begin(n *Node, o operation, target State) {
	c.silent(n, &o)
	n.work = &o
	n.Put("target_provision_state", string(target))
	n.Put("last_error", nil)
	n.Put("deploy_step", map[string]any{})
	c.enterPhase(n, n.work)
	c.logStart(n, n.work)
}

// enterPhase starts the first remaining phase. It locks the node, except while the node waits for its ramdisk.
func (c *Conductor) enterPhase(n *Node, o *operation) {
	current := o.phases[0]
	if n.State() != current.in {
		c.enter(n, current.in)
	}
	if kind, name, works := strings.Cut(current.step, "."); works {
		n.Put("clean_step", map[string]any{"interface": kind, "step": name, "priority": 0, "abortable": false})
	}
	n.Put("reservation", Host)
	if current.in.waiting() {
		n.Put("reservation", nil)
	}
	var end func()
	end = func() {
		switch {
		case n.work != o || c.keeps(string(current.in), end):
		case !current.in.waiting() && c.Abandons != nil && c.Abandons(n, o.verb):
			c.abandon(n)
		default:
			c.endPhase(n, o)
		}
	}
	c.After(current.length, end)
}

// emptiesErrors is the default of [conductor]sync_power_state_interval. Ironic 39 empties last_error when it looks at the power of a
// machine.
const emptiesErrors = time.Minute

// abandon leaves the node in the middle of its operation. Nothing works on it any more.
func (c *Conductor) abandon(n *Node) {
	c.leave(n, "(pymysql.err.OperationalError) (1213, 'Deadlock found when trying to get lock; try restarting transaction')")
}

// leave leaves the node in the middle of its operation because of an error.
func (c *Conductor) leave(n *Node, reason string) {
	lost := "Async execution of an operation failed with error: " + reason
	n.work = nil
	n.Put("reservation", nil)
	n.Put("last_error", lost)
	if c.legacy() {
		return
	}
	c.After(emptiesErrors, func() {
		if n.work == nil && n.Str("last_error") == lost {
			n.Put("last_error", nil)
		}
	})
}

// endPhase starts the next phase or ends the operation.
func (c *Conductor) endPhase(n *Node, o *operation) {
	if len(o.phases) > 1 {
		if then := o.phases[0].then; then != nil {
			then(n)
		}
		o.phases = o.phases[1:]
		c.enterPhase(n, o)
		return
	}
	n.work = nil
	n.Put("reservation", nil)
	text := c.verdict(n, o)
	if text == "" {
		c.logSuccess(n, o)
		o.done(n)
	} else {
		c.enterHistory(n, "ERROR", cmp.Or(eventTypes[n.Str("provision_state")], n.Str("provision_state")), text)
		o.fail(n, text)
	}
	if c.UnlockDelay > 0 && n.work == nil {
		if text != "" {
			text = n.Str("last_error")
		}
		c.unlockLater(n, o, text)
	}
}

// eventTypes are the types of the events in the history when an operation fails in a state; for other states, the state itself.
var eventTypes = map[string]string{
	"clean wait": "cleaning", "wait call-back": "deploying", "service wait": "servicing", "deleting": "unprovision",
	"inspecting": "introspection", "inspect wait": "introspection", "rescuing": "rescue", "rescue wait": "rescue", "unrescuing": "rescue",
	"adopting": "adoption",
}

// enterHistory adds an entry to the history of a node.
func (c *Conductor) enterHistory(n *Node, severity, kind, text string) {
	since, err := time.Parse(time.RFC3339Nano, n.Str("provision_updated_at"))
	duration := any(int(c.Now.Sub(since) / time.Second))
	if err != nil {
		duration = nil
	}
	n.History = append(n.History, api.Ordered{
		{"uuid", api.NewUUID()},
		{"created_at", api.Timestamp(c.Now)},
		{"severity", severity},
		{"event_type", kind},
		{"event", text},
		{"conductor", Host},
		{"user", nil},
		{"project", nil},
		{"state", n.Str("provision_state")},
		{"target_provision_state", n.Fields["target_provision_state"]},
		{"duration_seconds", duration},
	})
}

// logStart enters the steps of an operation into the history, as Ironic 39 does, unless its ramdisk boots first, or the node lacks one
// of them.
func (c *Conductor) logStart(n *Node, o *operation) {
	if o.flow != "" && !o.boots && !c.legacy() && !strings.HasPrefix(o.defect, lacksSteps) {
		c.enterHistory(n, "INFO", strings.ReplaceAll(o.flow, " ", "_")+"_start", "Starting "+o.flow+" with steps=[...]")
	}
}

// logSuccess enters the end of an operation into the history, as Ironic 39 does. It has no steps of a cleaning, because Ironic has emptied
// their list by then.
func (c *Conductor) logSuccess(n *Node, o *operation) {
	if o.flow == "" || c.legacy() {
		return
	}
	steps := ""
	if o.flow == flowDeployment {
		steps = "..."
	}
	c.enterHistory(n, "INFO", strings.ReplaceAll(o.flow, " ", "_")+"_end", title(o.flow)+" completed successfully with steps=["+steps+"]")
}

// title writes the words of a flow with capitals.
func title(flow string) string {
	words := strings.Fields(flow)
	for i, word := range words {
		words[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, " ")
}

// unlockLater keeps the node locked and delays its last_error for the UnlockDelay.
func (c *Conductor) unlockLater(n *Node, o *operation, lastError string) {
	n.work = o
	n.Put("reservation", Host)
	if lastError != "" {
		n.Put("last_error", nil)
	}
	c.After(c.UnlockDelay, func() {
		if n.work != o {
			return
		}
		n.work = nil
		n.Put("reservation", nil)
		if lastError != "" {
			n.Put("last_error", lastError)
		}
	})
}

// verdict returns the last_error of an operation, "" if it succeeds.
func (c *Conductor) verdict(n *Node, o *operation) string {
	if o.defect != "" {
		return o.defect
	}
	if defect := c.ownChild(n); defect != "" && (n.State() == Deploying || n.State() == Deleting) {
		return defect
	}
	if c.Fail == nil {
		return ""
	}
	return c.Fail(n, o.verb)
}

// ownChild returns the error of operations on a node that is its own parent (ParentNodeDefect), "" for other nodes.
func (c *Conductor) ownChild(n *Node) string {
	uuid := n.Str("uuid")
	if !c.ParentNodeDefect || n.Str("parent_node") != uuid {
		return ""
	}
	return "Node " + uuid + " child_node " + uuid + " is presently locked, and can not be powered on at this time."
}

// rest ends an operation in a stable state. After a failure the node keeps its target.
func (c *Conductor) rest(n *Node, in, target State, lastError string) {
	if endsDetection(n.State(), in) {
		c.restoreDeploy(n)
	}
	c.enter(n, in)
	n.Put("deploy_step", map[string]any{})
	n.Put("clean_step", map[string]any{})
	n.Put("target_provision_state", api.OrNull(string(target)))
	if lastError != "" {
		n.Put("last_error", lastError)
	}
}

// concurrency counts the nodes in the given states against a limit of the conductor.
func (c *Conductor) concurrency(limit int, action string, states ...State) error {
	if limit == 0 {
		return nil
	}
	busy := 0
	for _, n := range c.Nodes {
		for _, counted := range states {
			if n.State() == counted {
				busy++
			}
		}
	}
	if busy < limit {
		return nil
	}
	status := http.StatusServiceUnavailable
	if c.legacy() {
		status = http.StatusInternalServerError
	}
	return api.Fault(status, "Unable to process request at this time. The concurrent action limit for %s has been reached. "+
		"Please contact your administrator and try again later.", action)
}

func (c *Conductor) deployLimit() error {
	return c.concurrency(c.MaxConcurrentDeploy, "provisioning", Deploying, DeployWait)
}

func (c *Conductor) cleanLimit(action string) error {
	return c.concurrency(c.MaxConcurrentClean, action, Deleting, Cleaning, CleanWait)
}

// deployed ends a successful deployment.
func (c *Conductor) deployed(n *Node) {
	n.Note("deploy_steps", nil)
	c.startConsole(n)
	c.rest(n, Active, "", "")
}
