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
)

// TaskState is the state of an operation of the appliance.
type TaskState string

// The states of tasks (reference oneview.md 1.7).
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
	taskInterrupted TaskState = "Interrupted" // by a restart of the appliance
	taskUnknown     TaskState = "Unknown"
)

// task is an operation of the appliance.
type task struct {
	URI      string    `json:"uri"`
	Name     string    `json:"name"`
	State    TaskState `json:"taskState"`
	Status   string    `json:"taskStatus"`
	Errors   []Problem `json:"taskErrors"`
	Resource struct {
		URI string `json:"resourceUri"`
	} `json:"associatedResource"`
}

// progress is what a task's state means for who waits for it.
type progress int

const (
	atWork   progress = iota
	finished          // as wanted
	gaveUp            // not as wanted
	adrift            // interrupted: it may go on or not
)

// means says what a state of a task means. One of a newer appliance is waited for like one at work.
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
	// errNoTask says that an operation was accepted, but not under what name.
	errNoTask = errors.New("OneView accepted the request, but did not say as what task")
	// errTaskLost says that a task tells no more how it ended.
	errTaskLost = errors.New("OneView no longer knows how the task ended")
)

var taskPath = regexp.MustCompile(`^/rest/tasks/[A-Za-z0-9_-]+$`)

// taskOf finds the task of an operation that was accepted: in Location or X-Task-URI, whole or only the path, or in the
// body. Of a Location on another host only the path is used, on our own.
func taskOf(a *answer) (string, error) {
	var inBody task
	_ = json.Unmarshal(a.body, &inBody) // it may be empty
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

// await waits until a task is over. seen, if not nil, is called with every sight of it. A task that gave up is a TaskError.
// With a TimeoutError and with errTaskLost it is not known how it ended, and only the resource itself tells.
func (c *Client) await(ctx context.Context, uri string, deadline time.Time, seen func(task)) error {
	start, waiting := time.Now(), c.pace()
	var adriftSince time.Time
	for {
		if err := sleep(ctx, waiting.next()); err != nil {
			return err
		}
		var now task
		err := c.get(ctx, uri, nil, &now)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case IsNotFound(err):
			return fmt.Errorf("%s: %w", uri, errTaskLost)
		case err != nil && !isTransient(err):
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
			} else if time.Since(adriftSince) > c.cfg.Patience {
				return fmt.Errorf("%s is %s: %w", uri, now.State, errTaskLost)
			}
		}
		if time.Now().After(deadline) {
			return &TimeoutError{Doing: "OneView's task " + uri, After: time.Since(start)}
		}
	}
}

// outcome tells whether a task is over, and how it failed.
func (t task) outcome(uri string) (over bool, failure error) {
	switch t.State.means() {
	case finished:
		return true, nil
	case gaveUp:
		return true, &TaskError{
			Name: t.Name, State: t.State, Status: t.Status, Problems: t.Errors, TaskURI: uri, ResourceURI: t.Resource.URI,
		}
	case atWork, adrift:
	}
	return false, nil
}
