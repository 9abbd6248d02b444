package provision

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// explain adds to the error of a failed walk what only the node's history tells: the last error if the node has none, and the deploy step
// that failed if last_error does not name it. Without a history, the step is the last one that a poll has seen.
func (w *walk) explain(ctx context.Context, failed *FailedError) {
	if err := w.learnError(ctx); err != nil {
		w.site.Logger().DebugContext(ctx, "could not read last_error", append(nodeAttributes(w.node), "error", err)...)
	}
	failed.Node = w.node
	deploys := w.goal == GoalDeployed || w.goal == GoalRebuilt
	if deploys {
		failed.Step = stepIn(w.node.LastError, w.deployStep)
	}
	if w.node.LastError != "" && (!deploys || failed.Step != "") {
		return
	}
	event := w.site.lastEvent(ctx, w.node.UUID)
	if w.node.LastError == "" {
		w.node.LastError = event
	}
	if deploys {
		failed.Step, failed.LastStep = stepIn(event, w.deployStep), w.deployStep
	}
}

// lastEvent returns the last error in a node's history, without secrets; empty if there is none or it cannot be read. Ironic 39
// clears last_error when, after a failure, it switches off a machine that is already off.
func (s *Site) lastEvent(ctx context.Context, id string) string {
	var answer struct {
		History []struct {
			Severity string `json:"severity"`
			Type     string `json:"event_type"`
			Event    string `json:"event"`
		} `json:"history"`
	}
	if version, err := s.Microversion(ctx); err != nil || version < ironic.VersionHistory {
		return ""
	}
	if err := s.Request(ctx, http.MethodGet, "nodes/"+id+"/history?detail=true", nil, &answer); err != nil {
		return ""
	}
	for _, event := range slices.Backward(answer.History) {
		if event.Severity == "ERROR" && !strings.HasSuffix(event.Type, "_end") { // _end events only say that the operation was aborted
			return s.Redact(event.Event)
		}
	}
	return ""
}

// How Ironic's errors name a deploy step (reference/ironic.md#failed-deploy-steps).
var (
	stepByName = regexp.MustCompile(`[Dd]eploy step ([\w-]+\.[\w-]+)`)
	stepByDict = regexp.MustCompile(`[Dd]eploy step \{[^}]*\}`)
	dictValue  = regexp.MustCompile(`'(interface|step)': '([\w-]+)'`)
)

// stepIn returns the deploy step that an error of Ironic names, such as "deploy.write_image"; "" if it names none. seen is the last step
// that was in progress.
func stepIn(text, seen string) string {
	if seen != "" && strings.Contains(text, seen) {
		return seen
	}
	if found := stepByName.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	step := map[string]any{}
	for _, pair := range dictValue.FindAllStringSubmatch(stepByDict.FindString(text), -1) {
		step[pair[1]] = pair[2]
	}
	return stepName(step)
}

// stepName returns the name of a step of Ironic; "" if there is none.
func stepName(step map[string]any) string {
	if textOf(step, "interface") == "" || textOf(step, "step") == "" {
		return ""
	}
	return textOf(step, "interface") + "." + textOf(step, "step")
}
