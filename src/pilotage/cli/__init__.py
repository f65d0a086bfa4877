"""The commands that people type: one file per command, results on stdout, talk and errors on stderr."""
