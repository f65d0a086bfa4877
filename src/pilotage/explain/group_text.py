"""A report about a pod group for people: first line is the answer, the rest is evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec.structs import replace

from pilotage.escaping import visible_lines
from pilotage.explain.expected_start import start_lines
from pilotage.explain.report import GroupReport, MemberLack
from pilotage.explain.text_lines import (
    near_lines,
    queue_lines,
    quota_text,
    rejection_line,
    section,
    victims_text,
    with_quota,
)

_MANY_PLACES = 10
_MANY_DOMAINS = 10


def render_group(report: GroupReport, *, wide: bool = False) -> str:
    """Plain text, a section per question that is left."""
    return visible_lines([report.answer, *group_sections(report, wide=wide)])


def group_sections(report: GroupReport, *, wide: bool = False) -> list[str]:
    """Everything but the answer."""
    lines = section("Quota, which comes first", [] if report.quota is None else [quota_text(report.quota)])
    lines += section("Members", _member_lines(report))
    lines += section("Not tried because", _gate_lines(report))
    lines += section("Places", _place_lines(report, wide))
    lines += section("Room is kept on", _kept_lines(report))
    lines += section(f"Members that fit by {report.topology_key}", _domain_lines(report, wide))
    for lack in report.lacks:
        lines += _lack_section(lack, wide)
    lines += section("Would fit if", [advice.change for advice in report.would_fit_if])
    if report.preemption is not None:
        lines += section("Preemption", [victims_text(report.preemption)])
    if report.queue is not None:
        lines += section("Queue", queue_lines(report.queue))
    if report.expected_start is not None:
        lines += section("Expected to start", start_lines(report.expected_start))
    lines += section("Skipped, not taken into account", list(report.skipped))
    lines += section("Its condition says", [report.condition] if report.condition else [])
    return lines


def with_group_answer(report: GroupReport) -> GroupReport:
    """The report with its answer, the first line."""
    return replace(report, answer=with_quota(report.quota, _answer(report)))


def _answer(report: GroupReport) -> str:
    name = f"pod group {report.pod_group}"
    match report.state:
        case "Missing":
            return f"{name} does not exist{report.similar}: {_pods(report.wait)} {_verb(report.wait, 'wait')} for it."
        case "NoPods":
            return f"{name} has no pods: {_needed(report)} must exist before they are tried together."
        case "Scheduled":
            return f"{name} has started: all of its {_pods(report.run)} have a node."
        case "Gated":
            return f"{name} {_gated(report)}."
        case "Invalid" | "Error":
            return f"{name} cannot be placed: {report.error}."
        case "Fits":
            where = f", all with {report.topology_key}={report.domain}" if report.topology_key else ""
            return f"{name} fits: {report.fit_now} of {_pods(report.wait)} that wait would have a node{where}."
        case _:
            where = f" with {report.topology_key}={report.domain}, the nearest" if report.domain else ""
            fit = f"{report.fit_now} of {_pods(report.wait)} that wait would have a node{where}"
            return f"{name} does not fit: {fit}; {_needed(report)} are needed together{_main_reason(report)}."


def _gated(report: GroupReport) -> str:
    if report.fits_if_complete is not None and report.exist < report.min_count:
        then = "it would fit if they were there" if report.fits_if_complete else "it would not fit with them either"
        return f"waits for pods: {report.exist} of {report.min_count} exist; {then}"
    gate = report.gates[0]
    return f"is not tried because of {gate.examples[0]}: {gate.message}"


def _main_reason(report: GroupReport) -> str:
    first = next((lack.rejections[0] for lack in report.lacks if lack.rejections), None)
    return "" if first is None else f": {first.message} on {first.nodes} of {_nodes_looked_at(report)} nodes"


def _nodes_looked_at(report: GroupReport) -> int:
    return next((one.nodes for one in report.domains if one.name == report.domain), report.nodes)


def _needed(report: GroupReport) -> str:
    return f"{max(report.min_count - report.run, 1)}"


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"


def _verb(count: int, verb: str) -> str:
    return f"{verb}s" if count == 1 else verb


def _member_lines(report: GroupReport) -> Iterator[str]:
    if report.state == "Missing":
        return
    minimum = f", minCount {report.min_count}" if report.policy == "gang" else ", no minimum (basic)"
    yield f"{report.exist} exist, {report.run} run, {report.wait} wait{minimum}, priority {report.priority}"


def _gate_lines(report: GroupReport) -> Iterator[str]:
    for gate in report.gates:
        more = f" and {gate.pods - len(gate.examples)} more" if gate.pods > len(gate.examples) else ""
        yield f"{gate.plugin}: {gate.message}  [{', '.join(gate.examples)}{more}]"


def _place_lines(report: GroupReport, wide: bool) -> Iterator[str]:
    shown = report.places if wide else report.places[:_MANY_PLACES]
    for one in shown:
        yield f"{one.pod}: {one.node}"
    count = report.fit_now or 0
    if count > len(shown) and report.places:
        yield f"... and {count - len(shown)} more" + ("" if wide else " (-o wide)")


def _kept_lines(report: GroupReport) -> Iterator[str]:
    nodes = Counter(one.node for one in report.kept)
    if nodes:
        yield ", ".join(f"{node} ({_pods(count)})" for node, count in sorted(nodes.items())[:_MANY_PLACES])


def _domain_lines(report: GroupReport, wide: bool) -> Iterator[str]:
    domains = report.domains if wide else report.domains[:_MANY_DOMAINS]
    for one in domains:
        nodes = "1 node" if one.nodes == 1 else f"{one.nodes} nodes"
        yield f"{one.name}: {one.fits} of {report.wait} ({nodes})"
    if len(report.domains) > len(domains):
        yield f"... and {len(report.domains) - len(domains)} more (-o wide)"


def _lack_section(lack: MemberLack, wide: bool) -> list[str]:
    more = f" and {lack.pods - len(lack.examples)} more" if lack.pods > len(lack.examples) else ""
    title = f"Why not {', '.join(lack.examples)}{more}"
    rows = [rejection_line(group, wide) for group in lack.rejections] or [lack.message]
    return section(title, [*rows, *(f"nearest {line}" for line in near_lines(lack.nearest[: None if wide else 1]))])
