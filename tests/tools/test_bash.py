"""``bash`` runs one command in the foreground and tells how it ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest
import trio
import trio.testing

from quiesce.errors import ToolError
from quiesce.registry import EXCLUSIVE, Arguments, Failure, JsonValue, Success, ToolDefinition, freeze
from quiesce.tools import bash_tool, command_environment

CallTool = Callable[..., Awaitable[Any]]
SignalFrom = Callable[[str], Callable[[], Awaitable[str]]]

CUT = "[output truncated; full output: (unavailable)]"


@pytest.fixture
def bash(tmp_path: Path) -> ToolDefinition:
    """The tool, with little room for output and a short grace."""
    return bash_tool(tmp_path, output_limit=1000, grace=0.1)


def rendered(bash: ToolDefinition, **changes: JsonValue) -> object:
    """How a value is shown that differs in ``changes`` from one of a silent success."""
    silent: dict[str, JsonValue] = {"text": "", "truncated": False}
    value: dict[str, JsonValue] = {"exitCode": 0, "signal": None, "timedOut": False, "timeoutMs": 5}
    value |= {"stdout": silent, "stderr": silent, **changes}
    return bash.output.render(cast("Arguments", freeze({})), freeze(value))


def test_its_parameters_are_those_of_the_catalogue(bash: ToolDefinition) -> None:
    """Names, types and what is required are fixed; nothing else of the process is the model's to choose."""
    properties = cast("dict[str, dict[str, JsonValue]]", bash.parameters["properties"])
    types = {name: node["type"] for name, node in properties.items()}
    assert types == {"command": "string", "description": "string", "timeoutMs": "number", "workdir": "string"}
    assert list(cast("list[str]", bash.parameters["required"])) == ["command", "description"]
    assert bash.concurrency == EXCLUSIVE


async def test_its_value_tells_how_the_command_ended(bash: ToolDefinition, call_tool: CallTool) -> None:
    """The whole value of a plain command."""
    called = await call_tool(bash, command="echo out; echo err >&2; exit 3", description="say")
    assert called.value == {
        "kind": "foreground",
        "exitCode": 3,
        "signal": None,
        "timedOut": False,
        "aborted": False,
        "timeoutMs": 120_000,
        "stdout": {"text": "out\n", "truncated": False},
        "stderr": {"text": "err\n", "truncated": False},
    }
    assert called.text == "out\n[stderr]\nerr\n[exit code: 3]"


async def test_a_killed_command_tells_the_signal(bash: ToolDefinition, call_tool: CallTool) -> None:
    """A signal takes the place of the exit code."""
    called = await call_tool(bash, command="kill -9 $$", description="die")
    assert (called.value["exitCode"], called.value["signal"]) == (None, "SIGKILL")
    assert called.text == "(no output)\n[killed by signal: SIGKILL]"


async def test_a_command_that_takes_too_long_is_a_result(
    bash: ToolDefinition, call_tool: CallTool, signal_from: SignalFrom, running_clock: trio.testing.MockClock
) -> None:
    """The time that ran out is no error, and the output so far is there."""
    ready = signal_from("ready")
    calls: list[Any] = []

    async def call() -> None:
        script = "echo begun; echo > ready; exec sleep 60"
        calls.append(await call_tool(bash, command=script, description="wait", timeoutMs=50_000))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        await ready()
        running_clock.jump(50)
    assert calls[0].value["timedOut"] is True
    assert calls[0].text == "begun\n[timed out after 50000ms]\n[killed by signal: SIGTERM]"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "(no output)"),
        ({"stdout": {"text": "a", "truncated": False}}, "a"),
        ({"stdout": {"text": "a\n", "truncated": False}}, "a\n"),
        ({"stderr": {"text": "b\n", "truncated": False}}, "[stderr]\nb\n"),
        ({"stdout": {"text": "a", "truncated": True}}, f"a\n{CUT}"),
        (
            {"stdout": {"text": "a\n", "truncated": True}, "stderr": {"text": "b", "truncated": True}, "exitCode": 1},
            f"a\n{CUT}\n[stderr]\nb\n{CUT}\n[exit code: 1]",
        ),
        ({"timedOut": True}, "(no output)\n[timed out after 5ms]"),
        (
            {"timedOut": True, "exitCode": None, "signal": "SIGKILL"},
            "(no output)\n[timed out after 5ms]\n[killed by signal: SIGKILL]",
        ),
    ],
)
def test_every_marker_has_its_place(bash: ToolDefinition, changes: dict[str, JsonValue], text: str) -> None:
    """Each marker is a line of its own, in the fixed order, the way it ended last."""
    assert rendered(bash, **changes) == text


