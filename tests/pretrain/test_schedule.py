"""Learning rates against the schedules of transformers, and the phases of a run against a walk over its steps."""

from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError
from transformers import get_linear_schedule_with_warmup, get_wsd_schedule

from pretrain.config import DECAY_SHARE, PretrainConfig
from pretrain.schedule import Phase, first_difference, learning_rate, of_phase, phases

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


def lengths_and_shares_slowly(config: PretrainConfig) -> list[tuple[int, float]]:
    rows, found = config.rows, []
    for step in range(1, config.steps + 1):
        is_short = rows.short_length is not None and step <= round(config.steps * rows.short_length_share)
        shares = [part.share for part in rows.masking.shares if step <= round(config.steps * part.until)]
        length = rows.short_length if is_short else rows.sequence_length
        found.append((int(length or 0), shares[0] if shares else rows.masking.share))
    return found


@pytest.mark.parametrize("short_length", [None, 16])
@pytest.mark.parametrize("ends", [(), (1.0,), (0.5, 1.0), (0.004, 0.3, 0.9, 1.0), (0.33, 0.66, 0.995, 1.0)])
@pytest.mark.parametrize("steps", [1, 7, 100])
def test_phases_hold_the_length_and_the_share_of_every_step(
    tiny, steps: int, ends: tuple[float, ...], short_length: int | None
) -> None:
    shares = [{"share": 0.4 / (place + 1), "until": end} for place, end in enumerate(ends)]
    config = tiny(steps=steps, short_length=short_length, masking={"shares": shares}, warmup_share=0)
    found = phases(config)
    assert [phase.after for phase in found] == [0, *(phase.last for phase in found[:-1])] and found[-1].last == steps
    walked = [(phase.length, phase.share) for phase in found for _ in range(phase.after, phase.last)]
    assert walked == lengths_and_shares_slowly(config)
    begins = {length: walked.index((length, share)) for length, share in reversed(walked)}
    assert all(phase.length_after == begins[phase.length] for phase in found)


def test_phases_of_a_short_length_and_of_falling_shares_overlap(tiny) -> None:
    shares = [{"share": 0.3, "until": 0.5}, {"share": 0.15, "until": 0.95}, {"share": 0.05}]
    config = tiny(steps=100, short_length=16, masking={"shares": shares, "mode": "static"})
    assert phases(config) == [
        Phase(16, 0.3, 0, 50, 0), Phase(16, 0.15, 50, 90, 0), Phase(32, 0.15, 90, 95, 90), Phase(32, 0.05, 95, 100, 90)
    ]  # fmt: skip
    alone = of_phase(config, phases(config)[1])
    assert (alone.rows.sequence_length, alone.rows.masking.share, alone.rows.masking.mode) == (16, 0.15, "static")
    assert phases(alone) == [Phase(16, 0.15, 0, 100, 0)]


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"masking": {"shares": [{"share": 0.3, "until": 0.5}]}}, r"be 1 in the last \(got \[0.5\]\)"),
        ({"masking": {"shares": [{"share": 0.3}, {"share": 0.2}]}}, "until must rise"),
        ({"schedule": "wsd", "warmup_share": 0.9}, "90.0% of the steps and a decay of 20.0%"),
        ({"steps": 10, "warmup_steps": 10}, "a warm-up of 100.0% of the steps leaves no step for the rest"),
    ],
)
def test_schedules_that_cannot_be_are_refused(tiny, settings: dict, what: str) -> None:
    with pytest.raises(ValidationError, match=what):
        tiny(**settings)


PLAIN = {"steps": 100, "warmup_steps": 10}
STABLE = {**PLAIN, "schedule": "wsd"}
SHORT = {**STABLE, "short_length": 16, "short_length_share": 0.5}
FALLING = {**STABLE, "masking": {"shares": [{"share": 0.3, "until": 0.5}, {"share": 0.1, "until": 1.0}]}}
RISING = {**STABLE, "masking": {"shares": [{"share": 0.3, "until": 0.4}, {"share": 0.1, "until": 1.0}]}}


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
        (SHORT, SHORT | {"short_length_share": 0.4}, 100, 41),
        (SHORT, SHORT | {"short_length_share": 0.4}, 41, 41),
        (SHORT, SHORT | {"short_length_share": 0.4}, 40, None),
        (SHORT, SHORT | {"short_length_share": 0.6}, 100, 51),
        (SHORT, STABLE, 1, 1),
        (FALLING, RISING, 100, 41),
        (FALLING, RISING, 40, None),
        (FALLING, FALLING | {"steps": 200}, 100, 51),
    ],
)
def test_the_first_step_that_differs_is_found(tiny, before: dict, now: dict, last: int, differs: int | None) -> None:
    assert first_difference(tiny(**before), tiny(**now), last) == differs
    assert first_difference(tiny(**now), tiny(**before), last) == differs
