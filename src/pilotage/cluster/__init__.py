"""What we believe about the cluster: nodes as columns, pods (assumed and confirmed), pod classes, all other objects.

Synchronous and without I/O. The scheduler loop is its only writer.
"""
