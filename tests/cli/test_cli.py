"""The command line, as a person meets it: real processes, files and signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quiesce.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
SOURCE = Path(__file__).parents[2] / "src"


def quiesce(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "quiesce", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_survey_example_succeeds_and_its_readers_overlap() -> None:
    """``examples/survey.json`` does what its page says: four calls start before one settles; exit code 0."""
    done = quiesce("run", str(EXAMPLES / "survey.json"), "--workspace", str(SOURCE))
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["started"] * 4
    assert [line.split()[1] for line in lines if line.startswith("committed")] == list("012345")
    assert "[5] read (toolu_06): ok, effect completed" in done.stdout
    assert "    __init__.py" in done.stdout


def test_the_hanging_example_times_out_and_leaves_nothing_running() -> None:
    """``examples/hanging_test.json``: ``TOOL_TIMEOUT``, and the next call finds no process; exit code 1."""
    done = quiesce("run", str(EXAMPLES / "hanging_test.json"), "--deadline", "2")
    assert done.returncode == 1, done.stderr
    assert "[1] bash (call_good): ok" in done.stdout
    assert "[2] bash (call_hanging): FAILED TOOL_TIMEOUT, effect unknown" in done.stdout
    assert "    Error: tool call timed out after 2000ms" in done.stdout
    assert "    nothing is left running" in done.stdout


def test_the_mixed_example_keeps_its_order_and_prints_the_next_messages() -> None:
    """``examples/mixed.json --json``: one output item per call, in order, in the same form; exit code 1."""
    done = quiesce("run", str(EXAMPLES / "mixed.json"), "--json")
    assert done.returncode == 1, done.stderr
    items = json.loads(done.stdout)
    assert [item["call_id"] for item in items] == [f"call_{n}" for n in range(1, 6)]
    assert {item["type"] for item in items} == {"function_call_output"}
    outputs = [item["output"] for item in items]
    assert outputs[0] == 'Error: unknown tool "search_web"'
    assert outputs[1] == 'Error: invalid arguments: "arguments" must be an object'
    assert outputs[2] == 'Error: invalid arguments: missing required property "file_path"'
    assert outputs[3].endswith("[exit code: 2]")
    assert outputs[4] == "still fine\n"


def plain(*commands: str) -> str:
    """A plain list of bash calls."""
    calls = [
        {"id": f"c{i}", "name": "bash", "arguments": {"command": command, "description": "Do it now"}}
        for i, command in enumerate(commands)
    ]
    return json.dumps(calls)


def test_a_plain_list_is_read_from_standard_input() -> None:
    """``-`` reads standard input; all succeeded gives exit code 0, also for no calls at all."""
    done = quiesce("run", "-", stdin=plain("echo hello"))
    assert (done.returncode, done.stdout) == (0, "[0] bash (c0): ok, effect completed\n    hello\n")
    assert quiesce("run", "-", "--json", stdin="[]").stdout == "[]\n"


def wait_until(condition: Callable[[], bool]) -> None:
    """Let other processes run until something they do is seen; bounded."""
    give_up = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < give_up, "what was waited for did not happen"
        os.sched_yield()


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_settles_prints_every_outcome_and_exits_130(presses: int, tmp_path: Path) -> None:
    """The running command's whole group is gone before its outcome; a second Ctrl-C loses nothing."""
    started, errors = tmp_path / "started", tmp_path / "errors"
    # It traps TERM and takes a while to end, so that a second Ctrl-C finds it still settling.
    command = f"trap 'sleep 0.5; exit' TERM; echo $$ > {started}.new; mv {started}.new {started}; sleep 600 & wait"
    message = tmp_path / "message.json"
    message.write_text(plain(command, "echo never"))
    with (
        errors.open("w") as stderr,
        subprocess.Popen(
            [sys.executable, "-m", "quiesce", "run", str(message)], stdout=subprocess.PIPE, stderr=stderr, text=True
        ) as process,
    ):
        wait_until(started.exists)
        for told in ("SIGINT: cancelling", "still settling: call 0")[:presses]:
            process.send_signal(signal.SIGINT)
            wait_until(lambda told=told: told in errors.read_text())  # type: ignore[misc]
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "[0] bash (c0): FAILED ABORTED, effect unknown" in out
    assert "[1] bash (c1): FAILED ABORTED_BEFORE_DISPATCH, effect not_started" in out
    with pytest.raises(ProcessLookupError):
        os.killpg(int(started.read_text()), 0)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "cannot be read: No such file or directory; give the path of a JSON file"),
        (b"", "is empty; it must hold one message with tool calls"),
        (b'{"role": "assistant",\n "tool_calls": [}', "line 2 column 17: not JSON"),
        (b"[NaN]", "not JSON"),
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        (b'{"weather": "fine"}', "expected"),
        (b'{"role": "assistant", "tool_calls": [{"id": "x", "type": "function"}]}', "tool_calls[0]"),
    ],
)
def test_bad_input_names_the_file_the_place_and_the_remedy(
    content: bytes | None, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, nothing run, and one line that says what to do."""
    file = tmp_path / "message.json"
    if content is not None:
        file.write_bytes(content)
    assert main(["run", str(file)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"quiesce: {file}: ")
    assert told in shown.err


@pytest.mark.parametrize("options", [["--max-parallel", "0"], ["--deadline", "-1"], ["--deadline", "nan"], ["--what"]])
def test_bad_options_exit_2(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """As every command line does."""
    with pytest.raises(SystemExit) as caught:
        main(["run", "x.json", *options])
    assert caught.value.code == 2


def test_a_workspace_that_is_no_directory_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the remedy."""
    file = tmp_path / "calls.json"
    file.write_text("[]")
    assert main(["run", str(file), "--workspace", str(file)]) == 2
    assert "is not a directory; make it first" in capsys.readouterr().err


def test_tools_lists_class_and_parameters_and_schemas_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """What a person wants to know, and what a model is shown."""
    assert main(["tools"]) == 0
    listed = capsys.readouterr().out
    assert "bash  (exclusive)" in listed
    assert "read  (parallel)" in listed
    assert "edit  (depends on its arguments)" in listed
    assert "    file_path*: string" in listed
    assert main(["tools", "--schemas"]) == 0
    schemas: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    assert [schema["name"] for schema in schemas] == [
        "bash",
        "read",
        "write",
        "edit",
        "str_replace_editor",
        "glob",
        "grep",
    ]
    assert all(schema.keys() == {"name", "description", "parameters"} for schema in schemas)


def test_a_deep_message_and_lone_surrogates_do_not_crash_it() -> None:
    """5,000 levels of arguments are refused by the schema, not by a recursion limit; surrogates are escaped."""
    deep = "[" * 5000 + "]" * 5000
    message = f'[{{"name": "bash", "arguments": {{"command": {deep}, "description": "x"}}}}, {{"name": "\\ud800"}}]'
    done = quiesce("run", "-", stdin=message)
    assert done.returncode == 1, done.stderr[-500:]
    assert '"command" must be a string' in done.stdout
    assert "\\ud800" in done.stdout
