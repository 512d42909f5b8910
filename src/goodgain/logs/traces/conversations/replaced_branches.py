"""Finds the last branch of a conversation that is stored as a tree, for the format `shape`.

Each message names its parent. An edited prompt or a retry is a second child of the same parent: it replaces the first child,
with all messages below.
"""

from typing import Any

from goodgain.logs.traces.expected_values import id_or_none
from goodgain.logs.traces.tool_outputs.result_objects import normalise_key, normalise_keys

_IDS = ("id", "uuid", "messageid")
_PARENTS = ("parentid", "parentuuid", "parentmessageid", "parent")
#: Normalised roles of the messages that replace others. Answers of tools to one message stand side by side.
_SPEAKERS = {"user", "usermessage", "human", "humanmessage", "assistant", "assistantmessage", "ai", "aimessage"}
_ROLES = ("role", "type", "from")


def find_replaced(members: list[Any]) -> list[int]:
    """Return the positions of the messages in a list that stand on a replaced branch. The last line is on the live branch."""
    parents = _find_parents(members)
    if not parents:
        return []

    # The last line of a branch decides whether the branch is live. A child stands after its parent.
    last_below = list(range(len(members)))
    for index in sorted(parents, reverse=True):
        parent = parents[index]
        last_below[parent] = max(last_below[parent], last_below[index])

    speaking: dict[int, list[int]] = {}
    for index, parent in parents.items():
        if _is_spoken(members[index]):
            speaking.setdefault(parent, []).append(index)
    replaced: set[int] = set()
    for children in speaking.values():
        live = max(children, key=lambda index: last_below[index])
        replaced.update(index for index in children if index != live)
    for index in sorted(parents):
        if parents[index] in replaced:
            replaced.add(index)
    return sorted(replaced)


def _find_parents(members: list[Any]) -> dict[int, int]:
    """Map the position of each object to the position of its parent, if the parent stands before it."""
    positions: dict[str, int] = {}
    parents: dict[int, int] = {}
    for index, member in enumerate(members):
        if not isinstance(member, dict):
            continue
        keys = {name: key for key, name in normalise_keys(tuple(member))}
        own_id = _find_id(member, keys, _IDS)
        parent = _find_id(member, keys, _PARENTS)
        if parent in positions:
            parents[index] = positions[parent]
        if own_id is not None:
            positions[own_id] = index

    return parents


def _find_id(member: dict[str, Any], keys: dict[str, str], names: tuple[str, ...]) -> str | None:
    return next(
        (name_of_message for name in names if name in keys and (name_of_message := id_or_none(member[keys[name]]))),
        None,
    )


def _is_spoken(member: dict[str, Any]) -> bool:
    """Return whether an object, or an object directly inside it, is a message of the user or the agent."""
    holders = [member, *(value for value in member.values() if isinstance(value, dict))]
    roles = (holder.get(name) for holder in holders for name in _ROLES)
    return any(isinstance(role, str) and normalise_key(role) in _SPEAKERS for role in roles)
