"""A small shell: scripts of `sh -c` whose outcome is known without running anything.

    sleep 5; echo done; exit 3          lists joined by ; && || and new lines, ! before a command
    if [ "$INDEX" -eq 2 ]; then ... fi  if, while, until, for, { }
    $NAME ${NAME} ${NAME:-x} ${NAME:?} $? $(echo x) $((1 + 2))
    > FILE, >> FILE, 2>&1               files live as long as the script; nothing else sees them

Programs are for the caller to know; one that it does not know, and anything else that a shell can do (pipes, background
jobs, patterns, functions), raises `Unknown`: better no outcome than a wrong one. Every script ends: after so many steps
it counts as one that runs for ever.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

FOREVER: Final = float("inf")
LONGEST_SCRIPT: Final = 8_192
_MOST_STEPS: Final = 2_000
_LONGEST_OUTPUT: Final = 65_536
_DEEPEST: Final = 20

Words: TypeAlias = tuple[str, ...]


class Unknown(Exception):
    """What the script does is not known."""


class _Exit(Exception):
    def __init__(self, code: int) -> None:
        self.code = code


class _Endless(Exception):
    """It runs for ever, or until nobody knows."""


@dataclass(slots=True)
class Shell:
    """What a script has done so far."""

    env: dict[str, str]
    program: Callable[[Shell, Words], int]
    """Runs a program that is no part of the shell: its exit code; Unknown if it is not known."""
    seconds: float = 0.0
    code: int = 0
    printed: list[tuple[float, str]] = field(default_factory=list)
    """What went to standard output and error, and when."""
    files: dict[str, str] = field(default_factory=dict)
    _steps: int = 0
    _depth: int = 0

    def run(self, script: str) -> int:
        """Carry a script out from the beginning to the end; its exit code. FOREVER in `seconds`: it has none."""
        if len(script) > LONGEST_SCRIPT:
            raise Unknown
        try:
            self._list(_Tokens(script), ())
        except _Exit as done:
            self.code = done.code
        except _Endless:
            self.seconds = FOREVER
        return self.code

    def inside(self, script: str) -> int:
        """Carry another script out as a process of its own, on the same files and time."""
        if self._depth > _DEEPEST:
            raise Unknown
        inner = Shell(
            dict(self.env), self.program, self.seconds, 0, self.printed, self.files, self._steps, self._depth + 1
        )
        code = inner.run(script)
        self._steps = inner._steps
        self.sleep(inner.seconds - self.seconds)
        return code

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        if self.seconds == FOREVER:
            raise _Endless

    def print(self, text: str) -> None:
        self.printed.append((self.seconds, text))
        if sum(len(piece) for _, piece in self.printed[-64:]) > _LONGEST_OUTPUT:
            raise _Endless

    def _step(self) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise _Endless

    def _list(self, tokens: _Tokens, ends: Sequence[str], *, skips: bool = False) -> None:
        """Commands up to one of the words in `ends`; only read if it `skips`."""
        operator = ";"
        while True:
            tokens.skip_lines()
            if tokens.word in ends or tokens.is_at_end:
                break
            is_left_out = skips or (operator == "&&" and self.code != 0) or (operator == "||" and self.code == 0)
            self._command(tokens, skips=is_left_out)
            if not tokens.is_at_end and not tokens.is_separator and tokens.word not in ends:
                raise Unknown
            operator = tokens.take_separator()
        if ends and tokens.is_at_end:
            raise Unknown

    def _command(self, tokens: _Tokens, *, skips: bool) -> None:
        self._step()
        is_negated = tokens.take("!")
        if self._depth > _DEEPEST:
            raise Unknown
        self._depth += 1
        match tokens.word:
            case "if":
                self._if(tokens, skips=skips)
            case "while" | "until":
                self._while(tokens, skips=skips)
            case "for":
                self._for(tokens, skips=skips)
            case "{":
                tokens.next()
                self._list(tokens, ("}",), skips=skips)
                tokens.next()
            case _:
                self._simple(tokens.take_command(), skips=skips)
        self._depth -= 1
        if is_negated and not skips:
            self.code = 0 if self.code else 1

    def _if(self, tokens: _Tokens, *, skips: bool) -> None:
        is_done, result = skips, self.code if skips else 0
        while tokens.word in ("if", "elif"):
            tokens.next()
            self._list(tokens, ("then",), skips=is_done)
            is_taken = not is_done and self.code == 0
            tokens.next()
            self._list(tokens, ("elif", "else", "fi"), skips=not is_taken)
            if is_taken:
                is_done, result = True, self.code
        if tokens.take("else"):
            self._list(tokens, ("fi",), skips=is_done)
            result = result if is_done else self.code
        tokens.next()
        self.code = result

    def _while(self, tokens: _Tokens, *, skips: bool) -> None:
        wanted = tokens.word == "while"
        tokens.next()
        begin, result = tokens.at, 0
        while True:
            self._step()
            tokens.at = begin
            self._list(tokens, ("do",), skips=skips)
            is_over = skips or (self.code == 0) != wanted
            tokens.next()
            self._list(tokens, ("done",), skips=is_over)
            if is_over:
                break
            result = self.code
        tokens.next()
        self.code = self.code if skips else result

    def _for(self, tokens: _Tokens, *, skips: bool) -> None:
        tokens.next()
        words = tokens.take_command()
        if len(words) < 2 or words[1] != "in" or not _NAME.fullmatch(words[0]):
            raise Unknown
        items = () if skips else self._expanded(words[2:])
        tokens.take_separator()
        tokens.skip_lines()
        if not tokens.take("do"):
            raise Unknown
        begin = tokens.at
        for item in items:
            self._step()
            self.env[words[0]] = item
            tokens.at = begin
            self._list(tokens, ("done",))
        if not items:
            self._list(tokens, ("done",), skips=True)
        tokens.next()

    def _simple(self, words: Sequence[str], *, skips: bool) -> None:
        if skips:
            return
        words, target, appends = self._redirected(words)
        count = next((at for at, word in enumerate(words) if not _ASSIGNMENT.match(word)), len(words))
        assigned, words = self._assigned(words[:count]), words[count:]
        if assigned and not words:
            self.env.update(assigned)
            self.code = 0
            return
        words = self._expanded(words)
        before, env = self.printed, self.env
        if assigned:
            self.env = {**env, **assigned}
        if target is not None:
            self.printed = []
        try:
            self.code = self._run(tuple(words))
        finally:
            if assigned:
                self.env = env
            if target is not None:
                text = "".join(piece for _, piece in self.printed)
                self.printed = before
                self.files[target] = (self.files.get(target, "") if appends else "") + text

    def _assigned(self, words: Sequence[str]) -> dict[str, str]:
        """The variables that NAME=VALUE set, before a command for that command alone."""
        found = {}
        for word in words:
            name, _, value = word.partition("=")
            found[name] = " ".join(self._expanded([f'"{value}"' if value[:1] not in ("'", '"') else value]))
        return found

    def _redirected(self, words: Sequence[str]) -> tuple[list[str], str | None, bool]:
        """The words without redirections, where the output goes, and whether it is added there."""
        kept: list[str] = []
        target, appends = None, False
        at = 0
        while at < len(words):
            word = words[at]
            if word in ("2>&1", "1>&2", ">&2"):
                pass
            elif word in (">", ">>", "1>", "1>>", "&>", "2>", "2>>"):
                at += 1
                if at >= len(words):
                    raise Unknown
                if not word.startswith("2"):
                    [target] = self._expanded([words[at]]) or [""]
                    appends = word.endswith(">>")
            else:
                kept.append(word)
            at += 1
        if target in ("/dev/stdout", "/dev/stderr", "/proc/1/fd/1"):
            target = None
        return kept, target, appends

    def _run(self, words: Words) -> int:
        if not words:
            return self.code
        match words[0], words[1:]:
            case "exit", arguments:
                raise _Exit(_number(arguments[0]) & 0xFF if arguments else self.code)
            case ("[" | "[[") as opening, arguments:
                if arguments[-1:] != ("]" * len(opening),):
                    raise Unknown
                return 0 if self._test(arguments[:-1]) else 1
            case "test", arguments:
                return 0 if self._test(arguments) else 1
            case (("set" | "trap" | "export" | "unset" | "ulimit" | "umask"), arguments):
                return self._setting(words[0], arguments)
            case "exec", arguments if arguments:
                raise _Exit(self._run(arguments))
            case _:
                return self.program(self, words)

    def _setting(self, name: str, arguments: Words) -> int:
        if name == "export":
            for word in arguments:
                key, equals, value = word.partition("=")
                if equals:
                    self.env[key] = value
        elif name == "unset":
            for word in arguments:
                self.env.pop(word, None)
        elif name == "set" and not set(arguments) <= {"-x", "-u", "-o", "pipefail"}:
            raise Unknown
        return 0

    def _test(self, words: Words) -> bool:
        match words:
            case ("!", *rest):
                return not self._test(tuple(rest))
            case ("-z", text):
                return not text
            case ("-n", text) | (text,):
                return bool(text)
            case (("-e" | "-f" | "-r" | "-s" | "-w"), path) if path in self.files:
                return True
            case (left, ("=" | "=="), right):
                return left == right
            case (left, "!=", right):
                return left != right
            case (left, ("-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge") as how, right):
                a, b = _number(left), _number(right)
                return {"-eq": a == b, "-ne": a != b, "-lt": a < b, "-le": a <= b, "-gt": a > b, "-ge": a >= b}[how]
            case _:
                raise Unknown

    def _expanded(self, words: Sequence[str]) -> list[str]:
        return [one for word in words for one in self._fields(word)]

    def _fields(self, word: str) -> Iterator[str]:
        """The words that a word as it is written stands for: quotes taken off, variables and commands put in."""
        text, is_quoted, has_text = "", False, False
        for kind, piece in _pieces(word):
            if kind == "quoted":
                text, is_quoted = text + piece, True
            elif kind == "double":
                text, is_quoted = text + self._replaced(piece), True
            elif "$" in piece or "`" in piece:
                first, *others = self._replaced(piece).split() or [""]
                text += first
                for other in others:
                    yield text
                    text = other
            else:
                if _PATTERN.search(piece) and piece not in ("[", "]", "[[", "]]"):
                    raise Unknown
                text, has_text = text + piece, True
        if text or is_quoted or has_text:
            yield text

    def _replaced(self, text: str) -> str:
        """A text with its variables, commands and sums replaced."""
        found, at = "", 0
        while at < len(text):
            sign = text[at]
            if sign == "\\" and text[at + 1 : at + 2] in ("$", "`", '"', "\\"):
                found, at = found + text[at + 1], at + 2
            elif sign == "`":
                raise Unknown
            elif sign != "$":
                found, at = found + sign, at + 1
            elif text.startswith("$((", at):
                end = text.find("))", at)
                found, at = found + self._sum(text[at + 3 : end]), end + 2
                if end < 0:
                    raise Unknown
            elif text.startswith("$(", at):
                end = _closing(text, at + 1)
                found, at = found + self._output(text[at + 2 : end]), end + 1
            else:
                match = _VARIABLE.match(text, at)
                if match is None:
                    raise Unknown
                found, at = found + self._value(match), match.end()
        return found

    def _value(self, match: re.Match[str]) -> str:
        name, how, other = match["plain"] or match["name"], match["how"], match["other"]
        if name == "?":
            return str(self.code)
        if not _NAME.fullmatch(name):
            raise Unknown
        if name in _UNSET and name not in self.env:
            raise Unknown
        value = self.env.get(name, "")
        if value or not how:
            return value
        if how == ":?":
            self.print(f"{name}: {other or 'parameter not set'}\n")
            raise _Exit(1)
        return self._replaced(other)

    def _output(self, script: str) -> str:
        before, self.printed = self.printed, []
        self.code = self.inside(script)
        printed, self.printed = self.printed, before
        return "".join(piece for _, piece in printed).rstrip("\n")

    def _sum(self, text: str) -> str:
        return str(calculated(_SUM_PARTS.findall(self._replaced(_BARE_NAME.sub(r"$\1", text)))))


def calculated(words: Sequence[str]) -> int:
    """What `expr` and `$(( ))` have: one number, or two with an operator between them; Unknown for anything else."""
    match list(words):
        case [one]:
            return _number(one)
        case [left, ("+" | "-" | "*" | "/" | "%") as how, right]:
            a, b = _number(left), _number(right)
            if how in ("/", "%") and b == 0:
                raise Unknown
            quotient = abs(a) // abs(b or 1) * (1 if (a < 0) == (b < 0) else -1)
            return {"+": a + b, "-": a - b, "*": a * b, "/": quotient, "%": a - quotient * b}[how]
        case _:
            raise Unknown


def _number(text: str) -> int:
    if not re.fullmatch(r"-?\d{1,9}", text):
        raise Unknown
    return int(text)


_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_BARE_NAME: Final = re.compile(r"(?<![\w$])([A-Za-z_]\w*)", re.ASCII)
_SUM_PARTS: Final = re.compile(r"(?<![\d\s])-?\d+|\d+|\S")
_UNSET: Final = frozenset({"RANDOM", "SECONDS", "PWD", "PPID", "UID"})
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_VARIABLE: Final = re.compile(
    r"\$(?:(?P<plain>[A-Za-z_]\w*|[?])|\{(?P<name>[A-Za-z_]\w*)(?:(?P<how>:-|:\?)(?P<other>[^}]*))?\})", re.ASCII
)
_PATTERN: Final = re.compile(r"[*?\[\]~]")
_REDIRECTION: Final = re.compile(r"[12]?>>?(?:&[12])?|&>")


class _Tokens:
    """The commands of a script: words as they are written, and what separates them."""

    def __init__(self, script: str) -> None:
        self._tokens = list(_tokens(script))
        self.at = 0

    @property
    def is_at_end(self) -> bool:
        return self.at >= len(self._tokens)

    @property
    def word(self) -> str:
        return "" if self.is_at_end else self._tokens[self.at]

    @property
    def is_separator(self) -> bool:
        return self.word in _SEPARATORS

    def next(self) -> None:
        self.at += 1

    def take(self, word: str) -> bool:
        is_there = self.word == word
        self.at += is_there
        return is_there

    def skip_lines(self) -> None:
        while self.word == "\n":
            self.at += 1

    def take_separator(self) -> str:
        operator = self.word if self.is_separator else ";"
        self.at += self.is_separator
        return operator

    def take_command(self) -> list[str]:
        """The words of a simple command."""
        words: list[str] = []
        while not self.is_at_end and not self.is_separator:
            words.append(self.word)
            self.next()
        if not words:
            raise Unknown
        return words


_SEPARATORS: Final = frozenset({";", "&&", "||", "\n"})


def _tokens(script: str) -> Iterator[str]:
    at = 0
    script = script.replace("\\\n", " ")
    while at < len(script):
        sign = script[at]
        redirection = _REDIRECTION.match(script, at)
        if sign in " \t\r":
            at += 1
        elif sign == "#":
            at = script.find("\n", at) if "\n" in script[at:] else len(script)
        elif script.startswith(("&&", "||"), at):
            yield script[at : at + 2]
            at += 2
        elif redirection is not None:
            yield redirection[0]
            at = redirection.end()
        elif sign in ";\n":
            yield sign
            at += 1
        elif sign in "|&()<":
            raise Unknown
        else:
            end = _end_of_word(script, at)
            yield script[at:end]
            at = end


def _end_of_word(script: str, at: int) -> int:
    while at < len(script) and script[at] not in " \t\r\n;|&()<>":
        if script[at] == "\\":
            at += 2
        elif script[at] in "'\"":
            at = _closing_quote(script, at) + 1
        elif script.startswith(("$(", "${"), at):
            at = _closing(script, at + 1) + 1
        else:
            at += 1
    return min(at, len(script))


def _closing_quote(text: str, at: int) -> int:
    quote, at = text[at], at + 1
    while at < len(text) and text[at] != quote:
        if quote == '"' and text.startswith("$(", at):
            at = _closing(text, at + 1)
        at += 2 if quote == '"' and text[at] == "\\" else 1
    if at >= len(text):
        raise Unknown
    return at


def _closing(text: str, at: int) -> int:
    """Where the parenthesis, or brace, at `at` is closed."""
    depth = 0
    while at < len(text):
        if text[at] in "'\"":
            at = _closing_quote(text, at)
        depth += (text[at] in "({") - (text[at] in ")}")
        if depth == 0:
            return at
        at += 1
    raise Unknown


def _pieces(word: str) -> Iterator[tuple[str, str]]:
    """The parts of a word: quoted, double (in double quotes), or plain."""
    at, plain = 0, ""
    while at < len(word):
        if word[at] in "'\"":
            end = _closing_quote(word, at)
            if plain:
                yield "plain", plain
            plain = ""
            yield ("quoted" if word[at] == "'" else "double"), word[at + 1 : end]
            at = end + 1
        elif word.startswith(("$(", "${"), at):
            end = _closing(word, at + 1) + 1
            plain, at = plain + word[at:end], end
        elif word[at] == "\\":
            if plain:
                yield "plain", plain
            plain = ""
            yield "quoted", word[at + 1 : at + 2]
            at += 2
        else:
            plain, at = plain + word[at], at + 1
    if plain:
        yield "plain", plain


def environment_lines(env: Mapping[str, str]) -> str:
    """What `env` prints."""
    return "".join(f"{name}={value}\n" for name, value in env.items())