async def test_long_output_is_cut_at_its_beginning(bash: ToolDefinition, call_tool: CallTool) -> None:
    """What is kept is the end, and the text says that the rest is not to be had."""
    called = await call_tool(bash, command="seq 1 1000", description="count")
    assert called.value["stdout"]["truncated"] is True
    assert len(called.value["stdout"]["text"]) == 1000
    assert called.text.endswith(f"\n1000\n{CUT}")


async def test_a_command_that_starts_with_a_dash_is_a_command(bash: ToolDefinition, call_tool: CallTool) -> None:
    """The command never becomes an option of the shell."""
    called = await call_tool(bash, command="--version", description="not an option")
    assert called.value["exitCode"] == 127


@pytest.mark.parametrize("blank", ["", " \n\t"])
@pytest.mark.parametrize("name", ["command", "description"])
async def test_a_blank_text_is_refused(bash: ToolDefinition, call_tool: CallTool, name: str, blank: str) -> None:
    """Command and description must say something."""
    with pytest.raises(ToolError, match=f"^{name} must not be blank$"):
        await call_tool(bash, **({"command": "true", "description": "nothing"} | {name: blank}))


@pytest.mark.parametrize("given", [0, -1, -0.5])
async def test_a_timeout_must_be_positive(bash: ToolDefinition, call_tool: CallTool, given: float) -> None:
    """No time at all is not a timeout."""
    with pytest.raises(ToolError, match="timeoutMs must be more than 0"):
        await call_tool(bash, command="true", description="nothing", timeoutMs=given)


@pytest.mark.parametrize(("given", "effective"), [(1e9, 600_000), (10**400, 600_000), (599_999.5, 599_999.5)])
async def test_a_timeout_is_capped(bash: ToolDefinition, call_tool: CallTool, given: float, effective: float) -> None:
    """A longer one than ten minutes becomes ten minutes, and the value says which one held."""
    called = await call_tool(bash, command="true", description="nothing", timeoutMs=given)
    assert called.value["timeoutMs"] == effective


async def test_a_relative_workdir_starts_in_the_workspace(
    bash: ToolDefinition, call_tool: CallTool, tmp_path: Path
) -> None:
    """Commands run in the workspace, or in the folder that the call names."""
    (tmp_path / "sub").mkdir()
    for given, expected in (({}, tmp_path), ({"workdir": "sub"}, tmp_path / "sub"), ({"workdir": "/"}, Path("/"))):
        called = await call_tool(bash, command="pwd", description="where", **given)
        assert called.value["stdout"]["text"] == f"{expected}\n"


async def test_a_workdir_that_is_not_there_is_an_error(
    bash: ToolDefinition, call_tool: CallTool, tmp_path: Path
) -> None:
    """The message names the folder."""
    with pytest.raises(ToolError, match=f"cannot run in the folder '{tmp_path}/nowhere'"):
        await call_tool(bash, command="true", description="nothing", workdir="nowhere")


