"""What is said of bad losses and of jumps of the gradient norm: the step, its rows, what to do."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from corpus.documents.errors import BadInput
from pretrain.config import PretrainConfig
from pretrain.metrics.divergence import REMEMBERED, StepSums, remember_norms, require_finite_losses, warn_of_jump

Configure = Callable[..., PretrainConfig]


def names_of_step(step: int) -> list[str]:
    return [f"0:{10 * step + row}" for row in range(8)]


def a_step(step: int, norm: float, mlm_loss: float = 20.0) -> StepSums:
    return StepSums(step, mlm_loss, 1.0, 0.0, 0.0, 5, 32, 0, 1e-3 / step, norm)


def test_the_first_bad_step_is_named_with_rows_and_remedy(tiny: Configure) -> None:
    steps = [a_step(1, 2.0), a_step(2, 31.5), a_step(3, 7.0, math.inf), a_step(4, 7.0, math.nan)]
    with pytest.raises(BadInput) as raised:
        require_finite_losses(steps, tiny(), names_of_step)
    message = str(raised.value)
    assert message.startswith("step 3: the loss is not finite (inf) at learning rate 0.000333; loss 4.000 and gradient")
    assert "gradient norm 31.5 before it; rows 0:30 0:31 0:32 0:33 (epoch:row) and 4 more; training has" in message
    assert "lower pretrain.optimizer.lr (0.005), raise pretrain.optimizer.warmup_share (0.25) or" in message
    assert message.endswith("set pretrain.optimizer.clip (0) to 1")
    require_finite_losses(steps[:2], tiny(), names_of_step)


@pytest.mark.parametrize(("count", "said"), [(0, ""), (4, "rank 3 (node-3)"), (5, "rank 3 (node-3) and 1 more")])
def test_at_most_four_ranks_are_named(tiny: Configure, count: int, said: str) -> None:
    ranks = {rank: f"node-{rank}" for rank in range(count)}
    with pytest.raises(BadInput) as raised:
        require_finite_losses([a_step(1, 2.0, math.nan)], tiny(), lambda step, rank=0: names_of_step(step), ranks)
    expected = f" on rank 0 (node-0), rank 1 (node-1), rank 2 (node-2), {said}" if count else ""
    assert f"the loss is not finite (nan){expected} at learning rate" in str(raised.value)


def test_a_bad_first_step_has_nothing_before_it(tiny: Configure) -> None:
    with pytest.raises(BadInput, match=r"at learning rate 0\.001; rows 0:10"):
        require_finite_losses([a_step(1, 2.0, math.nan)], tiny(), names_of_step)


def test_one_jump_of_the_gradient_norm_gives_one_warning(tiny: Configure, caplog: pytest.LogCaptureFixture) -> None:
    jumps = {5: 900.0, 33: 21.0, 37: 80.0, 38: 90.0}  # 5: too early to know what is usual; 33: not ten times as much
    steps = [a_step(step, jumps.get(step, 2 + step / 99)) for step in range(1, 41)]
    warn_of_jump(steps, [], tiny(), names_of_step)
    (message,) = caplog.messages
    # the median of steps 1 to 36 lies between those of 19 and 20
    assert message.startswith(f"step 37: gradient norm 80 is {80 / (2 + 19.5 / 99):.1f} times the median of the 36 ")
    assert "(2.2), loss 4.000; rows 0:370 0:371" in message


def test_steps_of_the_interval_before_tell_what_is_usual(tiny: Configure, caplog: pytest.LogCaptureFixture) -> None:
    before = remember_norms([], [a_step(step, 1.0) for step in range(1, 31)])
    warn_of_jump([a_step(31, 10.5)], before, tiny(), names_of_step)
    warn_of_jump([a_step(31, 10.5)], [], tiny(), names_of_step)
    assert len(caplog.messages) == 1


@pytest.mark.parametrize(("precision", "expected"), [("bf16", 1), ("fp16", 0)])
def test_an_infinite_norm_warns_unless_loss_scaling_makes_it(
    tiny: Configure, caplog: pytest.LogCaptureFixture, precision: str, expected: int
) -> None:
    steps = [a_step(1, 1.0), a_step(2, math.inf), a_step(3, math.nan), a_step(4, math.inf)]
    warn_of_jump(steps, [], tiny(precision=precision, zero_stage=1), names_of_step)
    assert [message[:40] for message in caplog.messages] == ["step 2: the gradient norm is not finite "] * expected


def test_only_the_newest_finite_norms_are_remembered() -> None:
    steps = [a_step(1, math.nan), a_step(2, math.inf), *(a_step(step, float(step)) for step in range(3, 150))]
    assert remember_norms([7.0], steps) == [float(step) for step in range(150 - REMEMBERED, 150)]
    assert remember_norms([7.0], steps[:3]) == [7.0, 3.0]
