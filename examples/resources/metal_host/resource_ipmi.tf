variable "bmc_password" {
  type      = string
  ephemeral = true
}

resource "metal_host" "rack2_02" {
  name = "rack2-02"
  bmc = {
    address             = "ipmi://192.0.2.12"
    username            = "terraform"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  hardware_interfaces = { boot = "ipxe", deploy = "direct" }
  driver_info = {
    deploy_kernel  = "http://images.example.com/ipa.kernel"
    deploy_ramdisk = "http://images.example.com/ipa.initramfs"
  }
  ports = { "52:54:00:02:00:03" = {} }
}
