import {
  to = metal_oneview_profile.web
  id = "blade-1"
}
