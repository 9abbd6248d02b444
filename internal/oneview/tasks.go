package oneview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

// TaskState is the state of an operation of the appliance.
type TaskState string

// The states of tasks (reference/oneview.md#tasks).
const (
	taskNew         TaskState = "New"
	taskStarting    TaskState = "Starting"
	taskPending     TaskState = "Pending"
	taskRunning     TaskState = "Running"
	taskSuspended   TaskState = "Suspended"
	taskStopping    TaskState = "Stopping"
	taskCompleted   TaskState = "Completed"
	taskWarning     TaskState = "Warning" // done, with messages
	taskFailed      TaskState = "Error"
	taskTerminated  TaskState = "Terminated"
	taskKilled      TaskState = "Killed"
	taskInterrupted TaskState = "Interrupted" // the appliance was restarted
	taskUnknown     TaskState = "Unknown"
)

// Task is an operation of the appliance.
type Task struct {
	URI      string    `json:"uri"`
	Name     string    `json:"name"`
	State    TaskState `json:"taskState"`
	Status   string    `json:"taskStatus"`
	Errors   []Problem `json:"taskErrors"`
	Resource struct {
		URI string `json:"resourceUri"`
	} `json:"associatedResource"`
}

// progress is the meaning of a task's state for a waiting client.
type progress int

const (
	atWork   progress = iota
	finished          // with success
	gaveUp            // with failure
	adrift            // interrupted: the appliance may continue it or not
)

// means returns the meaning of a task's state. An unknown state counts as running.
func (s TaskState) means() progress {
	switch s {
	case taskNew, taskStarting, taskPending, taskRunning, taskSuspended, taskStopping:
		return atWork
	case taskCompleted, taskWarning:
		return finished
	case taskFailed, taskTerminated, taskKilled:
		return gaveUp
	case taskInterrupted, taskUnknown:
		return adrift
	}
	return atWork
}

var (
	// errNoTask says that the appliance accepted an operation without returning its task.
	errNoTask = errors.New("OneView accepted the request, but did not return its task")
	// ErrTaskLost says that the result of a task is not available any more.
	ErrTaskLost = errors.New("OneView no longer knows how the task ended")
)

var taskPath = regexp.MustCompile(`^/rest/tasks/[A-Za-z0-9_-]+$`)

// taskOf returns the URI of the task of an accepted operation: from Location, X-Task-URI or the body. It uses only the path of a URL, so
// that the client polls the task on the configured host.
func taskOf(a *answer) (string, error) {
	var inBody Task
	_ = json.Unmarshal(a.body, &inBody) // the body may be empty
	for _, candidate := range []string{a.header.Get("Location"), a.header.Get("X-Task-URI"), inBody.URI} {
		u, err := url.Parse(strings.TrimSpace(candidate))
		if err != nil {
			continue
		}
		if path := strings.TrimRight(u.Path, "/"); taskPath.MatchString(path) {
			return path, nil
		}
	}
	return "", errNoTask
}

// Await waits until a task has ended. It calls seen, if not nil, after every poll. It returns an error of KindTask if the task has failed.
// After KindTimeout and ErrTaskLost the result is unknown, and callers must read the resource itself.
func (c *Client) Await(ctx context.Context, uri string, deadline time.Time, seen func(Task)) error {
	start, waiting := time.Now(), c.Backoff()
	var adriftSince time.Time
	for {
		if err := rest.Sleep(ctx, waiting.Next()); err != nil {
			return err
		}
		var now Task
		err := c.get(ctx, uri, nil, &now)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case IsNotFound(err):
			return fmt.Errorf("%s: %w", uri, ErrTaskLost)
		case err != nil && !IsTransient(err):
			return err
		case err == nil:
			for i := range now.Errors {
				c.redact(&now.Errors[i])
			}
			if seen != nil {
				seen(now)
			}
			over, failure := now.outcome(uri)
			if over {
				return failure
			}
			if now.State.means() != adrift {
				adriftSince = time.Time{}
			} else if adriftSince.IsZero() {
				adriftSince = time.Now()
			} else if time.Since(adriftSince) > c.Patience() {
				return fmt.Errorf("%s is %s: %w", uri, now.State, ErrTaskLost)
			}
		}
		if time.Now().After(deadline) {
			return Late("OneView's task "+uri, time.Since(start))
		}
	}
}

func (t Task) outcome(uri string) (over bool, failure error) {
	switch t.State.means() {
	case finished:
		return true, nil
	case gaveUp:
		var said []string
		for _, problem := range t.Errors {
			said = append(said, problem.String())
		}
		if len(said) == 0 {
			said = append(said, plain(t.Status))
		}
		return true, &fault.Error{
			Kind: KindTask,
			Fact: fmt.Sprintf("OneView's task %q ended in state %s: %s (%s)", t.Name, t.State, strings.Join(said, "; "), uri),
		}
	case atWork, adrift:
	}
	return false, nil
}
