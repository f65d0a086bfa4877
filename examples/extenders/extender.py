"""An extender on one page: keeps pods off nodes that are labelled `maintenance`, and prefers nodes that take many pods.

    python examples/extenders/extender.py 8888
    pilotage sandbox --config examples/extenders/scheduler.yaml

Whole nodes are sent (`nodeCacheCapable` is not set). Filter answers with the nodes to keep and a reason for each of the
others, prioritize with 0 to 10 points for each node.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


def filter_nodes(nodes: list) -> dict:
    closed = {node["metadata"]["name"] for node in nodes if "maintenance" in node["metadata"].get("labels", {})}
    kept = [node for node in nodes if node["metadata"]["name"] not in closed]
    return {"nodes": {"items": kept}, "failedNodes": {name: "node is under maintenance" for name in sorted(closed)}}


def prioritize(nodes: list) -> list:
    room = {node["metadata"]["name"]: int(node["status"]["allocatable"].get("pods", 0)) for node in nodes}
    most = max(room.values(), default=0) or 1
    return [{"host": name, "score": 10 * pods // most} for name, pods in room.items()]


class Extender(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        nodes = asked["Nodes"]["items"]
        answer = filter_nodes(nodes) if self.path.endswith("/filter") else prioritize(nodes)
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", int(sys.argv[1])), Extender).serve_forever()
