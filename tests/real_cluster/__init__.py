"""The scheduler as a process of its own against API servers as processes of their own: the real one and the sandbox.

Every test runs against both. A difference between the two is a bug of the sandbox.
"""
