"""The scheduler as a service: one process from its start to an orderly end, and what operators ask it over HTTPS."""
