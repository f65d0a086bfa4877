"""Syntax of names, label keys, label values and ports.

Every check returns the problem as a text, or "" for a good value; the rules made of them stand at the end. The same few
names come again and again, so the checks are cached; values beyond every legal length are rejected before they reach a
cache.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from pilotage.sandbox.rules.validation.field_rules import Rule, syntax
from pilotage.sandbox.rules.validation.problems import Errors, invalid

_CACHED: Final = 1 << 16

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE: Final = f"({_QUALIFIED})?"
_CONFIG_KEY: Final = "[-._a-zA-Z0-9]+"

_is_label: Final = re.compile(_LABEL).fullmatch
_is_subdomain: Final = re.compile(_SUBDOMAIN).fullmatch
_is_label_1035: Final = re.compile(_LABEL_1035).fullmatch
_is_qualified: Final = re.compile(_QUALIFIED).fullmatch
_is_config_key: Final = re.compile(_CONFIG_KEY).fullmatch

_LABEL_TEXT: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    f"an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_SUBDOMAIN_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_LABEL_1035_TEXT: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    f"'{_LABEL_1035}')"
)
_QUALIFIED_TEXT: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
)
_SYSCTL: Final = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\.\/])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_LABEL_VALUE_TEXT: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{_LABEL_VALUE}')"
)
_CONFIG_KEY_TEXT: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    f"'key-name', regex used for validation is '{_CONFIG_KEY}')"
)


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def label_problem(text: str) -> str:
    """RFC 1123 label: names of containers, volumes, namespaces."""
    return _too_long(63) if len(text) > 63 else _label_problem(text)


def subdomain_problem(text: str) -> str:
    """RFC 1123 subdomain: names of most objects."""
    return _too_long(253) if len(text) > 253 else _subdomain_problem(text)


def label_1035_problem(text: str) -> str:
    """RFC 1035 label: names of Services."""
    if len(text) > 63:
        return _too_long(63)
    return "" if _is_label_1035(text) else _LABEL_1035_TEXT


def qualified_name_problem(text: str) -> str:
    """`name` or `prefix/name`: label and annotation keys, resource names."""
    return "name part " + _too_long(63) if len(text) > 63 + 1 + 253 else _qualified_name_problem(text)


def label_value_problem(text: str) -> str:
    return _too_long(63) if len(text) > 63 else _label_value_problem(text)


def config_key_problem(text: str) -> str:
    """A key of a ConfigMap or Secret, which becomes a file name."""
    if len(text) > 253:
        return _too_long(253)
    if text in (".", ".."):
        return f"must not be '{text}'"
    return "" if _is_config_key(text) else _CONFIG_KEY_TEXT


def address_problem(text: str) -> str:
    """Names of IPAddresses are the addresses, written in the one canonical way."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
    return "" if str(address) == text else f'must be in canonical form ("{address}")'


def path_segment_problem(text: str) -> str:
    """Names of roles and their bindings, such as system:node, are anything that can stand in a URL."""
    if text in (".", ".."):
        return f"may not be '{text}'"
    wrong = next((sign for sign in ("/", "%") if sign in text), "")
    return f"may not contain '{wrong}'" if wrong else ""


def sysctl_problem(text: str) -> str:
    """A setting of the kernel, its parts separated by dots or slashes."""
    is_one = len(text) <= 253 and re.fullmatch(_SYSCTL, text)
    return "" if is_one else f"must have at most 253 characters and match regex ^{_SYSCTL}$"


def port_name_problem(text: str) -> str:
    """An IANA service name."""
    if len(text) > 15:
        return "must be no more than 15 characters"
    if not re.fullmatch("[-a-z0-9]+", text):
        return "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    if not re.search("[a-z]", text):
        return "must contain at least one letter (a-z)"
    if "--" in text:
        return "must not contain consecutive hyphens"
    return "must not begin or end with a hyphen" if text[0] == "-" or text[-1] == "-" else ""


def port_problem(number: int) -> str:
    return "" if 1 <= number <= 65535 else "must be between 1 and 65535, inclusive"


@lru_cache(_CACHED)
def _label_problem(text: str) -> str:
    if _is_label(text):
        return ""
    return "must not contain dots" if _is_subdomain(text) else _LABEL_TEXT


@lru_cache(_CACHED)
def _subdomain_problem(text: str) -> str:
    return "" if _is_subdomain(text) else _SUBDOMAIN_TEXT


@lru_cache(_CACHED)
def _label_value_problem(text: str) -> str:
    return "" if text == "" or _is_qualified(text) else _LABEL_VALUE_TEXT


@lru_cache(_CACHED)
def _qualified_name_problem(text: str) -> str:
    prefix, slash, name = text.rpartition("/")
    if slash:
        if not prefix:
            return "prefix part must be non-empty"
        if "/" in prefix:
            optional_prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            return f"a qualified name {_QUALIFIED_TEXT} {optional_prefix}"
        if problem := subdomain_problem(prefix):
            return "prefix part " + problem
    if not name:
        return "name part must be non-empty"
    if len(name) > 63:
        return "name part " + _too_long(63)
    return "" if _is_qualified(name) else "name part " + _QUALIFIED_TEXT


def label_map(labels: Mapping[str, str], path: str) -> Errors:
    """Keys and values of a map of labels."""
    errors: Errors = []
    for key, value in labels.items():
        if problem := qualified_name_problem(key):
            errors.append(invalid(path, key, problem))
        if problem := label_value_problem(value):
            errors.append(invalid(path, value, problem))
    return errors


label: Final[Rule] = syntax(label_problem)
subdomain: Final[Rule] = syntax(subdomain_problem)
qualified_name: Final[Rule] = syntax(qualified_name_problem)
label_value: Final[Rule] = syntax(label_value_problem)
port: Final[Rule] = syntax(port_problem)
