"""The kinds of jobs that can be queued besides pods: what differs between them, one file per kind."""
