"""What `kubectl exec` gets from a simulated container: an annotation, what the command would do, or one short line.

    sandbox.pilotage.dev/exec: "ok"              what any command prints; `exec.NAME`: in the container called NAME
    sandbox.pilotage.dev/exec-exit-code: "1"     how it ends then (0 if nothing says so)

Without them the few commands of `life/programs.py` do what they would do there, with the container's environment. Any
other one is not found: what it would do is not known, and a script that believes it worked would be led astray.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pilotage.sandbox.api import Api
from pilotage.sandbox.errors import bad_request
from pilotage.sandbox.http.exchange import RemoteCommand, ServerResponse, error_response
from pilotage.sandbox.http.routes.logs import find_container, written_text
from pilotage.sandbox.life.container_env import container_env
from pilotage.sandbox.life.pod_plan import PREFIX, PlanError, exit_code_in
from pilotage.sandbox.life.programs import run_command

Object = dict[str, Any]

SEPARATOR: Final = "\0"
"""Between the words of a command: what no word of a command can hold."""
_NOT_FOUND: Final = 127


def pod_command(pod: Object, query: Mapping[str, str], api: Api) -> ServerResponse:
    """A command in a container; ApiError 400 if there is none to carry it out in."""
    container, status = find_container(pod, query.get("container", ""))
    name = container["name"]
    words = tuple(query.get("command", "").split(SEPARATOR))
    if not words[0]:
        raise bad_request("you must specify at least 1 command for the container")
    if "running" not in (status.get("state") or {}):
        raise bad_request(f'unable to upgrade connection: container not found ("{name}"): it is not running')
    problem = error_response(
        bad_request(
            "Upgrade request required: commands are carried out over WebSockets (v5.channel.k8s.io and older), as "
            "kubectl 1.31 and later do it; SPDY is not spoken here"
        )
    )
    refusal = (problem.status, problem.body)
    written = written_text(pod, container, "exec")
    annotations = pod["metadata"].get("annotations") or {}
    try:
        code = exit_code_in("exec-exit-code", annotations.get(f"{PREFIX}exec-exit-code"))
    except PlanError as error:
        raise bad_request(str(error)) from None
    if written is not None or code is not None:
        return RemoteCommand(*refusal, seconds=0.0, exit_code=code or 0, printed=((0.0, written or ""),))
    outcome = run_command(words, container_env(pod, container, api))
    if outcome is not None:
        return RemoteCommand(*refusal, seconds=outcome.seconds, exit_code=outcome.exit_code, printed=outcome.printed)
    line = f"container {name} is simulated: {words[0]} cannot be run in it (see {PREFIX}exec)\n"
    return RemoteCommand(*refusal, seconds=0.0, exit_code=_NOT_FOUND, problem=line)
