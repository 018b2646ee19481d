# ruff: noqa: INP001 - a script beside the pages, not a package
"""The reference of the public names, from signatures and first docstring lines; used by ``_generate.py``.

Sources are parsed and not inspected, so that the text is the same under every Python.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import attrs

__all__ = ["DOCS", "SRC", "first_line", "parse", "reference"]

DOCS = Path(__file__).resolve().parent
SRC = DOCS.parent / "src"

REFERENCE = {
    "quiesce": "",
    "quiesce.errors": "",
    "quiesce.registry": "Values, protocols and helpers that hooks, renderers and adapters need.",
    "quiesce.schedule": "Events, streams and the lane.",
    "quiesce.actors": "What a program may see of the layer that runs calls.",
    "quiesce.journal": "",
    "quiesce.policies": "",
    "quiesce.adapters": "",
    "quiesce.tools": "",
    "quiesce.testing": "See [Testing](testing.md). State machines are in `quiesce.testing.stateful`.",
}
# Of this package only these are for programs; the rest is what the layers above are built from.
PARTS = {"quiesce.actors": ("Pending", "Pipeline")}
_WIDTH = 100
# Methods that one module of quiesce has for another.
INTERNAL = {
    "EventStream": {"publish", "end"},
    "Registry": {"registry", "inherited", "guards_for", "file_tool", "restrict_scope", "file_hook"},
    "Runtime": {"begin", "end", "close"},
    "Scope": {"registry", "own"},
}


Function = ast.FunctionDef | ast.AsyncFunctionDef


@attrs.frozen
class Found:
    """A public name.

    Attributes:
        name: The name.
        node: The statement that defines it, or ``None`` for a module.
        doc: The first line that documents it.
        module: The file that defines it.
    """

    name: str
    node: ast.stmt | None
    doc: str
    module: Path


def parse(path: Path) -> ast.Module:
    """The syntax tree of a source file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def first_line(node: ast.AST) -> str:
    """The first docstring line of a module, class or function; empty if it has none."""
    assert isinstance(node, ast.Module | ast.ClassDef | Function)
    doc = ast.get_docstring(node) or ""
    return doc.partition("\n")[0].replace("``", "`")


def reference() -> str:
    """Every public name of the public packages."""
    parts: list[str] = []
    described: dict[tuple[Path, str], str] = {}
    for package, about in REFERENCE.items():
        names = PARTS.get(package) or _public(_package_file(package))
        found = [resolved for name in names if (resolved := _resolve(_package_file(package), name)) is not None]
        fresh = [item for item in found if (item.module, item.name) not in described]
        described |= {(item.module, item.name): package for item in fresh}
        again = [item.name for item in found if item not in fresh]
        parts += [f"## `{package}`", about or first_line(parse(_package_file(package)))]
        if again:
            parts.append(f"Also here, described above: {', '.join(f'`{name}`' for name in again)}.")
        parts += [_entry(item) for item in sorted(fresh, key=lambda item: item.name.lower())]
    return "\n\n".join(parts)


