package fakebmc

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

type task struct {
	id, name string
	bmc      *BMC

	mu           sync.Mutex
	begun, ended time.Time // ended is zero while the task runs
}

const (
	tasksPath  = root + "/TaskService/Tasks"
	updatePath = root + "/UpdateService"
)

// begin makes a task of the machine.
func (c *call) begin(name string) *task {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sequence++
	t := &task{id: fmt.Sprint(c.sequence), name: name, bmc: c.bmc, begun: time.Now()}
	c.tasks = append(c.tasks, t)
	return t
}

func (t *task) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = time.Now()
}

// accepted is the answer to a request that began a task.
func (t *task) accepted() reply {
	return reply{status: http.StatusAccepted, body: t.document(), header: map[string]string{"Location": t.monitor(), "Retry-After": "1"}}
}

func (t *task) path() string { return tasksPath + "/" + t.id }

func (t *task) monitor() string { return root + "/TaskService/TaskMonitors/" + t.id }

func (t *task) running() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended.IsZero()
}

func (t *task) document() object {
	doc := document(t.path(), "Task.v1_4_3", t.name, object{
		"TaskState": "Running", "TaskStatus": "OK", "PercentComplete": 50, "StartTime": t.begun.UTC().Format(time.RFC3339),
		"TaskMonitor": t.monitor(), "Messages": []object{},
	})
	if !t.running() {
		doc["TaskState"], doc["PercentComplete"], doc["EndTime"] = "Completed", 100, t.ended.UTC().Format(time.RFC3339)
		doc["Messages"] = []object{success()}
	}
	return doc
}

// ownTasks returns the tasks of the client's machines.
func ownTasks(c *call) []*task {
	c.mu.Lock()
	defer c.mu.Unlock()
	var own []*task
	for _, t := range c.tasks {
		if slices.Contains(c.allowed, t.bmc) {
			own = append(own, t)
		}
	}
	return own
}

// taskNamed returns the task in the path; nil if there is none.
func taskNamed(c *call) *task {
	for _, t := range ownTasks(c) {
		if t.id == c.name {
			return t
		}
	}
	return nil
}

func taskExists(c *call) bool { return taskNamed(c) != nil }

func taskDocument(c *call) object { return taskNamed(c).document() }

// taskStatus is 202 while the task runs. For a task monitor, DSP0266 demands it; several BMCs do the same for the task.
func taskStatus(c *call) int {
	if taskNamed(c).running() {
		return http.StatusAccepted
	}
	return http.StatusOK
}

// The components with firmware.
const (
	componentBMC  = "BMC"
	componentBIOS = "BIOS"
	componentNIC  = "NIC.1"
)

// firmwarePaths lists the components of the client's machines.
func firmwarePaths(c *call) []string {
	var paths []string
	for _, b := range c.allowed {
		for _, component := range []string{componentBMC, componentBIOS, componentNIC} {
			paths = append(paths, updatePath+"/FirmwareInventory/"+b.config.Name+"-"+component)
		}
	}
	return paths
}

// component finds the component with a path in the inventory.
func (c *call) component(uri string) (*BMC, string) {
	name, found := strings.CutPrefix(uri, updatePath+"/FirmwareInventory/")
	for _, b := range c.allowed {
		component, ours := strings.CutPrefix(name, b.config.Name+"-")
		b.mu.Lock()
		known := b.firmware[component] != ""
		b.mu.Unlock()
		if found && ours && known {
			return b, component
		}
	}
	return nil, ""
}

func componentExists(c *call) bool {
	b, _ := c.component(c.path)
	return b != nil
}

func componentDocument(c *call) object {
	b, component := c.component(c.path)
	b.mu.Lock()
	defer b.mu.Unlock()
	return document(c.path, "SoftwareInventory.v1_4_0", component, object{
		"Version": b.firmware[component], "Updateable": true, "Status": healthy(), "Manufacturer": b.config.Manufacturer,
		"SoftwareId": component,
	})
}

// simpleUpdate answers the action UpdateService.SimpleUpdate. The name of the image is COMPONENT-VERSION and an extension, such as
// bmc-2.10.bin. A target is a component, or a machine.
func simpleUpdate(c *call) (reply, *fault) {
	image := c.text("ImageURI")
	if image == "" {
		return reply{}, missingParameter("ImageURI")
	}
	file := path.Base(image)
	name, version, found := strings.Cut(strings.TrimSuffix(file, path.Ext(file)), "-")
	components := map[string]string{"bmc": componentBMC, "bios": componentBIOS, "nic": componentNIC}
	component := components[strings.ToLower(name)]
	if targets, _ := c.body["Targets"].([]any); len(targets) > 0 {
		target, _ := targets[0].(string)
		if at := slices.IndexFunc(c.allowed, func(b *BMC) bool { return b.Path() == target }); at >= 0 {
			c.bmc = c.allowed[at]
		} else if c.bmc, component = c.component(target); c.bmc == nil {
			return reply{}, badProperty("Targets", target)
		}
	} else if len(c.allowed) == 1 {
		c.bmc = c.allowed[0]
	} else {
		return reply{}, missingParameter("Targets")
	}
	if !found || component == "" {
		return reply{}, badProperty("ImageURI", image)
	}
	t, b := c.begin("Update of "+component), c.bmc
	time.AfterFunc(b.config.UpdateTime, func() { b.update(component, version, t) })
	return t.accepted(), nil
}

// update ends a firmware update. The BMC restarts with its new firmware; that of other components works from the next boot on.
func (b *BMC) update(component, version string, t *task) {
	b.mu.Lock()
	change := func() {
		b.firmware[component] = version
		b.note(Updated, component+" "+version)
	}
	if component != componentBMC {
		b.staged = append(b.staged, change)
	} else {
		change()
	}
	b.mu.Unlock()
	t.end()
	if component == componentBMC {
		b.Restart()
	}
}
