"""Kueue's `Configuration` file: fields with their defaults, and how a file becomes them."""
