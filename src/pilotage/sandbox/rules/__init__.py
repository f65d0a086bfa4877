"""What an API server does to objects: defaults, admission, validation, patches."""
