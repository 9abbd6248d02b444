package host_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
)

// What a plan of a host does and says. One row: what Terraform has of the host | what is configured | the steps, each with its cost | the
// notices. Without words of its own, a host is manageable, managed, inspected and off, and was applied with target_state = "manageable".
const plans = `
# A new host says in its own words what becomes of it.
new                                    |                                          | enroll, write, walk to manageable                                         |
new                                    | target_state=enroll                      | enroll, write                                                             |
new                                    | target_state=available                   | enroll, write, walk to available: clean                                   | New host is cleaned
new                                    | target_state=available automated_clean=false | enroll, write, walk to available                                      |
new                                    | target_state=available retired           | enroll, leave pool, write, walk to manageable                             |
new                                    | target_state=available inspect power_state=on | enroll, write, inspect: restart, walk to available: clean, switch power on: restart | New host is cleaned
new                                    | target_state=? inspect=?                 | enroll, write, inspect: restart, walk to available: clean                 | New host is cleaned
new                                    | target_state=manageable boot_mode=uefi   | enroll, write, set boot: restart, walk to manageable                      |
new                                    | target_state=manageable hardware=raid!,bios | enroll, write, configure raid bios_settings: wipe, walk to manageable  | All RAID volumes are deleted
new                                    | target_state=enroll hardware=bios        | enroll, write                                                             |
new                                    | no-driver target_state=available         |                                                                           | !No BMC and no driver
new                                    | no-bmc target_state=available            | enroll, write                                                             | Host without BMC
new                                    | no-bmc target_state=enroll               | enroll, write                                                             |
new                                    | power_control target_state=available     | enroll, write, walk to available: clean                                   | New host is cleaned
new in-use                             | target_state=available                   | enroll, write, walk to available: clean                                   | Server hardware is in use
new network=ipxe                       | target_state=available                   | enroll, write, walk to available: clean                                   | New host is cleaned, Network boot needs a port
new discovered=r1                      | target_state=available                   | enroll, write, walk to available: clean                                   | Discovered node is taken over
new settled                            | target_state=available                   | enroll, write, walk to available                                          |
new                                    | disable_power_off power_state=off        | enroll, write, walk to manageable, switch power off: restart              | !Power-off is disabled

# A record that is made anew touches no machine. The plan after that prepares it.
lost=available                         | target_state=available                   | enroll, write, verify to manageable                                       | Lost record is made anew
lost=available                         | target_state=available automated_clean=false| enroll, write, verify to manageable                                       | Lost record is made anew
lost=manageable                        | inspect power_state=off boot_mode=uefi hardware=raid!,bios| enroll, write, verify to manageable                                       | Lost record is made anew
lost=manageable hardware=bios          | hardware=bios target_state=?             | enroll, write, verify to manageable                                       | Lost record is made anew
lost=enroll                            | target_state=enroll                      | enroll, write                                                             | Lost record is made anew
lost=available                         | target_state=available retired           | enroll, leave pool, write, verify to manageable                           | Lost record is made anew
anew                                   | target_state=available                   | write, walk to available: clean                                           | Cleaning erases data

# A cleaning runbook is checked when it is set, when the traits change, and when the host is cleaned.
new runbook=erases                     | cleaning_runbook=CUSTOM_WIPE             | enroll, write, walk to manageable                                         | Cleaning runbook may have no effect
new runbook=known                      | cleaning_runbook=CUSTOM_WIPE             | enroll, write, walk to manageable                                         |
new runbook=open                       | cleaning_runbook=CUSTOM_WIPE             | enroll, write, walk to manageable                                         | Cleaning runbook may have no effect
new                                    | cleaning_runbook=?                       | enroll, write, walk to manageable                                         |
new runbook=named                      | cleaning_runbook=CUSTOM_WIPE             | enroll, write, walk to manageable                                         | Cleaning runbook may have no effect
new runbook=missing                    | cleaning_runbook=CUSTOM_WIPE             | enroll, write, walk to manageable                                         | !Cleaning runbook does not exist
new runbook=hidden                     | cleaning_runbook=CUSTOM_WIPE             | enroll, write, walk to manageable                                         | Cleaning runbook is not checked, Cleaning runbook may have no effect
runbook=erases                         | cleaning_runbook=CUSTOM_WIPE description | write                                                                     | Cleaning runbook may have no effect
runbook=misfit                         | cleaning_runbook=CUSTOM_WIPE description | write                                                                     | !Cleaning runbook does not fit the host, Cleaning runbook may have no effect
runbook=without-traits                 | cleaning_runbook=CUSTOM_WIPE description | write                                                                     | !Cleaning runbook does not fit the host, Cleaning runbook may have no effect
runbook=for-unknown-traits             | cleaning_runbook=CUSTOM_WIPE description | write                                                                     | Cleaning runbook may have no effect
runbook=deploys                        | cleaning_runbook=CUSTOM_WIPE description | write                                                                     | !Cleaning runbook has steps that do not clean, Cleaning runbook may have no effect
runbook=keeps                          | cleaning_runbook=CUSTOM_WIPE description | write                                                                     | Cleaning runbook erases nothing, Cleaning runbook may have no effect
runbook=foreign                        | cleaning_runbook=CUSTOM_WIPE description | write                                                                     | Cleaning runbook belongs to others, Cleaning runbook may have no effect
runbook=old                            | cleaning_runbook=CUSTOM_WIPE description | write                                                                     | Ironic ignores the cleaning runbook
cleaning_runbook=CUSTOM_WIPE runbook=missing | description                        | write                                                                     |
cleaning_runbook=CUSTOM_WIPE runbook=misfit | traits description                  | write                                                                     | !Cleaning runbook does not fit the host
cleaning_runbook=CUSTOM_WIPE runbook=missing | target_state=available              | write, walk to available: clean                                           | Cleaning erases data, !Cleaning runbook does not exist

# The console is enabled and disabled in every state. It is closed before its driver or interface changes.
new console-now=:ipmitool-socat        | target_state=manageable console=enabled  | enroll, write, set console, walk to manageable                            |
new console-now=:ipmitool-socat        | target_state=manageable console=disabled | enroll, write, walk to manageable                                         |
new console-now=enabled:ipmitool-socat | target_state=enroll console=disabled     | enroll, write, set console                                                |
new console-now=:no-console            | target_state=manageable console=enabled  |                                                                           | !Host has no console interface
new console-now=:redfish-graphical     | target_state=manageable console=enabled  |                                                                           | !Graphical console does not last
new console-now=:redfish-graphical     | target_state=manageable console=disabled | enroll, write, walk to manageable                                         |
new                                    | target_state=manageable no-bmc console=enabled |                                                                     | !Console needs a BMC
new                                    | target_state=manageable power_control console=enabled |                                                              | !Console needs a BMC
new                                    | target_state=manageable console=?        | enroll, write, set console, walk to manageable                            |
state=manageable console=disabled      | console=enabled description              | write, set console                                                        |
state=manageable console=enabled       | console=enabled                          |                                                                           |
state=manageable console=enabled       |                                          |                                                                           |
state=manageable console=enabled       | console=disabled description             | write, set console                                                        | Console is disabled
state=manageable console=disabled      | console=? description                    | write, set console                                                        |
state=manageable console-now=enabled:fake | console=enabled description           | write                                                                     |
state=manageable console-now=enabled:fake | console=disabled description          | write, set console                                                        | Console is disabled
state=active reserved=allocation console=disabled | console=enabled description   | write, set console                                                        | Console is enabled
state=active reserved=allocation console=enabled  | console=disabled description  | write, set console                                                        | Console is disabled
state=clean-failed console=disabled    | console=enabled description              | write, set console, walk to manageable                                    |
state=enroll target=enroll console=disabled | console=enabled description         | write, set console                                                        |
state=manageable console=disabled      | console=enabled maintenance              | write, set console                                                        |
state=manageable out-of-service console=disabled | console=enabled description    | write                                                                     |
state=manageable moves console=enabled console-now=enabled:fake | console=enabled | close console, write, set console                                         |
state=manageable out-of-service moves console=enabled console-now=enabled:fake | console=enabled | write                                                                |
state=manageable moves console=enabled console-now=enabled:no-console | console=enabled | write                                                               | !Host has no console interface
state=manageable moves console=enabled console-now=enabled:no-console | console=disabled | close console, write                                               | Console is disabled
state=manageable moves console-now=enabled:fake |                                 | write                                                                     | !Console is enabled
state=manageable moves console-now=:fake |                                        | write                                                                     |
state=manageable no-bmc console=disabled | console=enabled                        |                                                                           | !Console needs a BMC

# Hardware interfaces follow from the BMC address, and the plan does not show them.
state=manageable                       | interfaces                               | write                                                                     |
state=manageable changes=boot:ipxe>redfish-virtual-media | interfaces             | write                                                                     | Hardware interface changes
state=enroll target=enroll changes=boot:ipxe>redfish-virtual-media | interfaces   | write                                                                     | Hardware interface changes
state=manageable                       | driver=idrac                             | write                                                                     |
state=manageable changes=boot:ipxe>idrac-redfish-virtual-media | driver=idrac     | write                                                                     | Hardware interface changes
state=active reserved=allocation       | interfaces                               | write                                                                     |
state=active reserved=allocation changes=boot:ipxe>redfish-virtual-media | interfaces | write                                                                 | Interface of a deployed machine changes
state=active reserved=allocation changes=rescue:no-rescue>agent | interfaces | write                                                                 | Hardware interface changes
state=manageable changes=rescue:no-rescue>agent | interfaces | write |
state=active reserved=allocation       | driver=idrac                             | write                                                                     | Driver of a deployed machine changes
state=active reserved=allocation       | driver=?                                 | write                                                                     |
new changes=boot:ipxe>redfish-virtual-media | target_state=enroll                 | enroll, write                                                             |

# What is as it should be stays.
state=manageable                       | target_state=manageable                  |                                                                           |
state=available target=available       | target_state=available                   |                                                                           |
state=available                        | target_state=manageable description      | write, walk to manageable                                                 |
state=manageable                       | target_state=manageable description      | write                                                                     |
state=enroll target=enroll             | target_state=enroll                      |                                                                           |
state=active target=available reserved=allocation | target_state=available        |                                                                           |
state=active target=available reserved=allocation | target_state=manageable       |                                                                           |

# The way to available cleans.
state=manageable                       | target_state=available                   | write, walk to available: clean                                           | Cleaning erases data
state=manageable                       | target_state=?                           | write, walk to available: clean                                           | Cleaning erases data
state=manageable                       | target_state=available automated_clean=false | write, walk to available                                              |
state=clean-failed target=available    | target_state=available                   | write, walk to available: clean                                           | Cleaning erases data
state=clean-wait target=available coming | target_state=available                  | write, walk to available                                                  |
state=clean-wait target=available      | target_state=available                   | write, walk to available: clean                                           | Cleaning erases data
state=deleting target=available coming | target_state=available                   | write, walk to available                                                  |
state=clean-wait target=available coming | hardware=bios                           | write, configure bios_settings: clean, walk to available: clean           | Hardware change restarts the machine, Cleaning erases data
state=manageable                       | target_state=available automated_clean=? | write, walk to available: clean                                           | Cleaning erases data
state=clean-failed                     | target_state=manageable                  | write, walk to manageable                                                 |
state=manageable                       | target_state=enroll                      |                                                                           | !Node cannot return to enroll
state=manageable                       | target_state=enroll hardware=bios        |                                                                           | !Node cannot return to enroll
state=active class=a reserved=allocation | resource_class=b                       |                                                                           | !Class of a deployed node is fixed
state=active class=a reserved=allocation | resource_class=b hardware=bios on_active=service |                                                             | !Class of a deployed node is fixed
state=manageable class=a               | resource_class=b description             | write                                                                     |
state=manageable network=ipxe          | target_state=available                   | write, walk to available: clean                                           | Cleaning erases data, Network boot needs a port

# A reserved host that another client has moved returns to the pool if an allocation has it.
state=manageable target=available reserved=allocation   | target_state=available  | write, walk to available: clean                                           | Cleaning erases data
state=clean-failed target=available reserved=allocation | target_state=available  | write, walk to available: clean                                           | Cleaning erases data
state=manageable target=available reserved=allocation   | target_state=?          | write, walk to available: clean                                           | Cleaning erases data
state=manageable target=available reserved=instance     | target_state=available  |                                                                           | Reserved host is not in its target state
state=available reserved=allocation                     | target_state=manageable |                                                                           | Reserved host is not in its target state
state=manageable reserved=allocation                    | target_state=manageable |                                                                           |
state=deleting target=available reserved=allocation     | target_state=available  |                                                                           |
state=active target=available reserved=allocation       | target_state=available  |                                                                           |
state=deploy-failed target=available reserved=allocation | target_state=available |                                                                           |
state=manageable target=available reserved=allocation   |                         |                                                                           |

# A machine that was replaced is undeployed and prepared as a new one. A new mainboard changes nothing but addresses.
new                                    | target_state=manageable replaced=machine:1 | enroll, write, walk to manageable                                       |
imported state=active                  | replaced=machine:1 description           | write                                                                     |
state=active replaced=machine:1        | description                              | write                                                                     |
state=active target=available reserved | replaced=mainboard:1 new-bmc             | write                                                                     |
state=active target=available reserved=allocation | replaced=machine:1            | write, replace: wipe, inspect again: restart, walk to available: clean    | Replaced machine is undeployed, Cleaning erases data
state=active target=available reserved=allocation replaced=machine:1 | replaced=machine:2 | write, replace: wipe, inspect again: restart, walk to available: clean | Replaced machine is undeployed, Cleaning erases data
state=active reserved not-inspected    | replaced=machine:1                       | write, replace: wipe, walk to manageable                                  | Replaced machine is undeployed
state=rescue reserved not-inspected    | replaced=machine:1                       | write, replace: wipe, walk to manageable                                  | Replaced machine is undeployed
state=active reserved hardware=bios not-inspected | replaced=machine:1            | write, replace: wipe, configure bios_settings: clean, walk to manageable  | Replaced machine is undeployed, Hardware change restarts the machine
state=available target=available not-inspected | replaced=machine:1               | write, replace, walk to available: clean                                  | Cleaning erases data
state=manageable replaced=machine:1 replacing=machine:1 | description              | write, replace, inspect again: restart, walk to manageable                | Inspection boots the machine
state=available target=available replaced=machine:1 replacing=machine:1,i1 | description | write                                                                            |
state=active reserved replaced=machine:1 replacing=machine:1 | description            | write                                                                     |
state=active reserved executed=machine:2 | replaced=machine:2 description               | write                                                                     |
state=active reserved protected        | replaced=machine:1                       |                                                                           | !Replaced machine cannot be prepared
state=active reserved                  | replaced=machine:1 maintenance           |                                                                           | !Replaced machine cannot be prepared
state=available reserved=allocation    | replaced=machine:1                       |                                                                           | !Replaced machine cannot be prepared
state=active no-bmc                    | replaced=machine:1                       |                                                                           | !Replaced machine cannot be prepared
state=active reserved                  | replaced=?                               |                                                                           | !Value must be known during plan

# Inspection.
state=manageable not-inspected         | target_state=manageable inspect          | write, inspect: restart, walk to manageable                               | Inspection boots the machine
state=manageable                       | target_state=manageable inspect          |                                                                           |
state=inspect-wait not-inspected       | target_state=manageable inspect          | write, inspect, walk to manageable                                        |
state=inspecting target=available not-inspected | target_state=available inspect  | write, inspect, walk to available: clean                                  | Cleaning erases data
state=inspecting triggers=a pending=a  | inspect_triggers=a                       | write, inspect again, walk to manageable                                  |
state=available target=available not-inspected | target_state=available inspect   | write, inspect: restart, walk to available: clean                         | Cleaning erases data
state=manageable triggers=a            | inspect_triggers=b                       | write, inspect again: restart, walk to manageable                         | Inspection boots the machine
state=available target=available triggers=a | inspect_triggers=b                  | write, inspect again: restart, walk to available: clean                   | Cleaning erases data
state=available target=available triggers=a | inspect_triggers=b automated_clean=false | write, inspect again: restart, walk to available                     | Inspection boots the machine
state=manageable triggers=a            | inspect_triggers=?                       | write, inspect again: restart, walk to manageable                         | Inspection boots the machine
state=manageable triggers=a pending=a  | inspect_triggers=a                       | write, inspect again: restart, walk to manageable                         | Inspection boots the machine
state=manageable imported              | inspect_triggers=a description           | write                                                                     |
state=available target=available reserved=allocation triggers=a | inspect_triggers=b |                                                                       | !Host cannot be inspected now
state=available target=available reserved=allocation triggers=a | inspect_triggers=b power_state=on |                                                       | !Host cannot be inspected now
state=active target=available reserved=allocation triggers=a    | inspect_triggers=b |                                                                       | !Host cannot be inspected now
state=enroll target=enroll triggers=a  | inspect_triggers=b                       |                                                                           | !Host cannot be inspected now

# Power.
state=manageable power=off             | power_state=on                           | write, switch power on: restart                                           | Power is switched
state=manageable power=off             | power_state=?                            | write, switch power: restart                                              | Power is switched
state=manageable power=on powers=on    | power_state=on target_state=available    | write, walk to available: clean, keep power on                            | Cleaning erases data
state=active reserved=allocation power=on | power_state=off                       |                                                                           | Deployment controls the power
state=active reserved=allocation power=on powers=off | power_state=off            |                                                                           |
state=available target=available no-power |                                       | write, learn power off: restart                                           | Power is switched
state=available target=available reserved=allocation no-power |                   |                                                                           |
state=available target=available no-power | disable_power_off                     | write, learn power on: restart                                            | Power is switched
state=manageable power=off             | disable_power_off power_state=off        |                                                                           | !Power-off is disabled

# Boot mode.
state=manageable                       | boot_mode=uefi                           | write, set boot: restart                                                  | Machine may restart
state=active reserved=allocation       | boot_mode=uefi                           |                                                                           | Deployed host keeps its boot mode

# BIOS, RAID and firmware.
state=manageable                       | hardware=bios                            | write, configure bios_settings: clean, walk to manageable                 | Hardware change restarts the machine
state=available target=available       | hardware=bios                            | write, configure bios_settings: clean, walk to available: clean           | Host leaves the pool
state=manageable                       | hardware=raid!                           | write, configure raid: wipe, walk to manageable                           | Hardware change restarts the machine, All RAID volumes are deleted
state=manageable hardware=bios         |                                          |                                                                           |
state=manageable configured=bios       |                                          | write, configure bios_settings: clean, walk to manageable                 | Hardware change restarts the machine
state=active reserved=allocation       | hardware=bios                            |                                                                           | Hardware change waits
state=active reserved=allocation configured=bios |                                |                                                                           |
state=active reserved=allocation       | hardware=bios,raid on_active=service     | write, service bios_settings: restart                                     | Deployed machine restarts
state=active reserved=allocation       | hardware=bios on_active=?                | write, service bios_settings: restart                                     | Deployed machine restarts
# A setting whose hardware interface does nothing is refused, also where it waits. Its removal does nothing.
new has=bios:no-bios:redfish           | hardware=bios                            | enroll, write, configure bios_settings: clean, walk to manageable         | !Hardware interface lacks the function
new has=bios:no-bios                   | hardware=bios target_state=enroll        | enroll, write                                                             | !Hardware interface lacks the function
new has=bios:redfish                   | hardware=bios                            | enroll, write, configure bios_settings: clean, walk to manageable         |
state=available target=available has=bios:no-bios | hardware=bios                 | write, configure bios_settings: clean, walk to available: clean           | Host leaves the pool, !Hardware interface lacks the function
state=available target=available configured=bios has=bios:no-bios | hardware=     |                                                                           |
state=available target=available hardware=bios has=bios:no-bios   | hardware=     |                                                                           |
state=manageable hardware=bios has=bios:no-bios |                                 |                                                                           |
state=manageable has=raid:no-raid:agent | hardware=raid                           | write, configure raid: clean, walk to manageable                          | Hardware change restarts the machine, !Hardware interface lacks the function
state=manageable has=firmware:no-firmware | hardware=firmware                     | write, configure firmware: clean, walk to manageable                      | Hardware change restarts the machine, !Hardware interface lacks the function
state=active reserved=allocation has=bios:no-bios | hardware=bios                 |                                                                           | Hardware change waits, !Hardware interface lacks the function
state=active reserved=allocation has=bios:no-bios | hardware=bios on_active=service | write, service bios_settings: restart                                   | Deployed machine restarts, !Hardware interface lacks the function
state=manageable not-inspected has=inspect:no-inspect:agent,redfish | inspect     | write, inspect: restart, walk to manageable                               | Inspection boots the machine, !Hardware interface lacks the function
state=manageable has=inspect:no-inspect | inspect                                 |                                                                           |
state=manageable has=inspect:no-inspect triggers=a | inspect_triggers=b            | write, inspect again: restart, walk to manageable                         | Inspection boots the machine, !Hardware interface lacks the function
state=manageable has=management:noop   | boot_mode=uefi                           | write, set boot: restart                                                  | Machine may restart, !Hardware interface lacks the function
state=manageable has=management:noop   | secure_boot                              | write, set boot: restart                                                  | Machine may restart, !Hardware interface lacks the function
state=manageable has=management:ipmitool | boot_mode=uefi                         | write, set boot: restart                                                  | Machine may restart
state=manageable has=bios:no-bios      | hardware=bios sets=bios:redfish    | write, configure bios_settings: clean, walk to manageable                 | Hardware change restarts the machine
state=manageable has=bios:redfish      | hardware=bios sets=bios:no-bios    | write, configure bios_settings: clean, walk to manageable                 | Hardware change restarts the machine, !Hardware interface lacks the function
state=manageable has=bios:no-bios      | hardware=bios sets=bios:?          | write, configure bios_settings: clean, walk to manageable                 | Hardware change restarts the machine

state=manageable                       | hardware=bios maintenance                |                                                                           | Hardware change waits

# Hardware settings that the machine has lost. Only the mode "plan" sets them again, and only if state and private state say so.
state=manageable hardware=bios hardware_drift=ignore differs=bios  |              |                                                                           |
state=manageable hardware=bios hardware_drift=warn differs=nothing |              |                                                                           |
state=manageable hardware=bios hardware_drift=warn differs=bios |                 |                                                                           | Hardware differs from the configuration
state=manageable hardware=bios hardware_drift=plan differs=bios |                 | write, configure bios_settings: clean, walk to manageable                 | Hardware differs from the configuration, Hardware change restarts the machine
state=available target=available hardware=bios,firmware hardware_drift=plan differs=firmware | | write, configure firmware: clean, walk to available: clean               | Hardware differs from the configuration, Host leaves the pool
state=manageable hardware=bios hardware_drift=plan differs=bios | hardware=        |                                                                           |
state=manageable hardware=raid! hardware_drift=plan differs=raid |                |                                                                           | Hardware differs from the configuration
state=manageable hardware=bios hardware_drift=plan differs=read-only |            |                                                                           | Hardware differs from the configuration
state=manageable hardware=bios hardware_drift=plan differs=gone |                 |                                                                           | Hardware differs from the configuration
state=manageable hardware=bios hardware_drift=plan differs=bios,gone |            |                                                                           | Hardware differs from the configuration
state=manageable hardware=bios hardware_drift=plan came-back=bios |               |                                                                           | Hardware differs from the configuration
state=manageable hardware=bios differs-now=bios | hardware_drift=plan             |                                                                           | Hardware differs from the configuration
state=manageable hardware=bios hardware_drift=warn differs=bios | hardware_drift=plan |                                                                       | Hardware differs from the configuration
state=manageable hardware=bios hardware_drift=plan differs=bios | hardware_drift=? | write, configure bios_settings: clean, walk to manageable                 | Hardware differs from the configuration, Hardware change restarts the machine
state=active reserved=allocation hardware=bios hardware_drift=plan differs=bios | |                                                                           | Hardware differs from the configuration
state=active reserved=allocation hardware=bios hardware_drift=plan differs=bios | on_active=service | write, service bios_settings: restart                  | Hardware differs from the configuration, Deployed machine restarts
state=servicing reserved=allocation hardware=bios hardware_drift=plan differs=bios | on_active=service |                                                       | Hardware differs from the configuration
state=available target=available reserved=allocation hardware=bios hardware_drift=plan differs=bios | |                                                       | Hardware differs from the configuration
state=manageable hardware=bios hardware_drift=plan differs=bios | maintenance     |                                                                           | Hardware differs from the configuration
state=manageable hardware=bios hardware_drift=plan differs=bios out-of-service |  |                                                                           | Hardware differs from the configuration
state=cleaning hardware=bios hardware_drift=plan differs=bios |                   | write, walk to manageable                                                 | Hardware differs from the configuration
no-bmc state=manageable hardware=bios hardware_drift=plan differs=bios |          |                                                                           | Hardware differs from the configuration
state=manageable configured=bios hardware_drift=plan differs=bios |               | write, configure bios_settings: clean, walk to manageable                 | Hardware change restarts the machine

# A machine without a BMC, and one whose BMC becomes known.
state=enroll no-bmc                    | target_state=manageable                  |                                                                           | Host without BMC
state=enroll no-bmc target=enroll      | target_state=enroll                      |                                                                           |
state=enroll no-bmc                    | target_state=available new-bmc           | write, walk to available: clean                                           | Cleaning erases data
state=enroll no-bmc target=enroll      | target_state=enroll new-bmc              | write, verify to manageable                                               |
state=enroll target=enroll unverified  | target_state=enroll                      | write, verify to manageable                                               |
state=enroll no-bmc                    | target_state=manageable power_control    | write, walk to manageable                                                 |

# Retirement and quarantine.
state=available target=available       | retired                                  | leave pool, write, walk to manageable                                     |
state=available target=available reserved=allocation | retired                    |                                                                           | !Reserved host cannot be retired
state=available target=available reserved=allocation | retired boot_mode=uefi     |                                                                           | !Reserved host cannot be retired
state=manageable target=available retired |                                       |                                                                           | Host is retired
state=manageable target=available retired | retired                               |                                                                           |
state=manageable target=available retired | retired=false                         | write, walk to available: clean                                           | Cleaning erases data
state=manageable target=available retired quarantine=broken |                     |                                                                           | Host is in quarantine
state=manageable target=available retired quarantine=broken | retired=false       | write, walk to available: clean                                           | Host leaves its quarantine, Cleaning erases data
state=manageable target=available retired quarantine=broken | retired=?               | write, walk to available: clean                                           | Host leaves its quarantine, Cleaning erases data

# OneView users have the server.
state=manageable in-use                | target_state=available                   | write, walk to available: clean                                           | Server hardware is in use
state=manageable target=available out-of-service | target_state=available         |                                                                           | Host is used by OneView
state=manageable out-of-service        | boot_mode=uefi                           |                                                                           | Host is used by OneView
state=manageable target=available out-of-service | target_state=available maintenance=false | write, walk to available: clean                                | Cleaning erases data
`

