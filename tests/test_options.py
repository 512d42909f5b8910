"""The options that several analyses share have one sentence, default and set of choices, in every command and function."""

from __future__ import annotations

import ast
import inspect
import json
import re
from pathlib import Path
from typing import Any

import click
import pytest

import goodgain as gg
from goodgain.cli.program import program
from goodgain.formats.documents import read_document_map
from goodgain.options import FOR_COMMANDS, OPTIONS, spell

#: These write the tables that analyses read: files in `convert`, whether to return them in `read_traces`.
WRITES = {(name, command) for name in ("results", "queries", "costs", "uses", "outcomes") for command in ("convert",)}
#: Option and command: not the order of iterations in a ranking, but that of the searches of several logs of one query.
OF_LOGS = {("order", "convert"), ("order", "annotate")}
#: Option and command -> another default than the declared one: a call without measures has no rel of a measure.
OTHER_COMMANDS = {("rel", "funnel"): 2, ("rel", "pr"): 1}
#: Option and function -> another default than the declared one.
OTHER_FUNCTIONS = {
    ("bounds", "define"): None,  # the smallest and the largest value
    ("costs", "define"): (),  # the columns that a function reads
    ("rel", "funnel"): 2,
    ("costs", "read_traces"): False,
    ("order", "read_traces"): "time",  # as in OF_LOGS
    ("uses", "read_traces"): False,
}

IN_COMMANDS = [
    (name, option)
    for name, command in program.commands.items()
    for option in command.params
    if isinstance(option, click.Option) and option.name in OPTIONS and (option.name, name) not in WRITES | OF_LOGS
]
IN_FUNCTIONS = [
    (name, parameter)
    for name in gg.__all__
    if inspect.isfunction(getattr(gg, name)) or name == "Experiment"
    for parameter in inspect.signature(getattr(gg, name)).parameters.values()
    if parameter.name in OPTIONS and parameter.default is not inspect.Parameter.empty
]


@pytest.mark.parametrize(("command", "option"), IN_COMMANDS, ids=[f"{name}-{one.name}" for name, one in IN_COMMANDS])
def test_a_shared_option_of_a_command_is_the_declared_one(command: str, option: click.Option) -> None:
    declared = OPTIONS[str(option.name)]
    sentence = declared.sentence.format_map({name: one.flag for name, one in OPTIONS.items()})
    assert option.opts == [declared.flag] and str(option.help).startswith(sentence)
    assert tuple(getattr(option.type, "choices", ())) == declared.choices
    assert option.is_flag == (declared.kind is bool)
    assert isinstance(option.type, click.Path) == (declared.kind is Path)
    wanted = OTHER_COMMANDS.get((declared.name, command), declared.default)
    assert (option.to_info_dict()["default"] or None) == (wanted or None)


@pytest.mark.parametrize(
    ("function", "parameter"), IN_FUNCTIONS, ids=[f"{name}-{one.name}" for name, one in IN_FUNCTIONS]
)
def test_a_shared_option_of_a_function_has_the_declared_default(function: str, parameter: inspect.Parameter) -> None:
    wanted = OTHER_FUNCTIONS.get((parameter.name, function), OPTIONS[parameter.name].default)
    assert parameter.default == wanted


def test_every_declared_option_is_shared_by_two_functions_or_commands() -> None:
    users: dict[str, set[str]] = {name: set() for name in OPTIONS}
    for command, option in IN_COMMANDS:
        users[str(option.name)].add(command)
    for function, parameter in IN_FUNCTIONS:
        users[parameter.name].add(function)
    assert {name for name, user in users.items() if len(user) < 2} == set()


#: Options with choices that the other calls of the next test do not take.
EXPERIMENT_ONLY = ("leave_out", "incomplete", "no_good", "correction", "correct_over")


