"""Checks that systems which are compared searched for the same queries, by the ids of their queries."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import combinations
from typing import NamedTuple

from goodgain.counting.coverage import LOW_SHARE, share_of_smaller
from goodgain.errors import InputError

__all__ = ["SystemQueries", "describe_shared_queries"]

#: Query ids that an error shows of each system, and pairs of systems that a notice lists.
_EXAMPLES = 3


class SystemQueries(NamedTuple):
    """The queries of one system's run.

    Attributes:
        judged: those that the qrels judge.
        others: some of those that they do not.
    """

    judged: Collection[str]
    others: Collection[str]

    def __str__(self) -> str:
        return ", ".join(repr(query_id) for query_id in sorted(self.judged or self.others)[:_EXAMPLES])


def describe_shared_queries(systems: Mapping[str, SystemQueries]) -> str | None:
    """Return a sentence for pairs of systems that share less than half the judged queries of the smaller one.

    Raises:
        InputError: two systems that both have queries share no judged one.
    """
    few = []
    searched = {name: (of, set(of.judged)) for name, of in systems.items() if of.judged or of.others}
    for (name, (of, judged)), (other_name, (other, other_judged)) in combinations(searched.items(), 2):
        both = len(judged & other_judged)
        if not both:
            raise InputError(
                f"{name} and {other_name} share no judged query: {name} has {of}, {other_name} has {other}. Give both the "
                "same query ids (goodgain convert does it for logs of several systems), or leave one out."
            )
        if share_of_smaller(both, len(judged), len(other_judged)) < LOW_SHARE:
            few.append(
                f"{name} and {other_name} share {both:,} of {min(len(judged), len(other_judged)):,} judged queries"
            )
    if not few:
        return None
    more = f", and {len(few) - _EXAMPLES:,} more pairs do" if len(few) > _EXAMPLES else ""
    return (
        f"{'; '.join(few[:_EXAMPLES])}{more}. A query that a run lacks counts as one that never searched: check that both "
        "name queries alike."
    )
