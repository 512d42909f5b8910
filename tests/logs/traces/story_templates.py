"""The story in formats that are lists of messages, items or lines: `story_templates.json` has a template for each.

A turn holds `$steps`, a step holds `$calls` and `$answers` (each a `reply`), and `log` holds all `$items`. Of
`{"$failed": [one, other]}` a failed call takes the one; `$more` adds its fields; an object with `$if` is left out where that
list is empty. `#place` and `#next` are an item's number, from 0 and from 1.
"""

from __future__ import annotations

import json
from pathlib import Path
from string import Template

from .story import Call, Json, Story, Writer, asked

_TEMPLATES: dict[str, Json] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
#: Names whose members become members of the list that names them.
_LISTS = ("steps", "calls", "answers")


def _fill(template: Json, names: dict[str, Json]) -> Json:
    if isinstance(template, str):
        name = template.removeprefix("$")
        return names[name] if name != template and name in names else Template(template).safe_substitute(names)

    if isinstance(template, list):
        held: list[Json] = []
        for one in template:
            if isinstance(one, dict) and "$if" in one and not names[one["$if"]]:
                continue
            held += _fill(one, names) if one in [f"${name}" for name in _LISTS] else [_fill(one, names)]
        return held

    if not isinstance(template, dict):
        return template
    for choice in ("$failed", "$answered"):
        if choice in template:
            return _fill(template[choice][not names[choice[1:]]], names)
    filled = {key: _fill(value, names) for key, value in template.items() if key not in ("$more", "$if")}
    return filled | (_fill(template["$more"], names) if "$more" in template else {})


def _name_parts(call: Call) -> dict[str, Json]:
    parts = {name: getattr(call, name) for name in ("id", "tool", "text", "output", "failed", "answered")}
    return parts | {"asked": asked(call), "asked_text": json.dumps(asked(call))}


def _make_writer(form: Json) -> Writer:
    def write_step(step: list[Call]) -> list[Json]:
        calls = [_fill(form["call"], _name_parts(call)) for call in step]
        answers = [_fill(form["reply"], _name_parts(call)) for call in step if call.answered]
        return list(_fill(form["step"], {"calls": calls, "answers": answers}))

    def write(story: Story) -> str:
        items = list(form.get("before", []))
        for turn in story.turns[-1:] if form.get("last turn") else story.turns:
            steps = [item for step in turn.steps for item in write_step(step)]
            items += _fill(form["turn"], {"steps": steps, "user": turn.user, "answer": turn.answer})
        texts = [
            json.dumps(item).replace('"#next"', str(place + 1)).replace("#place", str(place))
            for place, item in enumerate(items)
        ]
        if form.get("lines"):
            return "".join(f"{text}\n" for text in texts)
        return json.dumps(_fill(form.get("log", "$items"), {"items": "$items"})).replace(
            '"$items"', f"[{', '.join(texts)}]"
        )

    return write


def _name_file(form: Json) -> str:
    return "story.jsonl" if form.get("lines") else "story.json"


#: For each format its writer and the name of its file.
TEMPLATE_WRITERS: dict[str, tuple[Writer, str]] = {
    name: (_make_writer(form), _name_file(form)) for name, form in _TEMPLATES.items()
}