def _package_file(package: str) -> Path:
    path = SRC.joinpath(*package.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _public(path: Path) -> list[str]:
    for node in parse(path).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    msg = f"{path} has no __all__"
    raise SystemExit(msg)


def _resolve(path: Path, name: str) -> Found | None:
    """Follow a name through the imports to the statement that defines it."""
    body = parse(path).body
    for position, node in enumerate(body):
        if isinstance(node, ast.ImportFrom) and any((alias.asname or alias.name) == name for alias in node.names):
            target = _imported(path, node, name)
            if target is None:
                return None
            return _resolve(target, name) if target.stem != name else None
        if isinstance(node, ast.ClassDef | Function) and node.name == name:
            if not _is_overload(node):
                return Found(name, node, first_line(node), path)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and name in _targets(node):
            return Found(name, node, _text_after(body, position), path)
    msg = f"{path} exports {name}, which is not defined there"
    raise SystemExit(msg)


def _imported(path: Path, node: ast.ImportFrom, name: str) -> Path | None:
    base = path.parent
    for _ in range(node.level - 1):
        base = base.parent
    if not node.level:
        return None
    inside = base.joinpath(*(node.module or name).split("."))
    return inside / "__init__.py" if inside.is_dir() else inside.with_suffix(".py")


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    return [ast.unparse(target) for target in (node.targets if isinstance(node, ast.Assign) else [node.target])]


def _text_after(body: list[ast.stmt], position: int) -> str:
    following = body[position + 1] if position + 1 < len(body) else None
    match following:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text.strip().partition("\n")[0]
        case _:
            return ""


def _entry(item: Found) -> str:
    node = item.node
    doc = item.doc.replace("``", "`")
    members: list[str] = []
    if isinstance(node, ast.ClassDef):
        shown = _constructor(node, item)
        members = _members(node, item)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        shown = _signature(_fullest(parse(item.module).body, node), item.name)
    else:
        assert isinstance(node, ast.Assign | ast.AnnAssign)
        value = "" if node.value is None else _unquoted(node.value)
        # What a private name stands for says nothing to a reader.
        shown = f"{item.name} = {value}" if value and not value.startswith("_") else item.name
    parts = [f"### `{item.name}`"]
    if shown != item.name:
        parts.append(f"```\n{_wrapped(shown)}\n```")
    parts += [part for part in (doc, "\n".join(members)) if part]
    return "\n\n".join(parts)


def _wrapped(shown: str) -> str:
    """A signature with one parameter a line if it is long."""
    opening = shown.find("(")
    if len(shown) <= _WIDTH or opening < 0:
        return shown
    depth, parts, start, end = 0, list[str](), opening + 1, len(shown)
    for position in range(opening, len(shown)):
        char = shown[position]
        depth += (char in "([{") - (char in ")]}")
        if (char == "," and depth == 1) or not depth:
            parts.append(shown[start:position].strip())
            start = position + 1
        if not depth:
            end = position
            break
    return f"{shown[: opening + 1]}\n" + "".join(f"    {part},\n" for part in parts) + shown[end:]


def _unquoted(value: ast.expr) -> str:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    return re.sub(r"\(\s*'(.*)'\s*\)", r"\1", ast.unparse(value))


def _decorators(node: ast.ClassDef | Function) -> list[str]:
    return [ast.unparse(decorator) for decorator in node.decorator_list]


def _is_overload(node: ast.AST) -> bool:
    return isinstance(node, Function) and "overload" in _decorators(node)


def _constructor(node: ast.ClassDef, item: Found) -> str:
    if any(decorator.startswith(("attrs.frozen", "attrs.define")) for decorator in _decorators(node)):
        fields = [_field(statement) for statement in node.body if isinstance(statement, ast.AnnAssign)]
        return f"{item.name}({', '.join(field for field in fields if field)})"
    init = _init(node, item.module)
    if init is None:
        return item.name
    shown = _signature(init, item.name).removesuffix(" -> None")
    # What is made by the library takes what only the library has.
    return shown if shown == f"{item.name}()" or _is_error(node, item.module) else item.name


def _field(statement: ast.AnnAssign) -> str:
    name, kind = ast.unparse(statement.target), _unquoted(statement.annotation)
    if name.startswith("_") or kind.startswith("ClassVar"):
        return ""
    value = statement.value
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "attrs.field":
        given = {keyword.arg: keyword.value for keyword in value.keywords}
        if "factory" in given:
            made = ast.unparse(given["factory"])
            return f"{name}: {kind} = {'{}' if 'dict' in made else '[]' if 'list' in made else made + '()'}"
        if "default" not in given:
            return f"{name}: {kind}"
        value = given["default"]
    if value is None:
        return f"{name}: {kind}"
    return f"{name}: {kind} = {re.sub(r'frozenset.*', '()', ast.unparse(value))}"


def _bases(node: ast.ClassDef, module: Path) -> Iterator[tuple[ast.ClassDef, Path]]:
    """The base classes that quiesce defines, the nearest first."""
    for base in node.bases:
        name = ast.unparse(base)
        try:
            found = _resolve(module, name)
        except SystemExit:
            continue
        if found is not None and isinstance(found.node, ast.ClassDef):
            yield found.node, found.module
            yield from _bases(found.node, found.module)


def _init(node: ast.ClassDef, module: Path) -> ast.FunctionDef | None:
    for owner, _ in [(node, module), *_bases(node, module)]:
        for statement in owner.body:
            if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
                return statement
    return None


def _is_error(node: ast.ClassDef, module: Path) -> bool:
    return any(ast.unparse(base).endswith(("Error", "Exception")) for base in node.bases) or any(
        _is_error(base, where) for base, where in _bases(node, module)
    )


def _members(node: ast.ClassDef, item: Found) -> list[str]:
    """Methods, properties and enum members; those of base classes after its own."""
    lines: dict[str, str] = {}
    hidden = INTERNAL.get(item.name, set())
    is_enum = any(ast.unparse(base) == "enum.Enum" for base in node.bases)
    for owner, _ in [(node, item.module), *_bases(node, item.module)]:
        for position, statement in enumerate(owner.body):
            if isinstance(statement, Function):
                if not statement.name.startswith("_") and not _is_overload(statement) and statement.name not in hidden:
                    lines.setdefault(statement.name, _method(statement, _fullest(owner.body, statement)))
            elif is_enum and isinstance(statement, ast.Assign):
                name = ast.unparse(statement.targets[0])
                text = _text_after(owner.body, position).replace("``", "`")
                lines[name] = f"- `{name} = {ast.unparse(statement.value)}`" + (f": {text}" if text else "")
    return list(lines.values())


def _fullest(body: list[ast.stmt], node: Function) -> Function:
    """The overload that says most about the parameters, or the function itself."""
    overloads = [
        other for other in body if isinstance(other, Function) and other.name == node.name and _is_overload(other)
    ]
    return max(
        [*overloads, node], key=lambda one: len(one.args.args) + len(one.args.posonlyargs) + len(one.args.kwonlyargs)
    )


def _method(node: Function, shown: Function) -> str:
    doc = first_line(node)
    if "property" in _decorators(node):
        kind = "" if node.returns is None else f": {_unquoted(node.returns)}"
        return f"- `{node.name}{kind}`: {doc}"
    return f"- `{_signature(shown, node.name)}`: {doc}"


def _signature(node: Function, name: str) -> str:
    arguments = _arguments(node.args)
    returns = "" if node.returns is None else f" -> {_unquoted(node.returns)}"
    if "asynccontextmanager" in _decorators(node):
        return f"async with {name}({arguments})"
    return f"{'await ' if isinstance(node, ast.AsyncFunctionDef) else ''}{name}({arguments}){returns}"


def _arguments(given: ast.arguments) -> str:
    """The parameters, spaced as formatters do, without ``self`` and ``cls``."""
    positional = [*given.posonlyargs, *given.args]
    defaults = [*[None] * (len(positional) - len(given.defaults)), *given.defaults]
    parts = [_parameter(argument, default) for argument, default in zip(positional, defaults, strict=True)]
    if given.posonlyargs:
        parts.insert(len(given.posonlyargs), "/")
    if positional and positional[0].arg in ("self", "cls"):
        parts = parts[1:]
    if parts[:1] == ["/"]:
        parts = parts[1:]
    if given.vararg is not None:
        parts.append(f"*{_parameter(given.vararg, None)}")
    elif given.kwonlyargs:
        parts.append("*")
    parts += [
        _parameter(argument, default) for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    ]
    if given.kwarg is not None:
        parts.append(f"**{_parameter(given.kwarg, None)}")
    return ", ".join(parts)


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    kind = "" if argument.annotation is None else f": {_unquoted(argument.annotation)}"
    if default is None:
        return argument.arg + kind
    return f"{argument.arg}{kind} = {ast.unparse(default)}" if kind else f"{argument.arg}={ast.unparse(default)}"
