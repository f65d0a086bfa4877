"""Capacity: what still fits, how many nodes are needed, which nodes can go."""
