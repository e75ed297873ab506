"""What every room may use: paths, errors, logging. Imports nothing of ours."""
