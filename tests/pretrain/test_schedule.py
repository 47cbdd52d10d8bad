"""Learning rates against the schedules of transformers, and the phases of a run against a walk over its steps."""

from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError
from transformers import get_linear_schedule_with_warmup, get_wsd_schedule

from pretrain.config import DECAY_SHARE
from pretrain.schedule import first_difference, learning_rate, phases

STEPS, PEAK = 100, 0.5


def rates_of_transformers(kind: str, warmup: int, decay: int) -> list[float]:
    """The rates before update 0, 1, …, as the Trainer takes them; theirs is 0 in the first update, ours is not."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=PEAK)
    if kind == "wsd":
        schedule = get_wsd_schedule(optimizer, warmup, decay, num_training_steps=STEPS, decay_type="1-sqrt")
    else:
        schedule = get_linear_schedule_with_warmup(optimizer, warmup, STEPS)
    rates = []
    for _ in range(STEPS + 1):
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return rates


@pytest.mark.parametrize("warmup", [0, 1, 10, 50])
@pytest.mark.parametrize("kind", ["linear", "wsd"])
def test_rates_are_those_of_transformers(tiny, kind: str, warmup: int) -> None:
    """In the warm-up those of the same step, so that the first is above zero; then those of the step before."""
    settings = {"steps": STEPS, "lr": PEAK, "schedule": kind}
    theirs = rates_of_transformers(kind, warmup, round(STEPS * DECAY_SHARE))
    expected = [theirs[step if step <= warmup else step - 1] for step in range(1, STEPS + 1)]
    for config in (tiny(**settings, warmup_share=warmup / STEPS), tiny(**settings, warmup_steps=warmup)):
        ours = [learning_rate(config, step) for step in range(1, STEPS + 1)]
        assert ours == pytest.approx(expected, rel=1e-12)
        assert max(ours) == PEAK and 0 < ours[-1] < PEAK and (ours[0] == PEAK) == (warmup < 2)


def test_a_longer_run_with_a_stable_rate_begins_like_the_shorter_one(tiny) -> None:
    short, long = (tiny(steps=n, schedule="wsd", warmup_steps=10) for n in (100, 200))
    differs = [step for step in range(1, 101) if learning_rate(short, step) != learning_rate(long, step)]
    assert differs == list(range(82, 101))  # the first step of the decay still has the peak


@pytest.mark.parametrize("ends", [(1.0,), (0.5, 1.0), (0.004, 0.3, 0.9, 1.0), (0.33, 0.66, 0.995, 1.0)])
@pytest.mark.parametrize("steps", [1, 7, 100])
def test_phases_hold_the_settings_of_every_step(tiny, steps: int, ends: tuple[float, ...]) -> None:
    """Against a walk over the steps, which counts the sequences of each row length."""
    parts = [
        {"until": end, "masked_share": 0.4 / (n + 1), "sequence_length": (16, 32)[n % 2], "global_batch": 2 + n}
        for n, end in enumerate(ends)
    ]
    config = tiny(steps=steps, phases=parts, warmup_share=0)
    found = phases(config)
    assert [phase.after for phase in found] == [0, *(phase.last for phase in found[:-1])] and found[-1].last == steps
    taken = {16: 0, 32: 0}
    for step in range(1, steps + 1):
        part = next(part for part in parts if step <= round(steps * part["until"]))
        phase = next(phase for phase in found if step <= phase.last)
        assert (phase.length, phase.share) == (part["sequence_length"], part["masked_share"])
        assert phase.config.global_batch == part["global_batch"]
        assert phase.first_sequence(step) == taken[phase.length]
        taken[phase.length] += part["global_batch"]
    assert sum(phase.sequences_until(steps) for phase in found) == sum(taken.values())


def test_a_phase_alone_has_its_settings(tiny) -> None:
    parts = [{"until": 0.5, "sequence_length": 16, "sources": {"일기": 2.0}}, {"masked_share": 0.05}]
    config = tiny(steps=100, phases=parts, masking={"mode": "static"})
    first, second = (phase.config for phase in phases(config))
    assert (first.rows.sequence_length, first.rows.masking.share, first.rows.sources) == (16, 0.15, {"일기": 2.0})
    assert (second.rows.sequence_length, second.rows.masking.share, second.rows.sources) == (32, 0.05, None)
    assert second.rows.masking.mode == "static" and [str(phase) for phase in phases(config)] == [
        "8 rows of 16 tokens, 15.0% masked, sources 일기 x 2", "8 rows of 32 tokens, 5.0% masked"
    ]  # fmt: skip
    assert phases(first)[0].last == 100


def test_a_phase_with_a_peak_has_a_schedule_of_its_own(tiny) -> None:
    parts = [{"until": 0.4}, {"until": 0.5, "lr": 2.0, "warmup_steps": 4}, {"lr": 3.0, "schedule": "wsd"}]
    config = tiny(steps=100, phases=parts)
    alike, wsd = tiny(steps=100), tiny(steps=50, lr=3.0, schedule="wsd", warmup_share=0)
    linear = tiny(steps=10, lr=2.0, warmup_steps=4)
    expected = [learning_rate(alike, step) for step in range(1, 41)]
    expected += [learning_rate(part, step) for part in (linear, wsd) for step in range(1, part.steps + 1)]
    assert [learning_rate(config, step) for step in range(1, 101)] == expected


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"phases": [{"until": 0.5}]}, r"be 1 in the last \(got \[0.5\]\)"),
        ({"phases": [{}, {}]}, "until must rise"),
        ({"schedule": "wsd", "warmup_share": 0.9}, "90.0% of the steps and a decay of 20.0%"),
        ({"steps": 10, "warmup_steps": 10}, "a warm-up of 100.0% of the steps leaves no step for the rest"),
    ],
)
def test_schedules_that_cannot_be_are_refused(tiny, settings: dict, what: str) -> None:
    with pytest.raises(ValidationError, match=what):
        tiny(**settings)


PLAIN = {"steps": 100, "warmup_steps": 10}
STABLE = {**PLAIN, "schedule": "wsd"}
SHORT, SHORTER, LONGER = (STABLE | {"phases": [{"until": end, "sequence_length": 16}, {}]} for end in (0.5, 0.4, 0.6))
FALLING, RISING = (
    STABLE | {"phases": [{"until": end, "masked_share": 0.3}, {"masked_share": 0.1}]} for end in (0.5, 0.4)
)
MIXED = STABLE | {"phases": [{"until": 0.5}, {"sources": {"일기": 2.0}}]}


@pytest.mark.parametrize(
    ("before", "now", "last", "differs"),
    [
        (PLAIN, PLAIN, 100, None),
        (PLAIN, PLAIN | {"warmup_steps": 9}, 100, 1),
        (PLAIN, PLAIN | {"steps": 200}, 100, 12),  # the first step of the decay still has the peak
        (PLAIN, PLAIN | {"steps": 200}, 12, 12),
        (PLAIN, PLAIN | {"steps": 200}, 11, None),
        (STABLE, STABLE | {"steps": 200}, 81, None),
        (STABLE, STABLE | {"steps": 200}, 82, 82),
        (STABLE, STABLE | {"steps": 200}, 100, 82),
        (SHORT, SHORTER, 100, 41),
        (SHORT, SHORTER, 41, 41),
        (SHORT, SHORTER, 40, None),
        (SHORT, LONGER, 100, 51),
        (SHORT, STABLE, 1, 1),
        (STABLE, MIXED, 100, 51),
        (FALLING, RISING, 100, 41),
        (FALLING, RISING, 40, None),
        (FALLING, FALLING | {"steps": 200}, 100, 51),
    ],
)
def test_the_first_step_that_differs_is_found(tiny, before: dict, now: dict, last: int, differs: int | None) -> None:
    assert first_difference(tiny(**before), tiny(**now), last) == differs
    assert first_difference(tiny(**now), tiny(**before), last) == differs
