"""Pin the base image of deploy/Dockerfile by the digest that its tag has now.

    python tools/image_digest.py [DOCKERFILE] [REGISTRY]

Asks the registry of the image (or REGISTRY, the URL of a mirror) and rewrites the line `ARG BASE=...`. A tag that is
pinned already is looked up anew. Exits with 3 if no registry can be reached; the Dockerfile is left as it is then.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

DOCKERFILE = Path(__file__).parents[1] / "deploy" / "Dockerfile"
_BASE = re.compile(r"^ARG BASE=(?P<image>[^\s@]+)(?:@sha256:[0-9a-f]{64})?$", re.M)
_INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_PATIENCE_SECONDS = 20


class NoDigest(Exception):
    """The registry was not reached, or did not answer with an image."""


@dataclass(frozen=True, slots=True)
class Image:
    registry: str
    repository: str
    tag: str


def image_of(name: str) -> Image:
    """`docker.io/library/python:3.12-slim`, taken apart."""
    host, _, rest = name.partition("/")
    repository, _, tag = rest.rpartition(":")
    if not repository or not tag or "." not in host:
        raise NoDigest(f"{name} is no image with registry, repository and tag")
    return Image(f"https://{'registry-1.docker.io' if host == 'docker.io' else host}", repository, tag)


def digest_of(image: Image) -> str:
    """`sha256:...` of the index of the image, for all architectures."""
    url = f"{image.registry}/v2/{image.repository}/manifests/{image.tag}"
    body, told = _get(url, image)
    found = f"sha256:{hashlib.sha256(body).hexdigest()}"
    if told and told != found:
        raise NoDigest(f"{url}: the registry says {told}, what it sent has {found}")
    kind = json.loads(body).get("mediaType", "")
    if kind not in _INDEXES:
        raise NoDigest(f"{url}: is {kind or 'something else'}, not an index of images for several architectures")
    return found


def _get(url: str, image: Image) -> tuple[bytes, str]:
    headers = {"Accept": ", ".join(_INDEXES)}
    try:
        return _fetched(url, headers)
    except urllib.error.HTTPError as refused:
        if refused.code != 401:
            raise NoDigest(f"{url}: HTTP {refused.code}") from refused
        challenge = dict(_CHALLENGE.findall(refused.headers.get("WWW-Authenticate", "")))
    except OSError as error:
        raise NoDigest(f"{url}: {getattr(error, 'reason', error)}") from error
    try:
        return _fetched(url, headers | {"Authorization": f"Bearer {_token(challenge, image)}"})
    except (OSError, KeyError, ValueError) as error:
        raise NoDigest(f"{url}: no token to read it with ({error})") from error


def _token(challenge: dict[str, str], image: Image) -> str:
    scope = challenge.get("scope", f"repository:{image.repository}:pull")
    query = urlencode({"service": challenge.get("service", ""), "scope": scope})
    answer: dict[str, Any] = json.loads(_fetched(f"{challenge['realm']}?{query}", {})[0])
    return str(answer.get("token") or answer["access_token"])


def _fetched(url: str, headers: dict[str, str]) -> tuple[bytes, str]:
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=_PATIENCE_SECONDS) as answer:
        return answer.read(4 << 20), answer.headers.get("Docker-Content-Digest", "")


def main(dockerfile: Path, registry: str = "") -> int:
    text = dockerfile.read_text()
    found = _BASE.search(text)
    if found is None:
        print(f"{dockerfile}: has no line ARG BASE=IMAGE:TAG", file=sys.stderr)
        return 2
    try:
        image = image_of(found["image"])
        digest = digest_of(Image(registry.rstrip("/") or image.registry, image.repository, image.tag))
    except NoDigest as error:
        print(f"the base image stays as it is, its digest could not be looked up: {error}", file=sys.stderr)
        return 3
    dockerfile.write_text(_BASE.sub(f"ARG BASE={found['image']}@{digest}", text, count=1))
    print(f"{dockerfile}: {found['image']}@{digest}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCKERFILE, *sys.argv[2:3]))
