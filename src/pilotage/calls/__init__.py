"""Asynchronous API calls: the only way in which the scheduler writes to the API server."""