@pytest.mark.parametrize("name", [name for name, option in OPTIONS.items() if option.choices])
def test_a_value_that_is_no_choice_is_said_with_those_that_are(name: str) -> None:
    qrels, run = {"q": {"a": 2}}, {"q": {"a": 1.0}}
    calls: dict[str, Any] = {
        **dict.fromkeys(("gaps", "errors"), lambda **option: gg.read_run(run, **option)),
        "labels": lambda **option: gg.read_qrels(qrels, **option),
        "documents_of": lambda **option: read_document_map("(.)", of=option["documents_of"]),
        "chunks": lambda **option: read_document_map("(.)", **option),
        "order": lambda **option: gg.flatten(run, **option),
        **dict.fromkeys(("missing", "urls"), lambda **option: gg.evaluate(qrels, run, "CG", **option)),
        **dict.fromkeys(EXPERIMENT_ONLY, lambda **option: gg.Experiment(qrels, {"a": run}, **option)),
    }

    with pytest.raises(gg.InputError, match=f"{name}='other'") as raised:
        calls[name](**{name: "other"})
    assert all(choice in str(raised.value) for choice in OPTIONS[name].choices)


#: What an experiment is made of.
_INPUTS = {"self", "qrels", "run", "runs", "systems"}
_WIDE = {"label", "read_traces", "convert_traces"}


@pytest.mark.parametrize("owner", [gg, gg.Experiment], ids=["functions", "methods"])
def test_no_public_function_has_more_than_eight_arguments_of_its_own(owner: Any) -> None:
    names = gg.__all__ if owner is gg else [name for name in vars(owner) if not name.startswith("_")]
    wide = {
        name
        for name in names
        if inspect.isfunction(function := getattr(owner, name))
        and len({*inspect.signature(function).parameters} - {*OPTIONS} - _INPUTS) > 8
    }
    assert wide == (_WIDE if owner is gg else set())


SPELLINGS = json.loads(Path(__file__).with_name("spellings.json").read_text(encoding="utf-8"))


@pytest.mark.each
@pytest.mark.parametrize("case", SPELLINGS, ids=lambda case: case["in commands"])
def test_messages_spell_an_option_as_its_reader_writes_it(case: dict[str, Any]) -> None:
    assert spell(case["option"], *case["value"]) == case["in Python"]
    before = FOR_COMMANDS.set(True)
    assert spell(case["option"], *case["value"]) == case["in commands"]
    FOR_COMMANDS.reset(before)


def _list_spelled() -> set[str]:
    """Return the names that messages of the package pass to `spell` as literals."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in Path(gg.__file__).parent.rglob("*.py")]
    calls = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    named = [call.args[0] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "spell"]
    return {argument.value for argument in named if isinstance(argument, ast.Constant)}


@pytest.mark.slow
def test_messages_spell_options_that_some_command_has() -> None:
    flags = {
        flag.replace("_", "-")
        for command in program.commands.values()
        for param in command.params
        for flag in param.opts
    }
    before = FOR_COMMANDS.set(True)
    assert {name for name in _list_spelled() if spell(name).split()[0] not in flags} == set()
    FOR_COMMANDS.reset(before)


#: An argument and its value in a message, as Python writes it.
WRITTEN = re.compile(r"(?:^|(?<=\s)|(?<=\s\())([a-z_]+)=(?:'[^']*'|True|False|None|(?=[\s,;:.)]|$))")


#: Arguments of functions that no command calls, and the parameters `rel` and `full` of measures.
OF_PYTHON = {
    "nugget_measures.py: full=",
    "any_source.py: label=",
    "providers.py: rel=",
    "mlflow.py: over=",
    "scores.py: bounds=",
    "scores.py: how=",
}


@pytest.mark.slow
def test_no_message_writes_an_option_of_a_command_itself() -> None:
    names = {str(one.name) for command in program.commands.values() for one in command.params} | {"deduplicate"}
    written = set()
    for path in Path(gg.__file__).parent.rglob("*.py"):
        for raised in (
            node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)
        ):
            if isinstance(raised.func, ast.Name) and raised.func.id in ("InputError", "MeasureError", "notice"):
                texts = [one.value for one in ast.walk(raised) if isinstance(one, ast.Constant)]
                found = {name for text in texts if isinstance(text, str) for name in WRITTEN.findall(text)}
                written |= {f"{path.name}: {name}=" for name in found & names}
    assert written == OF_PYTHON
