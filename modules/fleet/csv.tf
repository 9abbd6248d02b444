# Reads the CSV. Spreadsheets write a byte order mark, white space, empty lines and TRUE.
locals {
  columns = ["bmc_address", "bmc_username", "bmc_password_key", "bmc_password_version", "driver", "macs", "hardware", "resource_class", "traits",
  "role", "hostname", "address", "description", "target_state", "maintenance", "retired", "protected"]

  text    = trimprefix(var.csv == null ? "" : var.csv, "\ufeff")
  header  = [for cell in split(",", split("\n", local.text)[0]) : trim(cell, "\" \t\r")]
  numbers = [for i, line in split("\n", local.text) : i + 1 if trimspace(line) != ""]
  records = [ # cells without white space around them, and without the empty ones
    for i, record in try(csvdecode(local.text), []) : {
      line  = try(local.numbers[i + 1], i + 2) # a cell with a line break shifts it
      cells = { for column, cell in record : trimspace(column) => trimspace(cell) if trimspace(cell) != "" }
    }
  ]
  lines = { for record in local.records : record.cells.name => record... if can(record.cells.name) }

  # What is wrong with the CSV, without values: a cell in the wrong column may be a password. A validation of the variable csv itself would print the whole text with each message.
  unknown_columns = [for column in local.header : column if !contains(concat(["name", ""], local.columns), column) && !can(regex("^extra\\..", column))]
  ragged_lines = [
    for i, line in split("\n", local.text) : i + 1
    if trimspace(line) != "" && !strcontains(line, "\"") && length(split(",", line)) != length(local.header)
  ]
  header_faults = compact([
    contains(local.header, "name") ? "" : "line 1 must name the columns, with commas between them, and \"name\" must be one of them. Write such a line before the first machine. Its present content is not shown: it may have passwords.",
    length(local.header) == length(distinct(local.header)) ? "" : "line 1: two columns have the same name, or none: ${join(", ", [for name in distinct(local.header) : name if length([for column in local.header : 1 if column == name]) > 1])}",
    length(local.unknown_columns) == 0 ? "" : "line 1: unknown columns: ${join(", ", local.unknown_columns)}. The columns are name, ${join(", ", local.columns)}, and extra.KEY for your own data.",
  ])
  line_faults = compact(concat(
    [
      can(csvdecode(local.text)) ? "" : length(local.ragged_lines) == 0 ? "this is no CSV. A quotation mark may be missing." :
      "these lines have more or fewer cells than line 1: ${join(", ", local.ragged_lines)}.",
      can(csvdecode(local.text)) && length(local.records) == 0 ? "no machine follows line 1. If there are to be none, use csv = null." : "",
    ],
    [for record in local.records : can(record.cells.name) || length(record.cells) == 0 ? "" : "line ${record.line}: name is empty."],
    [for name, lines in local.lines : length(lines) == 1 ? "" : "lines ${join(" and ", lines[*].line)}: both are ${name}."],
    flatten([
      for record in local.records : [
        for column in ["maintenance", "retired", "protected"] : contains(["", "true", "false"], lower(lookup(record.cells, column, ""))) ? "" :
        "line ${record.line}: ${column} must be TRUE, FALSE or empty."
      ]
    ]),
  ))
  csv_faults = var.csv == null ? [] : length(local.header_faults) > 0 ? [local.header_faults[0]] : local.line_faults
}
