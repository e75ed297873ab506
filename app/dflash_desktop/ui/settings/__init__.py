"""The settings page, the log, the report, and where the data lies."""
