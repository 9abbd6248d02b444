package fakeoneview

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// TaskState is the state of a task.
type TaskState string

// The states of tasks that the fake uses.
const (
	TaskNew         TaskState = "New"
	TaskStarting    TaskState = "Starting"
	TaskRunning     TaskState = "Running"
	TaskCompleted   TaskState = "Completed"
	TaskWarning     TaskState = "Warning"
	TaskError       TaskState = "Error"
	TaskInterrupted TaskState = "Interrupted"
)

// task is what a client polls while the appliance works.
type task struct {
	uri       string
	name      string // Create, Delete, Update, Power off, ...
	state     TaskState
	status    string // taskStatus
	reason    string // stateReason
	percent   int
	hidden    bool
	noURI     bool // hides the URI of the resource
	problems  []Problem
	updates   []string
	resource  string // URI; empty until the resource exists
	label     string // name of the resource
	category  string // of the resource
	revision  int
	created   time.Time
	modified  time.Time
	forgotten bool
}

// operation is a task and its work. Each step lasts one StepTime.
type operation struct {
	task    *task
	running string          // taskStatus while it runs and after success
	failed  string          // taskStatus after failure
	check   func() *Problem // runs before begin; a Problem fails the task
	begin   func()          // starts the work
	finish  func()          // ends the work with success
	broken  func()          // ends the work with failure
	effects []Effect
	hold    int  // remaining requests before it may finish
	begun   bool // begin was called
	over    bool
}

func (s *Server) start(c *call, op *operation) (Reply, error) {
	op.effects = c.effects
	if s.PlainConflicts && op.check != nil {
		if problem := op.check(); problem != nil {
			op.over = true
			return Reply{}, &apiError{http.StatusConflict, *problem}
		}
	}
	t := op.task
	t.uri = "/rest/" + pathTasks + "/" + strings.ToUpper(newUUID())
	t.created, t.modified = s.now, s.now
	s.setTask(t, TaskNew, "", 0)
	t.revision = 0
	s.tasks = append(s.tasks, t)
	s.operations = append(s.operations, op)
	answer := jsonReply(http.StatusAccepted, s.taskDocument(c, t))
	answer.Header.Set("Location", t.uri)
	for _, effect := range op.effects {
		t.forgotten = t.forgotten || effect.ForgetTask
	}
	s.after(s.StepTime, nil, func() { s.starting(op) })
	return answer, nil
}

// change starts a task that checks something, unless check is nil, and changes something at its end.
func (s *Server) change(c *call, t *task, check func() *Problem, apply func()) (Reply, error) {
	nothing := func() {}
	return s.start(c, &operation{
		task: t, running: t.name, failed: "Unable to " + strings.ToLower(t.name) + " " + t.label + ".", check: check, begin: nothing,
		finish: apply, broken: nothing,
	})
}

func (s *Server) starting(op *operation) {
	if op.over {
		return
	}
	s.setTask(op.task, TaskStarting, "Applying", 0)
	op.task.reason = "Starting"
	s.after(s.StepTime, hooks(op.effects, func(e Effect) func() { return e.BeforeRunning }), func() { s.running(op) })
}

// hooks combines the hooks of one kind.
func hooks(effects []Effect, of func(Effect) func()) func() {
	var found []func()
	for _, effect := range effects {
		if hook := of(effect); hook != nil {
			found = append(found, hook)
		}
	}
	if found == nil {
		return nil
	}
	return func() {
		for _, hook := range found {
			hook()
		}
	}
}

func (s *Server) running(op *operation) {
	if op.over {
		return
	}
	var problem *Problem
	if op.check != nil {
		problem = op.check()
	}
	for _, effect := range op.effects {
		if effect.FailValidation != nil {
			problem = effect.FailValidation
		}
		op.task.noURI = op.task.noURI || effect.HideResource
		op.hold += effect.HoldRequests
	}
	if problem != nil {
		s.fail(op, *problem)
		op.task.hidden = true
		op.task.reason = "ValidationError"
		return
	}
	s.setTask(op.task, TaskRunning, op.running, 50)
	op.task.reason = ""
	op.begun = true
	op.begin()
	for _, effect := range op.effects {
		if effect.StuckTask {
			return
		}
	}
	s.after(s.StepTime, hooks(op.effects, func(e Effect) func() { return e.BeforeEnd }), func() {
		if op.hold > 0 {
			s.held = append(s.held, op)
			return
		}
		s.end(op)
	})
}

