// Package metrics exports what a watch sees to Prometheus. A Collector is a display of package watch; a Server answers a scrape. No label
// grows without bound.
package metrics

// Kind is the type of a metric.
type Kind string

// The kinds.
const (
	gauge     Kind = "gauge"
	counter   Kind = "counter"
	histogram Kind = "histogram"
)

// Family describes a metric.
type Family struct {
	Name   string
	Kind   Kind
	Labels []string
	Help   string
}

// The metrics. While Ironic does not answer, those of the second group are missing.
var (
	up       = Family{"metal_up", gauge, nil, "1 if Ironic answered the last list of nodes, otherwise 0."}
	listed   = Family{"metal_last_list_timestamp_seconds", gauge, nil, "When Ironic last answered with a list of nodes, as Unix time."}
	troubles = Family{"metal_list_errors_total", counter, nil, "Lists of nodes that Ironic did not answer."}
	took     = Family{
		"metal_operation_duration_seconds", histogram,
		[]string{"operation"},
		"How long operations took that have ended without a failure. Those that began before the watch do not count.",
	}
	failures = Family{"metal_operations_failed_total", counter, []string{"step", "reason"}, "Operations that have failed, by the step " +
		"that Ironic names, else by the operation or the fault, and by the reason; else unknown."}

	machines = Family{"metal_machines", gauge, []string{"state", "resource_class", "conductor_group"}, "Machines in each provision state."}
	failed   = Family{
		"metal_machines_failed", gauge,
		[]string{"resource_class", "conductor_group", "reason"},
		"Machines whose last operation has failed, and those with a fault, by the reason; else unknown. Reason none is always 0.",
	}
	health = Family{"metal_machine_health", gauge, []string{"resource_class", "conductor_group", "health"}, "Machines by the health that " +
		"their BMC reports, if Ironic tells it."}
	longest = Family{
		"metal_longest_in_state_seconds", gauge,
		[]string{"state"},
		"How long the machine that has been in this state longest is in it. Only states with an operation in progress, and ready check.",
	}
	used    = Family{"metal_slots_used", gauge, []string{"scope"}, "Machines of the site that take a slot of the provisioning limit."}
	most    = Family{"metal_slots_limit", gauge, nil, "Slots of each scope, as --max-concurrent says. Missing if it is 0."}
	frozen  = Family{"metal_site_frozen", gauge, nil, "1 if metal freeze has frozen the site, otherwise 0."}
	waiting = Family{"metal_machines_waiting", gauge, []string{"scope"}, "Machines that wait for a slot, at least: those of whose lock " +
		"records the user may list. Missing if that is none, and others may wait."}
	oldest = Family{"metal_oldest_wait_seconds", gauge, []string{"scope"}, "How long the machine that has waited longest for a slot " +
		"waits. Missing with metal_machines_waiting."}
)

// Families returns all metrics, in the order of the documentation.
func Families() []Family {
	return []Family{up, listed, troubles, machines, failed, health, longest, took, failures, used, most, waiting, oldest, frozen}
}
