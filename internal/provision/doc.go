// Package provision contains what the provider knows about machines: their provision states, the walk through these states,
// deploying, undeploying and restarting, and the notes that the provider keeps on a node. It does not depend on Terraform.
//
// # Requests
//
// The tables list the requests that a resource sends during an apply or a destroy, and why. "own" requests are sent for one
// resource. A "shared" request answers all resources that need it at that time. "lock" requests belong to the record by which
// runs share the provisioning limit. `make bench` counts them.
//
// Every process and every wait:
//
//	shared  GET /v1                              first use: negotiates the microversion
//	own     POST, PATCH, DELETE of a test node   first change on a server that may have the parent_node defect
//	shared  GET /v1/nodes?fields=...             poll of all waiting machines; counts the operations in progress of a round
//	own     GET /v1/nodes/{id}                   poll of one machine while only a few wait
//	shared  GET /v1/allocations                  poll of all waiting allocations
//	own     GET /v1/allocations/{id}             poll of one allocation while only a few wait
//	lock    POST /v1/chassis                     takes the lock of a round of admissions
//	lock    GET /v1/chassis/{id}                 reads who holds the lock, if another run does
//	lock    DELETE /v1/chassis/{id}              releases the lock
//	lock    the same of /v1/allocations          in place of a chassis, if the user may not create one
//
// Host, create:
//
//	shared  GET /v1/nodes?fields=..., GET /v1/ports   name, BMC or MAC address of another node (catalog)
//	own     POST /v1/nodes                            creates the node
//	own     PATCH /v1/nodes/{id}, GET /v1/nodes/{id}  settings that Ironic refuses at creation; the GET if extra was edited
//	own     PUT or DELETE .../traits/{trait}          each trait
//	own     PUT .../maintenance                       maintenance
//	own     POST /v1/portgroups, /v1/ports            each port group, each port
//	own     PUT .../states/provision                  each verb of the walk: manage, inspect, provide
//	own     GET /v1/nodes/{id}                        the read before a verb, if no list of a round serves; the inspection's result
//	own     PUT .../states/boot_mode, secure_boot     boot_mode, secure_boot; then a poll and a GET of the node
//	own     GET .../bios, .../firmware                bios_settings and firmware: before the steps, and afterwards
//	own     PUT .../states/raid                       the volumes of raid
//	own     PUT .../states/power                      power_state, or a power state that Ironic does not know yet
//	own     PATCH /v1/nodes/{id}                      writes into the mark of creation that it is finished
//
// A host that takes over a discovered node sends, instead of the POST, a GET and the two PATCH requests of the claim.
//
// Host, update:
//
//	own     GET /v1/nodes/{id}                   the record, and whether the node still is as planned
//	own     PATCH /v1/nodes/{id}                 changed settings; around it PUT and DELETE .../maintenance for interfaces of a deployed node
//	own     GET /v1/ports/detail?node={id}       ports to compare, if the configuration has any
//	own     GET /v1/portgroups/detail?node={id}  likewise the port groups
//	own     POST, PATCH, DELETE /v1/ports        each changed port; around them PUT and DELETE .../maintenance unless the node is manageable
//	own     POST, PATCH, DELETE /v1/portgroups   each changed port group
//	own     GET .../inventory                    before an inspection: is there an inventory already
//	own     PATCH, GET /v1/nodes/{id}            notes an inspection that inspect_triggers request, if no setting changes
//	own     PUT .../traits, .../states/...       as for create
//	own     GET .../bios, .../firmware           as for create; the plan of a changed setting reads them, too
//
// Host, delete:
//
//	own     GET /v1/nodes/{id}                   the read before the deletion: is it deployed or reserved
//	own     PUT .../states/provision             ends a state from which Ironic deletes no node
//	own     DELETE /v1/nodes/{id}                deletes the node with its ports
//
// Allocation, create and delete:
//
//	own     POST /v1/allocations                 creates the allocation
//	own     PATCH /v1/allocations/{id}           writes into the mark of creation that it is finished
//	shared  GET /v1/allocations                  allocation without a name: those that killed runs have left
//	shared  GET /v1/nodes?fields=...             require; failed allocation: counts why no node matched; wait_for_capacity: once a poll interval
//	own     GET /v1/nodes/{id}/inventory         require: nodes whose properties do not tell, each once a run, until ten fit
//	own     GET /v1/nodes/{id}                   the read before the deletion: is something deployed on the node
//	own     DELETE /v1/allocations/{id}          failed or lost allocation; delete
//
// Allocation, update:
//
//	own     PATCH, GET /v1/allocations/{id}      changed name or extra; the record
//	own     PATCH /v1/allocations/{id}           removes the mark of an earlier run
//
// Group of allocations, create, update and delete, besides the requests of its allocations:
//
//	lock    POST, GET, DELETE /v1/chassis/{id}   groups of a class reserve one after the other
//	own     GET /v1/allocations                  members that exist: those of a killed run
//	shared  GET /v1/nodes?fields=...             free nodes, once before the lock and once under it; all fields for spread_by extra.* or chassis
//	own     GET /v1/allocations/{id}             failure: whether another run has taken over the member that is released
//	own     GET /v1/nodes/{id}                   a member that is taken over, or leaves the group: what is on its node
//
// Deployment, create:
//
//	own     GET /v1/nodes/{id}                   the record: reservation, state, what it runs
//	own     PATCH /v1/nodes/{id}                 reserves the node, if there is no allocation
//	own     GET /v1/allocations/{id}             its traits, if an earlier deployment has changed them
//	own     PATCH /v1/nodes/{id}                 instance_info and the marker
//	own     GET, POST .../vifs, GET /v1/ports    vifs: what is attached, each VIF, and the node's ports if it names one
//	own     PUT .../states/provision             active, or adopt
//	own     GET /v1/nodes/{id}                   the read before the verb, if no list of a round serves
//	own     PUT .../states/power                 power_state
//	own     PATCH /v1/nodes/{id}                 protected
//	own     PATCH /v1/nodes/{id}                 writes into the mark that the creation is finished; its answer has the image
//
// Deployment, update: as create, with the verb rebuild and without a reservation. A changed vifs sends DELETE .../vifs/{id}, too; a
// refresh of a deployment with vifs sends a GET .../vifs. A live ISO may be attached instead:
//
//	own     DELETE, POST .../vmedia              detaches the old ISO, attaches the new one
//	own     PUT .../management/boot_device       boots from it
//	own     GET /v1/nodes/{id}                   after each of them: last_error and the lock
//	own     PATCH /v1/nodes/{id}                 records the new ISO
//	own     PUT .../states/power                 restarts the machine
//
// Deployment with rescue, when it is set, changed or removed:
//
//	own     PUT .../states/provision             rescue, unrescue
//	own     GET /v1/nodes/{id}                   the read before the verb, if no list of a round serves
//
// Deployment, delete:
//
//	own     GET /v1/nodes/{id}                   the record: is it still the deployed instance
//	shared  GET /v1/allocations                  the allocation to create again
//	own     PATCH /v1/nodes/{id}                 notes that allocation on the node
//	own     PUT .../states/provision             deleted; manage after a failed adoption
//	own     GET, DELETE .../vifs                 vifs of a node that was never deployed; otherwise Ironic detaches them
//	own     POST /v1/allocations                 creates the allocation again
//	own     PATCH /v1/nodes/{id}                 removes the provider's notes from the node
//	own     PATCH /v1/nodes/{id}                 counts a failure, or resets the count after a success
//
// Action:
//
//	own     GET /v1/nodes/{id}                   the record, and the read before the operation
//	own     PUT .../states/provision             clean, service, inspect; manage and provide around an inspection; abort, unhold
//	own     PUT .../states/power                 changes of power
//	own     GET /v1/runbooks/{id}                whether a runbook erases disks
//	own     DELETE, POST .../vmedia              virtual media; after each of them a GET of the node
//	own     PUT .../management/inject_nmi        NMI
//
// List of hosts, allocations or deployments (terraform query):
//
//	own     GET /v1/nodes?fields=..., /v1/allocations   a page of up to 1000; with resources all fields (detail=true)
//	own     GET /v1/ports/detail?node={id}              ports of the first two hosts, if resources are included
//	shared  GET /v1/ports/detail                        ports of all others; likewise port groups, and nodes of allocations
//
// Taking over what a killed run has begun to create sends POST and DELETE /v1/chassis, a GET and a PATCH of the object.
//
// With on_failure = "quarantine", a deployment adds:
//
//	own     GET /v1/allocations/{id}             create: the name of the allocation
//	shared  GET /v1/nodes?retired=True           create: on which nodes it has failed
//	own     PATCH /v1/nodes/{id}                 failed: retires the node and notes why
//	own     PUT .../states/provision             failed: deleted; then a PATCH that removes the mark
//
// A lost answer adds one GET of the object that the request was about. A failed operation adds a GET of .../history if
// last_error is empty, and a failed deployment also if last_error names no step.
package provision
