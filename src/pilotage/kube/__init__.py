"""Real clusters: how to find and reach an API server, call it, and keep up with its objects."""
