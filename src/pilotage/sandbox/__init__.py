"""The embedded cluster: a versioned store, the Kubernetes HTTP dialect on it, simulated kubelets, small controllers."""
