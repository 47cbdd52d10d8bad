"""Which device a process gets, and what it says where there is none for it."""

from __future__ import annotations

import os
import re
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist

from corpus.documents.errors import BadInput
from pretrain.engine import world
from pretrain.engine.world import (
    HARMFUL,
    World,
    explained_loss,
    join_world,
    peak_memory,
    prepare_nccl,
    wait_for_device,
)
from pretrain.interruption import ProcessLost


def test_the_processor_needs_no_device_and_leaves_the_products_of_others_alone() -> None:
    before = torch.get_float32_matmul_precision()
    with join_world("cpu") as alone:
        assert alone == World(0, 1, torch.device("cpu"))
        wait_for_device(alone.device)
        assert peak_memory(alone.device) > 50 << 20  # bytes: torch alone takes more
    assert torch.get_float32_matmul_precision() == before


def test_float32_is_multiplied_as_tf32_on_cuda_while_training_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "find_device", lambda asked, key: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 1)
    with join_world() as alone:
        assert alone.device == torch.device("cuda", 0) and torch.get_float32_matmul_precision() == "high"
    assert torch.get_float32_matmul_precision() == "highest"


def test_variables_that_do_harm_are_named(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.delenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", raising=False)
    prepare_nccl()
    assert os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] == "3" and not caplog.messages
    for setting in HARMFUL:
        monkeypatch.setenv(*setting.split("="))
    prepare_nccl()
    assert os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] == "0"  # the choice of the user
    assert [message.partition(": ")[0] for message in caplog.messages] == list(HARMFUL)
    assert all(message.endswith("; unset it") for message in caplog.messages)


@pytest.mark.parametrize(("hang_minutes", "minutes"), [(0.0, 30), (15.0, 30), (60.0, 120)])
def test_collectives_time_out_after_the_watchdog(
    monkeypatch: pytest.MonkeyPatch, hang_minutes: float, minutes: int
) -> None:
    given = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    asked: list[float] = []
    monkeypatch.setattr(dist, "init_process_group", lambda backend, timeout: asked.append(timeout.total_seconds()))
    monkeypatch.setattr(dist, "get_world_size", lambda: 1)
    with join_world("cpu", hang_minutes):
        assert asked == [60 * minutes]


def test_more_processes_than_devices_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"RANK": "2", "WORLD_SIZE": "3", "LOCAL_RANK": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(world, "find_device", lambda asked, key: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    with pytest.raises(BadInput, match="process 3 of this machine has no device: torch finds 2"), join_world():
        pass


@pytest.mark.parametrize(("gpus", "shared"), [("AB", None), ("AA", 1)])
def test_each_process_uses_the_only_gpu_that_it_sees_unless_another_has_it(
    monkeypatch: pytest.MonkeyPatch, gpus: str, shared: int | None
) -> None:
    """With srun --gpus-per-task=1, each process sees its own GPU as number 0."""
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 1)
    device = world.own_device("cuda", 1)
    assert device == torch.device("cuda", 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(uuid=gpus[0]))
    monkeypatch.setattr(World, "gathered", lambda self, thing: [(thing[0], gpu) for gpu in gpus])
    if shared is None:
        world._require_own_devices(World(0, 2, device))
    else:
        with pytest.raises(BadInput, match=f"process {shared} of the training uses the same GPU"):
            world._require_own_devices(World(0, 2, device))


MESSAGES = {  # by gloo and nccl of torch 2.13
    "[/gloo/transport/tcp/pair.cc:537] Read error [10.77.31.2]:41134: Connection reset by peer. This is typically": (
        "Read error [10.77.31.2]:41134: Connection reset by peer"
    ),
    "[/gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.77.31.2]:41134. This is typically caused by": (
        "Connection closed by peer [10.77.31.2]:41134"
    ),
    "NCCL error in: NCCLUtils.cpp:94, a network error or a remote process exited prematurely.": (
        "remote process exited prematurely"
    ),
}


@pytest.mark.parametrize("said", MESSAGES)
def test_the_end_of_another_process_is_one_sentence(said: str) -> None:
    sentence = rf"lost another process: {re.escape(MESSAGES[said])}; .* the same command resumes from"
    with pytest.raises(ProcessLost, match=sentence), explained_loss(World(1, 2, torch.device("cpu"))):
        raise torch.distributed.DistBackendError(said)


@pytest.mark.parametrize(
    ("processes", "said"), [(1, next(iter(MESSAGES))), (2, "mat1 and mat2 shapes cannot be multiplied")]
)
def test_other_errors_come_out_as_they_are(processes: int, said: str) -> None:
    with pytest.raises(RuntimeError) as caught, explained_loss(World(0, processes, torch.device("cpu"))):
        raise RuntimeError(said)
    assert caught.type is RuntimeError
