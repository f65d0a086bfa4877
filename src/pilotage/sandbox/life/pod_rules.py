"""What pods do, by rules in a file: for those whose annotations do not say, in the words of the annotations.

    rules:
    - match: {namespace: "shop-*", labels: {app: web}}
      do: {ready-after: 20s}
    - match: {ownerKind: Job, name: "*-flaky-*"}
      do: {run-for: 5s, exit-code: 1}

The first rule that matches a pod counts; all that a `match` says must hold, and one that says nothing matches any pod.
Names and namespaces may have `*` and `?`. What a pod says in an annotation of its own comes before the rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import msgspec

from pilotage.kube_yaml import YamlError, documents
from pilotage.sandbox.life.facts import NO_ANNOTATIONS, PodAnnotations, PodFacts
from pilotage.sandbox.life.pod_plan import PREFIX, PlanError, read_plan

_FIELDS: Final = {
    field.encode_name.removeprefix(PREFIX): field.name for field in msgspec.structs.fields(PodAnnotations)
}


class PodRulesError(ValueError):
    """A file of rules that cannot be used; the message names the file, the rule and the field."""


class PodMatch(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Which pods a rule is about."""

    namespace: str = "*"
    name: str = "*"
    labels: Mapping[str, str] = {}
    owner_kind: str = ""

    def matches(self, pod: PodFacts) -> bool:
        return (
            fnmatchcase(pod.key.namespace, self.namespace)
            and fnmatchcase(pod.key.name, self.name)
            and all(pod.labels.get(key) == value for key, value in self.labels.items())
            and (not self.owner_kind or (pod.controller is not None and pod.controller.kind == self.owner_kind))
        )


class PodRule(msgspec.Struct, frozen=True):
    """One rule, judged."""

    match: PodMatch
    asked: PodAnnotations


class _WrittenRule(msgspec.Struct, forbid_unknown_fields=True):
    do: dict[str, str | int | bool | float]
    match: PodMatch = PodMatch()


class _File(msgspec.Struct, forbid_unknown_fields=True):
    rules: list[_WrittenRule]


def asked_of(rules: Sequence[PodRule], pod: PodFacts) -> PodAnnotations:
    """What the pod's annotations ask for, completed by the first rule that matches it."""
    for rule in rules:
        if rule.match.matches(pod):
            return _completed(pod.annotations, rule.asked)
    return pod.annotations


def load_pod_rules(path: Path) -> list[PodRule]:
    """The rules in a YAML file; PodRulesError if it cannot be read or understood."""
    try:
        found = [document for _, document in documents(path.read_bytes())]
    except OSError as error:
        raise PodRulesError(f"{path}: cannot be read: {error.strerror}") from error
    except YamlError as error:
        raise PodRulesError(f"{path}: {error}") from error
    rules: list[PodRule] = []
    for document in found:
        try:
            written = msgspec.convert(document, _File).rules
        except msgspec.ValidationError as error:
            raise PodRulesError(f"{path}: {error}") from error
        rules += [_judged(f"{path}: rules[{index}]", rule) for index, rule in enumerate(written)]
    if not rules:
        raise PodRulesError(f"{path}: holds no rules")
    return rules


def _judged(where: str, rule: _WrittenRule) -> PodRule:
    unknown = [name for name in rule.do if name not in _FIELDS]
    if unknown:
        raise PodRulesError(f"{where}.do.{unknown[0]}: unknown; there are {', '.join(sorted(_FIELDS))}")
    texts = {_FIELDS[name]: _text(value) for name, value in rule.do.items()}
    asked = PodAnnotations(**texts)
    try:
        read_plan(asked)
    except PlanError as error:
        raise PodRulesError(f"{where}.do: {str(error).removeprefix('annotation ' + PREFIX)}") from error
    return PodRule(rule.match, asked)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _completed(own: PodAnnotations, rule: PodAnnotations) -> PodAnnotations:
    if own is NO_ANNOTATIONS:
        return rule
    names = _FIELDS.values()
    values = {name: getattr(rule, name) if getattr(own, name) is None else getattr(own, name) for name in names}
    return PodAnnotations(**values)
