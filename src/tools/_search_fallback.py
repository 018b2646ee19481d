"""A small stand-in for ripgrep, for machines without it: ``python -I -S _search_fallback.py <ripgrep's arguments>``.

It takes the two forms of call that ``glob`` and ``grep`` make and prints what they read of ripgrep's answer. It is run
as a program of its own, by its path, so that it can be killed while a pattern backtracks for ever; therefore it is one
file, and imports nothing but the standard library. Where it differs from ripgrep is said in ``docs/builtin-tools.md``.

Source: ``gitignore(5)``, ``rg(1)``.
"""

from __future__ import annotations

import base64
import codecs
import io
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

_HEAD_BYTES = 65_536
_IGNORE_FILES = (".rgignore", ".ignore", ".gitignore", ".git/info/exclude")
_GIT_FROM = _IGNORE_FILES.index(".gitignore")

_TOKEN = re.compile(
    r"""
      (?P<deep> (?<![^/{,]) [*][*] (?: / | \Z ) )  # a whole component of two stars: any number of folders
    | (?P<stars> [*]+ )
    | (?P<one> [?] )
    | (?P<members> \[ [!^]?+ . [^]]* ] )           # a bracket in the first place is a member, not the end
    | (?P<brace> [{},] )
    | (?P<escaped> \\ . )
    | (?P<plain> [^[\\] )
    """,
    re.VERBOSE | re.DOTALL,
)


class PatternError(Exception):
    """A glob or regular expression is not valid; the message is what ripgrep would say of it."""


class Rule(NamedTuple):
    """One line of an ignore file, or one ``--glob``."""

    regex: re.Pattern[str]
    negated: bool
    folders_only: bool

    def matches(self, path: str, *, is_folder: bool) -> bool:
        """Whether it speaks of ``path``, which is relative to the rule's own folder."""
        return (is_folder or not self.folders_only) and self.regex.fullmatch(path) is not None


class Options(NamedTuple):
    """The arguments, read."""

    regexp: str | None
    globs: tuple[Rule, ...]
    ignores: bool
    hidden: bool
    target: str


class Level:
    """The ignore files of one folder and of those above it."""

    def __init__(self, folder: str, above: Level | None) -> None:
        self.prefix = folder.rstrip("/") + "/"
        self.above = above
        self.has_git = os.path.lexists(self.prefix + ".git")
        self.in_git: bool = self.has_git or (above is not None and above.in_git)
        self.rules = [_read_rules(self.prefix + name) for name in _IGNORE_FILES]

    def ignores(self, path: str, *, is_folder: bool) -> bool | None:
        """Whether ``path`` is ignored (True), expressly not ignored (False), or not spoken of (None).

        The kinds of ignore file rank before the folders: any .ignore beats every .gitignore.
        """
        for kind in range(len(_IGNORE_FILES)):
            from_git = kind >= _GIT_FROM
            level: Level | None = None if from_git and not self.in_git else self
            while level is not None:
                rule = _last_match(level.rules[kind], path.removeprefix(level.prefix), is_folder=is_folder)
                if rule is not None:
                    return not rule.negated
                # Rules of git end at the root of the repository.
                level = None if from_git and level.has_git else level.above
        return None


def _last_match(rules: tuple[Rule, ...], path: str, *, is_folder: bool) -> Rule | None:
    return next((rule for rule in reversed(rules) if rule.matches(path, is_folder=is_folder)), None)


def _read_rules(file: str) -> tuple[Rule, ...]:
    try:
        with open(file, encoding="utf-8", errors="surrogateescape", newline="\n") as lines:  # noqa: PTH123
            parsed = [_ignore_rule(line.rstrip("\r\n")) for line in lines]
    except OSError:
        return ()
    return tuple(rule for rule in parsed if rule is not None)


def _ignore_rule(line: str) -> Rule | None:
    try:
        return parse_rule(line)
    except PatternError:  # git and ripgrep, too, skip such a line and keep the others
        return None


def parse_rule(line: str) -> Rule | None:
    """Read one line in the syntax of gitignore; ``None`` if it is blank or a comment.

    Raises:
        PatternError: Its glob is not valid.
    """
    text = line if line.endswith("\\ ") else line.rstrip()
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    glob = text[1:] if negated else text
    folders_only = glob.endswith("/")
    glob = glob.removesuffix("/")
    glob = glob[1:] if glob.startswith("/") else glob if "/" in glob else f"**/{glob}"
    return Rule(re.compile(translate(glob), re.DOTALL), negated, folders_only)


def translate(glob: str) -> str:
    """The regular expression of a glob whose ``*`` and ``?`` stop at slashes.

    Raises:
        PatternError: It is not valid.
    """
    parts: list[str] = []
    depth = place = 0
    while place < len(glob):
        token = _TOKEN.match(glob, place)
        if token is None:
            raise _bad_glob(glob, "unclosed character class; missing ']'" if glob[place] == "[" else "dangling '\\'")
        place, text = token.end(), token[0]
        if token.lastgroup == "brace" and (depth or text != ","):
            depth += {"{": 1, "}": -1}.get(text, 0)
            if depth < 0:
                raise _bad_glob(glob, "unopened alternate group; missing '{'")
            parts.append({"{": "(?:", "}": ")"}.get(text, "|"))
        else:
            parts.append(_translate_token(glob, token.lastgroup, text))
    if depth:
        raise _bad_glob(glob, "unclosed alternate group; missing '}'")
    return "".join(parts)


def _translate_token(glob: str, kind: str | None, text: str) -> str:
    match kind:
        case "deep":
            return "(?:.*/)?" if text.endswith("/") else ".+"
        case "stars":
            return "[^/]*"
        case "one":
            return "[^/]"
        case "members":
            return _translate_members(glob, text[1:-1])
        case _:
            return re.escape(text[-1])


