"""Objects as `meta.k8s.io/v1` Tables: the columns that `kubectl get` prints, computed on the server."""

from pilotage.sandbox.http.tables.render import render_table

__all__ = ["render_table"]
