"""Compares random values with the hosts, as many as are asked for: python -m tests.support.many_values 1000000.

Prints the seeds, how many values were compared, and each difference. Exit status 1 if there is any.
"""

from __future__ import annotations

import sys
from random import Random

from tests.measures.test_ranked_values import differing
from tests.support.ranking_cases import BELOW_ZERO, BY_GDEVAL, FRACTIONAL, JUDGED_ONLY, WHOLE, WITH_PROVIDER, make_case

QUERIES = 400
WITH_REL = [measure for measure in WITH_PROVIDER if "gains" not in measure.params and measure.NAME != "Judged"]
#: Measures, the labels they are compared on, and how far values may be apart.
COMPARED = [
    (WITH_PROVIDER, (*WHOLE, *BELOW_ZERO), 1e-12),
    (JUDGED_ONLY, (*WHOLE, -1, -1), 1e-12),
    (WITH_REL, (*WHOLE, *FRACTIONAL), 1e-12),
    (BY_GDEVAL, (*WHOLE, *BELOW_ZERO), 5.0001e-6),
]


def main(wanted: int, first_seed: int) -> int:
    """Compare at least `wanted` values."""
    compared = differences = 0
    seed = first_seed
    while compared < wanted:
        for measures, labels, tolerance in COMPARED:
            case = make_case(Random(seed), queries=QUERIES, labels=labels)
            odd = differing(measures, case, tolerance=tolerance)
            compared += len(measures) * len(case.labels)
            differences += len(odd)
            for difference in odd[:10]:
                print("seed", seed, *difference, flush=True)
        seed += 1
        print(f"seeds {first_seed}..{seed - 1}: {compared:,} values compared, {differences} differences", flush=True)

    return int(differences > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1))
