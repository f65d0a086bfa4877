"""The whole in virtual time on one seed: two replicas, API server, kubelets, controllers, and faults by the dozen.

    python -m tests.simulation --seed 17 --log      replays one seed and prints everything that happened

See docs/contributing/simulation.md.
"""
