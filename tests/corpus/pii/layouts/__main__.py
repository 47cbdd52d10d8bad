"""Draw cases and print what fails, grouped: ``python -m tests.corpus.pii.layouts [CASES] [SEED]``."""

from __future__ import annotations

import sys
from collections import defaultdict
from random import Random

from tests.corpus.pii.layouts.draw import draw_case
from tests.corpus.pii.layouts.judge import Failure, failures_of


def summary(cases: int, seed: int) -> str:
    """Failures by what, type, writing, layout, label and disguise, the most frequent first, with the shortest text."""
    rng = Random(seed)
    groups: dict[tuple[str, ...], list[Failure]] = defaultdict(list)
    values = failed = 0
    by_type: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for _ in range(cases):
        case = draw_case(rng)
        failures = failures_of(case)
        failed += bool(failures)
        values += len(case.spans)
        for _, _, value in case.spans:
            by_type[value.type][1] += 1
        for failure in failures:
            by_type[failure.value.type][0] += 1
            tags = (failure.value.type, failure.value.writing, case.layout, case.label, case.disguise)
            groups[failure.what, *tags].append(failure)
    lines = [f"{cases} cases, {values} values: {failed} cases fail, {sum(map(len, groups.values()))} failures"]
    lines += ["by type: " + ", ".join(f"{name} {bad}/{n}" for name, (bad, n) in sorted(by_type.items()))]
    for place, title in enumerate(("what", "type", "writing", "layout", "label", "disguise")):
        counts: dict[str, int] = defaultdict(int)
        for group, members in groups.items():
            counts[group[place]] += len(members)
        ranked = sorted(counts.items(), key=lambda item: -item[1])
        lines.append(f"by {title}: " + ", ".join(f"{name} {count}" for name, count in ranked[:40]))
    for group, members in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        shortest = min(members, key=lambda failure: len(failure.case.text))
        lines.append(f"{len(members):5} {' | '.join(group)}\n        {shortest.value.text!r} in {shortest.case.text!r}")
        lines.append(f"        {shortest.detail}")
    return "\n".join(lines)


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    print(summary(*(arguments + [2_000, 1][len(arguments) :])))
