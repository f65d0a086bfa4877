"""An embedded Kubernetes cluster: an API server in memory with simulated nodes, for laptops, tests and benchmarks.

storage     the versioned store and its journal
kinds       which objects there are
rules       what an API server does to them
operations  the verbs on them; `api` is the front door
http        the HTTP dialect, and the same without sockets
life        simulated kubelets and controllers
embedded    all of it put together
"""
