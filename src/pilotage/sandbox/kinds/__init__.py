"""Which kinds of objects there are, built in or defined, and the fields that they have."""
