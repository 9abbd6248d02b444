# Reads BareMetalHosts with their Secrets, as manifests or from "kubectl get -o yaml", and hosts of install-config.yaml.
locals {
  documents = flatten([
    for file in local.files : [
      for text in split("\n---", "\n${file(file)}") : try(yamldecode(text).items, [yamldecode(text)]) if trimspace(text) != ""
    ]
  ])

  secrets = {
    for d in local.documents : "${d.metadata.namespace}/${d.metadata.name}" => merge(
      { for key, value in try(d.data, {}) : key => base64decode(value) if contains(["username", "password"], key) }, try(d.stringData, {}),
    ) if try(d.kind, "") == "Secret"
  }
  specs = merge(
    { for d in local.documents : "${d.metadata.namespace}~${d.metadata.name}" => merge(d.spec, {
      state  = try(d.status.provisioning.state, "unknown")
      secret = try(local.secrets["${d.metadata.namespace}/${d.spec.bmc.credentialsName}"], {})
    }) if try(d.kind, "") == "BareMetalHost" && can(d.spec.bmc.address) },
    { for host in flatten([for d in local.documents : try(d.platform.baremetal.hosts, [])]) : host.name => merge(host, {
      state  = "externally provisioned" # the installer has written its system
      secret = host.bmc
    }) },
  )

  # How the operator writes the hints for Ironic.
  hints = {
    deviceName         = ["name", "s== "]
    hctl               = ["hctl", "s== "]
    minSizeGigabytes   = ["size", ">= "]
    model              = ["model", "<in> "]
    rotational         = ["rotational", ""]
    serialNumber       = ["serial", "s== "]
    vendor             = ["vendor", "<in> "]
    wwn                = ["wwn", "s== "]
    wwnVendorExtension = ["wwn_vendor_extension", "s== "]
    wwnWithExtension   = ["wwn_with_extension", "s== "]
  }
  boot_modes = {
    UEFI           = { boot_mode = "uefi" }
    UEFISecureBoot = { boot_mode = "uefi", secure_boot = "true" }
    legacy         = { boot_mode = "bios" }
  }

  hosts = {
    for name, spec in local.specs : name => {
      address      = spec.bmc.address
      username     = try(trimspace(spec.secret.username), null)
      verify_ca    = try(spec.bmc.disableCertificateVerification, false) && can(regex("redfish|virtualmedia", spec.bmc.address)) ? false : null
      macs         = [for mac in [try(spec.bootMACAddress, "")] : lower(mac) if mac != ""]
      capabilities = local.boot_modes[try(spec.bootMode, "UEFI")]
      root_device = try({
        for key, value in spec.rootDeviceHints :
        startswith("${value}", "/dev/disk/by-path/") ? "by_path" : local.hints[key][0] => "${local.hints[key][1]}${value}"
      }, null)
      automated_clean = try(spec.automatedCleaningMode, "metadata") == "disabled" ? false : null
      runs            = contains(["provisioned", "externally provisioned"], spec.state)
      free            = spec.state == "available"
    }
  }
  passwords = { for name, spec in local.specs : name => try(trimspace(spec.secret.password), null) }
}
