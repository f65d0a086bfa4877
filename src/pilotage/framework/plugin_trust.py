"""Check that no one else could change the file of a plugin, as it runs with all rights of the scheduler.

A file is trusted if only root and the user of this process can write it, its directory (modules beside a plugin can be
imported by it) and what leads there. Files of a read-only file system, such as a mounted ConfigMap, cannot be written
whatever their mode says.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_MOST_LINKS: Final = 40
"""As many as Linux follows."""


def distrust(path: Path, opened: os.stat_result) -> str:
    """Why the file at `path`, opened as this one, cannot be trusted, with the way out; "" if it can."""
    directories = dict.fromkeys([*_on_the_way(path), path.resolve().parent])
    problems = [_of_file(path, opened), *(problem for one in directories for problem in _of_directories(one))]
    return next(filter(None, problems), "")


def _on_the_way(path: Path) -> Iterator[Path]:
    """The directory of the path and, if it is a link, of what it leads to, link by link."""
    at = path.absolute()
    for _ in range(_MOST_LINKS):
        yield at.parent
        if not at.is_symlink():
            return
        at = at.parent / at.readlink()


def _of_file(path: Path, found: os.stat_result) -> str:
    if _is_foreign(found):
        return f"it belongs to {_user(found.st_uid)}, who could change it: chown it to root or to yourself"
    if _others_may_write(found) and not _is_read_only(path):
        return "other users may write it, and it would run with the rights of the scheduler: chmod go-w it"
    return ""


def _of_directories(directory: Path) -> Iterator[str]:
    for one in (directory, *directory.parents):
        found = one.stat()
        if _is_read_only(one):
            continue
        if _is_foreign(found):
            yield f"its directory {one} belongs to {_user(found.st_uid)}, who could replace it: move it elsewhere"
        # Above, a directory such as /tmp is all right: in it no one can rename what belongs to others.
        elif _others_may_write(found) and (one == directory or not found.st_mode & stat.S_ISVTX):
            yield f"other users may write its directory {one}: chmod go-w that, or move the plugin elsewhere"


def _is_foreign(found: os.stat_result) -> bool:
    return found.st_uid not in (0, os.geteuid())


def _others_may_write(found: os.stat_result) -> bool:
    if found.st_mode & stat.S_IWOTH:
        return True
    return bool(found.st_mode & stat.S_IWGRP) and not _is_private_group(found.st_gid)


def _is_private_group(number: int) -> bool:
    """A group of one user, as many systems make for each: ours or root's."""
    try:
        group = grp.getgrgid(number)
    except KeyError:
        return False
    names = {_user(0), _user(os.geteuid())}
    return group.gr_name in names and set(group.gr_mem) <= names


def _is_read_only(path: Path) -> bool:
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
