"""Answers `GET /watcher` as a load watcher does, for the nodes of `examples/plugins/load_aware.yaml`.

python examples/load_watcher.py [PORT]
"""

from __future__ import annotations

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

CPU = {"idle": 5, "warm": 30, "hot": 90}
"""Percent in use."""


def answer() -> dict[str, object]:
    now = int(time.time())
    nodes = {
        name: {
            "metrics": [
                {"name": "host.cpu.utilisation", "type": "cpu", "rollup": "AVG", "value": used},
                {"name": "host.cpu.utilisation", "type": "cpu", "rollup": "STD", "value": 5},
            ]
        }
        for name, used in CPU.items()
    }
    window = {"duration": "15m", "start": now - 900, "end": now}
    return {"timestamp": now, "window": window, "source": "example", "data": nodes}


class Watcher(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_known = self.path == "/watcher"
        body = json.dumps(answer()).encode() if is_known else b""
        self.send_response(200 if is_known else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 2020), Watcher).serve_forever()
