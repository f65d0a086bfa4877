"""Traces of clusters: the format, and what makes and changes them."""
