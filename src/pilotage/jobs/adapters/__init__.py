"""What queueing asks of the things that people run, and does to them: one file per kind, pure functions."""