// countDown counts a request for the held operations, and ends those that have received enough.
func (s *Server) countDown() {
	var still []*operation
	for _, op := range s.held {
		if op.hold == 0 {
			s.end(op)
			continue
		}
		op.hold--
		still = append(still, op)
	}
	s.held = still
}

func (s *Server) end(op *operation) {
	if op.over {
		return
	}
	var warnings []Problem
	for _, effect := range op.effects {
		if effect.FailApply != nil {
			op.broken()
			s.fail(op, *effect.FailApply)
			return
		}
		if effect.Warn != nil {
			warnings = append(warnings, *effect.Warn)
		}
	}
	op.finish()
	op.over = true
	state := TaskCompleted
	if warnings != nil {
		state = TaskWarning
	}
	op.task.problems = warnings
	s.setTask(op.task, state, op.running, 100)
}

// conclude ends an operation at once, so that an act of another user comes after it.
func (s *Server) conclude(op *operation) {
	if op == nil || op.over {
		return
	}
	if !op.begun {
		op.begun = true
		op.begin()
	}
	s.end(op)
}

// fail ends an operation with an error.
func (s *Server) fail(op *operation, problem Problem) {
	op.over = true
	op.task.problems = []Problem{problem}
	s.setTask(op.task, TaskError, op.failed, 100)
}

func (s *Server) setTask(t *task, state TaskState, status string, percent int) {
	t.state, t.status, t.percent = state, status, percent
	t.revision++
	t.modified = s.now
}

func (s *Server) routeTasks(c *call) (Reply, error) {
	if c.method != http.MethodGet {
		return Reply{}, methodNotAllowed(c.method)
	}
	documents := []map[string]any{}
	for _, t := range s.tasks {
		if t.forgotten {
			continue
		}
		document := s.taskDocument(c, t)
		if c.at(2) != "" && sameURI(t.uri, "/rest/"+pathTasks+"/"+c.at(2)) {
			return s.entity(c, document), nil
		}
		documents = append(documents, document)
	}
	if c.at(2) != "" {
		return Reply{}, notFound(c.uri)
	}
	return s.list(c, pathTasks, documents)
}

func (s *Server) taskDocument(c *call, t *task) map[string]any {
	kind, taskType := "TaskResourceV2", "User"
	if c.version >= 1200 {
		kind = "TaskResourceV3"
	}
	if t.state == TaskStarting {
		taskType = "Background"
	}
	problems, updates := []any{}, []any{}
	for _, problem := range t.problems {
		problems = append(problems, problem.document())
	}
	for i, update := range t.updates {
		updates = append(updates, map[string]any{"id": i, "timestamp": timestamp(t.modified), "statusUpdate": update})
	}
	resource := t.resource
	if t.noURI {
		resource = ""
	}
	return map[string]any{
		"type": kind, "category": pathTasks, "uri": t.uri, "name": t.name, "taskState": t.state, "taskStatus": orNull(t.status),
		"stateReason": orNull(t.reason), "taskType": taskType, "percentComplete": t.percent, "computedPercentComplete": t.percent,
		"expectedDuration": 120, "totalSteps": 3, "completedSteps": t.percent * 3 / 100, "progressUpdates": updates,
		"taskErrors": problems, "taskOutput": []any{}, "parentTaskUri": nil, "associatedTaskUri": nil, "owner": "administrator",
		"userInitiated": true, "hidden": t.hidden, "isCancellable": false,
		"associatedResource": map[string]any{
			"resourceUri": orNull(resource), "resourceName": orNull(t.label), "resourceCategory": t.category,
			"associationType": "MANAGED_BY",
		},
		"created": timestamp(t.created), "modified": timestamp(t.modified), "eTag": strconv.Itoa(t.revision),
	}
}
