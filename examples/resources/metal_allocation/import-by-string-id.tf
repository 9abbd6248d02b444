import {
  to = metal_allocation.db
  id = "db"
}
