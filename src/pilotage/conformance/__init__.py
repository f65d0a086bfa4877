"""Recorded decisions of the real kube-scheduler, and our answers to the same problems."""