func TestDecide_table(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(plans) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, "|")
		if len(cells) == 3 {
			cells = append(cells, "")
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		w, s := tell(t, cells[1], cells[0])
		plan := host.Decide(w, s)
		if does := words(plan); does != cells[2] || said(plan) != cells[3] {
			t.Errorf("%s | %s\n  does %s\n  want %s\n  says %s\n  want %s", cells[0], cells[1], does, cells[2], said(plan), cells[3])
		}
	}
}

// A plan that refuses an inspection says why, and what would help.
func TestDecide_saysWhyAHostCannotBeInspected(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ seen, wish, says string }{
		{"state=enroll target=enroll triggers=a", "inspect_triggers=b target_state=enroll", `has target_state = "enroll"`},
		{"state=enroll no-bmc triggers=a", "inspect_triggers=b", "has no BMC"},
		{"state=available target=available reserved=allocation triggers=a", "inspect_triggers=b", "Destroy its metal_allocation first"},
		{"state=active target=available reserved=allocation triggers=a", "inspect_triggers=b", "Destroy its metal_deployment first"},
	} {
		w, s := tell(t, tt.wish, tt.seen)
		p := host.Decide(w, s)
		last := len(p.Notices) - 1
		if last < 0 || p.Notices[last].Summary != "Host cannot be inspected now" || !strings.Contains(p.Notices[last].Detail, tt.says) {
			t.Errorf("%s | %s: the plan says %+v, want %q", tt.seen, tt.wish, p.Notices, tt.says)
		}
	}
}
