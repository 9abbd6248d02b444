terraform import metal_oneview_profile.web blade-1
terraform import metal_oneview_profile.web /rest/server-profiles/9d0e6aaf-11cb-4d11-80a8-6c506e9f9f52
