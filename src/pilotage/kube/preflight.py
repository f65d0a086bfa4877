"""Checks before the first pod is scheduled: an API server, its version, and our permissions there.

A server that does not answer is waited for. A server that answers and says no is not: credentials and permissions are
fixed by people, who get everything that is missing at once, each with the rule that grants it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Struct, field

from pilotage.clock import Clock
from pilotage.kube.client import KubeClient, ListOptions, ServerVersion
from pilotage.kube.errors import ApiStatusError
from pilotage.kube.permissions import rbac_rule, way_out
from pilotage.kube.transport import NoIdentity, NotTrusted, TransportError
from pilotage.model.errors import DecodeError
from pilotage.model.kinds import KindInfo
from pilotage.tasks import side_by_side

KNOWN_MINORS: Final = range(34, 38)
"""Minors of Kubernetes 1 that have the API that we read; which of them were tested is in docs/operations.md."""
_FIRST_PAUSE_SECONDS: Final = 1.0
_LONGEST_PAUSE_SECONDS: Final = 10.0
_COMING_UP_SECONDS: Final = 20.0
"""An API server that has just come up rejects all requests until it has read its roles."""

_ANONYMOUS: Final = 'User "system:anonymous"'
_NOT_AUTHENTICATED: Final = (
    "the API server takes us for system:anonymous, who may do nothing: "
    "the user of this context has no token, client-certificate or exec"
)

log = logging.getLogger(__name__)


class Refused(Exception):
    """The server does not let us work; one problem per line."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class Permission(Struct, frozen=True):
    """Something that we must be allowed to do."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    """The only object that it is about; "" for all."""

    @property
    def qualified(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


async def await_server(
    client: KubeClient,
    kinds: Collection[KindInfo],
    clock: Clock,
    on_problem: Callable[[str, float], None],
    wanted_by: Mapping[str, Collection[str]] | None = None,
) -> ServerVersion:
    """What answers there and lets us read `kinds`; `wanted_by` has the plugins that want a kind, by its `kind`.

    Waits while nothing answers, and says `on_problem` why and for how long. Refused if it is no Kubernetes, or does
    not let us in, or does not let us read, with all that is missing.
    """
    pause, patient_until = _FIRST_PAUSE_SECONDS, clock.monotonic()
    while True:
        try:
            version = await client.version()
            await _check_reading(client, kinds, wanted_by or {})
            return version
        except NotTrusted as error:
            raise Refused([str(error)]) from error
        except NoIdentity as error:
            problem = f"there are no credentials to come with: {error}"
        except TransportError as error:
            patient_until = clock.monotonic() + _COMING_UP_SECONDS
            problem = str(error)
        except ApiStatusError as error:
            if error.code >= 500 or error.code == 429:
                patient_until = clock.monotonic() + _COMING_UP_SECONDS
            elif clock.monotonic() >= patient_until:
                raise Refused([_not_let_in(error)]) from error
            problem = f"the API server is not ready: {error}"
        except Refused as refused:
            if clock.monotonic() >= patient_until:
                raise
            problem = f"the API server is not ready: {refused.problems[0]}"
        on_problem(problem, pause)
        await clock.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)


async def has_kind(client: KubeClient, kind: KindInfo) -> bool:
    """Whether the server knows the kind at all."""
    try:
        await client.list_page(kind, ListOptions(limit=1))
    except ApiStatusError as error:
        return error.code != 404
    return True


async def _check_reading(
    client: KubeClient, kinds: Collection[KindInfo], wanted_by: Mapping[str, Collection[str]]
) -> None:
    problems = await side_by_side(_reading_problem(client, kind, wanted_by.get(kind.kind, ())) for kind in kinds)
    if any(problems):
        raise Refused(filter(None, problems))


async def _reading_problem(client: KubeClient, kind: KindInfo, plugins: Collection[str]) -> str:
    """Why the kind cannot be read; "" if it can. Raises what concerns all kinds."""
    try:
        await client.list_page(kind, ListOptions(limit=1))
    except ApiStatusError as error:
        if error.code == 403 and _ANONYMOUS in error.message:
            raise Refused([_NOT_AUTHENTICATED]) from error
        if error.code == 403:
            wish = f" (plugin {', '.join(plugins)} wants to watch {kind.kind})" if plugins else ""
            return f"{error.message}{wish}; {way_out(kind, ('list', 'watch'))}"
        # A kind that this server does not have (an older one, say) has no objects; the reflector waits for it.
        if error.code != 404:
            raise
    except DecodeError as error:
        return f"the list of {kind.plural} is none: {error}; is it a Kubernetes API server?"
    return ""


async def missing_permissions(client: KubeClient, wanted: Iterable[Permission]) -> list[Permission]:
    """Return those that the server would reject, by its own word; none if it does not answer such questions."""
    wanted = list(wanted)
    try:
        allowed = await side_by_side(_is_allowed(client, permission) for permission in wanted)
    except (ApiStatusError, TransportError, msgspec.DecodeError):
        return []
    return [permission for permission, is_allowed in zip(wanted, allowed, strict=True) if not is_allowed]


def missing(permission: Permission) -> str:
    """The sentence about a missing permission."""
    where = f' in namespace "{permission.namespace}"' if permission.namespace else ""
    rule = rbac_rule(permission.group, permission.qualified, [permission.verb])
    return f"may not {permission.verb} {permission.qualified}{where}; add to the role: {rule}"


def version_warning(version: ServerVersion) -> str:
    """Return a warning about a server whose version we do not know; "" if we do."""
    digits = "".join(character for character in version.minor if character.isdigit())
    if version.major == "1" and digits and int(digits) in KNOWN_MINORS:
        return ""
    known = f"1.{KNOWN_MINORS.start} to 1.{KNOWN_MINORS.stop - 1}"
    return f"the API server is {version.git_version}; known are {known}: it may have what we do not read"


def _not_let_in(error: ApiStatusError) -> str:
    if error.code == 401:
        return f"the API server does not accept our credentials: {error}; is the token or certificate expired?"
    if error.code == 200:
        return error.message
    return f"the API server refuses us: {error}; check the address, scheme and path of the server"


class _SelfAccessStatus(msgspec.Struct):
    allowed: bool = False


class _SelfAccessReview(msgspec.Struct):
    status: _SelfAccessStatus = field(default_factory=_SelfAccessStatus)


async def _is_allowed(client: KubeClient, permission: Permission) -> bool:
    attributes = {
        "verb": permission.verb,
        "group": permission.group,
        "resource": permission.resource,
        "subresource": permission.subresource,
        "namespace": permission.namespace,
        "name": permission.name,
    }
    answer = await client.self_access_review(attributes)
    return msgspec.json.decode(answer, type=_SelfAccessReview).status.allowed