async def test_secrets_do_not_reach_the_command(
    bash: ToolDefinition, call_tool: CallTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables that look secret, and quiesce's own, are left out; pagers and colours are off."""
    monkeypatch.setenv("MY_api_Token", "hidden")
    monkeypatch.setenv("QUIESCE_HOME", "hidden")
    monkeypatch.setenv("ORDINARY", "shown")
    monkeypatch.setenv("PAGER", "less")
    names = "MY_api_Token|QUIESCE|ORDINARY|PAGER|^TERM|COLOR"
    called = await call_tool(bash, command=f"env | grep -E '{names}' | sort", description="list variables")
    assert called.value["stdout"]["text"].splitlines() == [
        "GIT_PAGER=cat",
        "NO_COLOR=1",
        "ORDINARY=shown",
        "PAGER=cat",
        "QUIESCE_SHELL=1",
        "TERM=dumb",
    ]


def test_every_name_that_looks_secret_is_left_out() -> None:
    """The rule, on a made-up environment."""
    names = ["AWS_SECRET_ACCESS_KEY", "keyboard", "DB_PASSWORD", "githubtoken", "QUIESCE_X", "PATH", "MYQUIESCE_X"]
    kept = command_environment(dict.fromkeys(names, "x"))
    assert {name for name, value in kept.items() if value == "x"} == {"PATH", "MYQUIESCE_X"}


async def test_a_cancelled_call_leaves_no_process(
    bash: ToolDefinition, call_tool: CallTool, signal_from: SignalFrom
) -> None:
    """Cancelling the call ends its tree first; the fixture looks for what is left."""
    ready = signal_from("ready")

    async def call() -> None:
        script = "trap '' TERM; (trap '' TERM; sleep 60) & echo > ready; sleep 60"
        await call_tool(bash, command=script, description="wait")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        await ready()
        nursery.cancel_scope.cancel()
    assert nursery.cancel_scope.cancelled_caught


async def test_its_cards_are_terminals(bash: ToolDefinition, call_tool: CallTool) -> None:
    """The call shows command and description, the result its output without the exit marker."""
    assert bash.present_call is not None
    arguments = {"command": "ls", "description": "List", "workdir": "sub"}
    call_card: dict[str, JsonValue] = {"type": "terminal", "title": "ls", "description": "List"}
    assert bash.present_call(cast("Arguments", freeze(arguments))) == {**call_card, "cwd": "sub"}
    del arguments["workdir"]
    assert bash.present_call(cast("Arguments", freeze(arguments))) == call_card
    called = await call_tool(bash, command="echo hi; exit 2", description="x")
    assert called.card == {"type": "terminal", "output": "hi", "exitCode": 2}
    called = await call_tool(bash, command="kill -9 $$", description="x")
    assert called.card == {"type": "terminal", "output": "(no output)", "signal": "SIGKILL"}


async def test_output_that_looks_like_a_marker_stays_output(bash: ToolDefinition, call_tool: CallTool) -> None:
    """The card's ending comes from the metadata, not from the text."""
    called = await call_tool(bash, command="echo '[exit code: 7]'", description="fool the card")
    assert called.card == {"type": "terminal", "output": "[exit code: 7]", "exitCode": 0}


def test_a_result_without_metadata_has_no_card(bash: ToolDefinition) -> None:
    """Results of sub-calls, or of a journal that another version wrote."""
    assert bash.present_result is not None
    arguments = cast("Arguments", freeze({"command": "ls", "description": "List"}))
    assert bash.present_result(arguments, Success("c1", "bash", 0, None, ())) is None


def test_a_failure_is_shown_as_fenced_text(bash: ToolDefinition, failed: Callable[[str], Failure]) -> None:
    """The fence is longer than any in the message."""
    assert bash.present_result is not None
    arguments = cast("Arguments", freeze({"command": "ls", "description": "List"}))
    card = bash.present_result(arguments, failed("it has ```` in it"))
    text = "`````console\nError: it has ```` in it\n`````"
    content = [{"type": "text", "text": text}]
    assert card == {"type": "generic", "title": "ls", "kind": "execute", "content": content}
