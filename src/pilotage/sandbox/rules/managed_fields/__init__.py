"""Server-side apply: who manages which fields of an object, what is made of it, and conflicts."""
