# By its name: takes over all machines that were given their names under it.
terraform import metal_discovery_import.rack12 rack12