def _translate_members(glob: str, members: str) -> str:
    negated = members[0] in "!^"
    escaped = re.sub(r"([\\\[\]^&~|])", r"\\\1", members[negated:])
    try:
        return re.compile(f"[{'^' if negated else ''}{escaped}]").pattern
    except re.error as error:
        raise _bad_glob(glob, f"invalid range; {error}") from error


def _bad_glob(glob: str, why: str) -> PatternError:
    return PatternError(f"error parsing glob '{glob}': {why}")


def compile_regexp(pattern: str) -> re.Pattern[str]:
    """Compile what is searched for.

    Raises:
        PatternError: It is not valid, or asks for a line break, which no line has.
    """
    if re.search(r"\n|(?<!\\)(?:\\\\)*\\n", pattern):
        msg = 'the literal "\\n" is not allowed in a regex'
        raise PatternError(msg)
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        msg = f"regex parse error:\n    {pattern}\nerror: {error}"
        raise PatternError(msg) from error


class Search:
    """One run: walks, prints, and remembers whether it found anything and whether anything went wrong."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.has_positive = any(not rule.negated for rule in options.globs)
        self.found = False
        self.failed = False

    def run(self) -> int:
        """Search, print, and return ripgrep's exit code."""
        if self.options.regexp is None:
            self._list_files()
        else:
            regex = compile_regexp(self.options.regexp)
            explicit = not os.path.isdir(self.options.target)  # noqa: PTH112
            for path in [self.options.target] if explicit else (entry.path for entry in self._walk()):
                self._search_file(path, regex, explicit=explicit)
        return 2 if self.failed else 0 if self.found else 1

    def _list_files(self) -> None:
        files = sorted((entry.stat(follow_symlinks=False).st_mtime_ns, entry.path) for entry in self._walk())
        self.found = bool(files)
        sys.stdout.buffer.writelines(os.fsencode(path) + b"\n" for _, path in files)

    def _walk(self) -> Iterator[os.DirEntry[str]]:
        """Every file that is not left out; links are not followed."""
        root = self.options.target.rstrip("/") + "/"
        above: Level | None = None
        if self.options.ignores:
            for folder in reversed(list(_parents(root))):
                above = Level(folder, above)
        stack = [(root, above)]
        while stack:
            folder, above = stack.pop()
            level = Level(folder, above) if self.options.ignores else None
            for entry in self._entries(folder):
                is_folder = entry.is_dir(follow_symlinks=False)
                if not self._wanted(entry, level, root, is_folder=is_folder):
                    continue
                if is_folder:
                    stack.append((entry.path, level))
                elif entry.is_file(follow_symlinks=False):
                    yield entry

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self._complain(folder, error)
            return []

    def _wanted(self, entry: os.DirEntry[str], level: Level | None, root: str, *, is_folder: bool) -> bool:
        rule = _last_match(self.options.globs, entry.path.removeprefix(root), is_folder=is_folder)
        if rule is not None:
            return not rule.negated
        if self.has_positive and not is_folder:
            return False
        ignored = None if level is None else level.ignores(entry.path, is_folder=is_folder)
        if ignored is None:
            return self.options.hidden or not entry.name.startswith(".")
        return not ignored

    def _search_file(self, path: str, regex: re.Pattern[str], *, explicit: bool) -> None:
        try:
            for number, line in enumerate(_lines(path, explicit=explicit), 1):
                if regex.search(line.decode("utf-8", "surrogateescape").removesuffix("\n")):
                    self.found = True
                    data = {"path": _text(os.fsencode(path)), "lines": _text(line), "line_number": number}
                    print(json.dumps({"type": "match", "data": data}))
        except OSError as error:
            self._complain(path, error)

    def _complain(self, path: str, error: OSError) -> None:
        self.failed = True
        _say(f"{path}: {error.strerror}")


def _parents(folder: str) -> Iterator[str]:
    current = folder.rstrip("/")
    while current:
        current = current.rpartition("/")[0]
        yield current or "/"


def _lines(path: str, *, explicit: bool) -> Iterator[bytes]:
    """The lines of a file in UTF-8; a binary file that was not named expressly has none from its first NUL on."""
    with open(path, "rb") as file:  # noqa: PTH123
        head = file.read(_HEAD_BYTES)
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            text = (head + file.read()).decode("utf-16", "replace")
            yield from io.BytesIO(text.encode("utf-8", "replace"))
            return
        if not explicit and b"\0" in head:
            return
        file.seek(len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0)
        for line in file:
            if not explicit and b"\0" in line:
                return
            yield line


def _text(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(data).decode()}


def _say(text: str) -> None:
    sys.stderr.buffer.write(f"rg (Python fallback): {text}\n".encode("utf-8", "replace"))


def parse_arguments(arguments: list[str]) -> Options:
    """Read the arguments; those that ask for what is done anyway are passed over.

    Raises:
        PatternError: A glob is not valid.
    """
    split = arguments.index("--")
    flags, rest = arguments[:split], arguments[split + 1 :]
    values = [(name, value) for name, _, value in (flag.partition("=") for flag in flags)]
    globs = [parse_rule(value) for name, value in values if name == "--glob"]
    return Options(
        regexp=next((value for name, value in values if name == "--regexp"), None),
        globs=tuple(rule for rule in globs if rule is not None),
        ignores="--no-ignore" not in flags,
        hidden="--hidden" in flags,
        target=rest[0],
    )


def main(arguments: list[str]) -> int:
    """Run the program and return its exit code: 0 found, 1 found nothing, 2 something went wrong."""
    try:
        return Search(parse_arguments(arguments)).run()
    except PatternError as error:
        _say(str(error))
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
