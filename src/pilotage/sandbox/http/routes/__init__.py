"""The HTTP surface: which path and method leads to which verb, and what each answers."""
