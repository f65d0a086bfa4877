"""What moves in the sandbox: simulated kubelets and small controllers."""
