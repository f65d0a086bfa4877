"""The client side of the Kubernetes API against real sockets, files and processes."""
