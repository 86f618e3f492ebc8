"""Which device a run gets, what is said of one that is not there, and the space of a disk."""

import gc
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.errors import OutOfMemory, SettingsError
from engine.jobs.run_job import RunJob
from engine.machine import device
from engine.models import registry
from engine.models.adapter import Adapter
from engine.pipeline import single_run
from engine.types import DecodeConfig, RunOptions, RunRequest, Sample

ROOT = Path(__file__).resolve().parents[2]
SHORT = DecodeConfig(max_new_tokens=5)
held: list[weakref.ref[torch.Tensor]] = []


@pytest.mark.parametrize("name", ["xpu:7", "gpu", "cuda:99"])
def test_a_device_that_is_not_here_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch, tiny_models: Path
) -> None:
    entry = registry.entry("tiny-llava")
    registry.unload(entry)
    monkeypatch.setenv("STAGESCOPE_DEVICE", name)
    with pytest.raises(SettingsError, match=f"STAGESCOPE_DEVICE is '{name}'"):
        registry.load(entry)
    assert entry not in registry.resident()


CPU = {"device": "cpu", "hardware": "x86_64", "processor": "EPYC", "threads": "2"}
GPU = {"device": "cuda:0", "hardware": "H200", "processor": "EPYC", "threads": "2"}


def test_a_folder_that_is_not_there_yet_has_the_space_of_its_disk(tmp_path: Path) -> None:
    here, there = (device.free_disk_bytes(one) for one in (tmp_path, tmp_path / "a" / "b"))
    assert here is not None and there is not None and abs(here - there) < 2**30 and here > 0


def test_the_space_of_a_place_that_cannot_be_is_not_known(tmp_path: Path) -> None:
    assert device.free_disk_bytes(tmp_path / ("x" * 5000)) is None


@pytest.fixture
def adapter(tiny_models: Path) -> Adapter:
    held.clear()
    return registry.load(registry.entry("tiny-llava"))


def out_of_memory(adapter: Adapter, error: Exception) -> Any:
    """An encode() that holds its rows and then finds no memory for more."""
    encode = type(adapter).encode

    def full(prepared: Any) -> torch.Tensor:
        rows = encode(adapter, prepared)
        held.append(weakref.ref(rows))
        raise error

    return full


ERRORS = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 14.00 GiB."),
    RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: not enough memory"),
    RuntimeError("CUDA error: out of memory"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    MemoryError(),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_run_without_memory_is_one_sentence_and_the_next_one_works(
    adapter: Adapter, sample: Sample, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    request = RunRequest(sample, "tiny-llava", "Why?", RunOptions(decode=SHORT))
    job = RunJob(request=request)
    with monkeypatch.context() as patched:
        patched.setattr(adapter, "encode", out_of_memory(adapter, error))
        job.work()
    assert job.state == "failed" and isinstance(job.failure, OutOfMemory)
    assert "tiny-llava ran out of memory on cpu" in job.error
    assert "GiB were free" in job.error and "\n" not in job.error
    assert held and held[0]() is None  # though the job, and its error, live on
    again = RunJob(request=request)
    again.work()
    assert again.state == "done" and again.result is not None


def test_control_an_error_of_another_kind_passes_as_it_is(
    adapter: Adapter, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "encode", out_of_memory(adapter, RuntimeError("shapes differ")))
    request = RunRequest(sample, "tiny-llava", "Why?", RunOptions(decode=SHORT))
    with pytest.raises(RuntimeError, match="shapes differ") as caught:
        single_run.run(adapter, request, None)
    assert held[0]() is not None  # its traceback holds the tensor, for whoever looks into it
    device.forget(caught.value)
    gc.collect()
    assert held[0]() is None


def test_without_a_cache_nothing_is_read_or_kept(
    adapter: Adapter, sample: Sample, cache_dir: Path
) -> None:
    request = RunRequest(sample, "tiny-llava", "Why?", RunOptions(decode=SHORT))
    results = [single_run.run(adapter, request, None) for _ in range(2)]
    assert not any(result.cached for result in results)
    assert results[0].generation.token_ids == results[1].generation.token_ids
    assert not list(cache_dir.rglob("*.val"))


def test_a_job_that_has_ended_keeps_no_model(adapter: Adapter, sample: Sample) -> None:
    job = RunJob(request=RunRequest(sample, "tiny-llava", "Why?", RunOptions(decode=SHORT)))
    job.work()
    text = job.view().text
    assert text and job._adapter is None and job.view().text == text


def test_memories_name_the_system_first(monkeypatch: pytest.MonkeyPatch) -> None:
    first = device.memories()[0]
    assert first.device == "cpu" and 0 < first.free <= first.total
    assert device.memory().device == first.device or torch.cuda.is_available()  # free memory moves
    monkeypatch.setitem(sys.modules, "psutil", None)
    bare = device.memories()[0]
    assert bare.total == pytest.approx(first.total, rel=0.01) and 0 < bare.free <= bare.total


GIB = 2**30


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Two accelerators, by what torch says of them: free and total, tensors, reserved, limit."""
    told: dict[str, Any] = {
        "mem_get_info": [(3 * GIB, 24 * GIB), (70 * GIB, 80 * GIB)],
        "memory_allocated": [0, 0],
        "memory_reserved": [0, 0],
        "get_per_process_memory_fraction": [1.0, 1.0],
        "get_device_name": ["card 0", "card 1"],
    }
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for name, values in told.items():
        monkeypatch.setattr(torch.cuda, name, values.__getitem__)
    return told


def test_the_cuda_device_that_is_meant_is_asked(
    cards: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAGESCOPE_DEVICE", "cuda:1")
    monkeypatch.setattr(device, "choose", lambda: torch.device("cuda", 1))
    assert [one.device for one in device.memories()] == ["cpu", "cuda:0", "cuda:1"]
    assert (device.memory().label, device.free_bytes()) == ("card 1", 70 * GIB)
    with (
        pytest.raises(OutOfMemory, match=r"\(3.0 GiB of 24.0 GiB were free then\)"),
        device.guard("EventGPT-7b", torch.device("cuda:0")),
    ):
        raise MemoryError
    monkeypatch.setenv("STAGESCOPE_DEVICE", "cpu")
    assert device.memory().device == "cpu"


def test_memory_that_torch_holds_without_a_tensor_is_free(cards: dict[str, Any]) -> None:
    cards["memory_allocated"][1], cards["memory_reserved"][1] = 2 * GIB, 9 * GIB
    cards["mem_get_info"][1] = (71 * GIB, 80 * GIB)
    assert device.memories()[2].free == 78 * GIB


def test_the_limit_of_this_process_counts(cards: dict[str, Any]) -> None:
    """As torch.cuda.set_per_process_memory_fraction sets it: the device itself has room."""
    cards["memory_allocated"][1] = cards["memory_reserved"][1] = 14 * GIB
    cards["mem_get_info"][1] = (66 * GIB, 80 * GIB)
    assert (device.memories()[2].total, device.memories()[2].free) == (80 * GIB, 66 * GIB)
    cards["get_per_process_memory_fraction"][1] = 0.3
    assert (device.memories()[2].total, device.memories()[2].free) == (24 * GIB, 10 * GIB)
    cards["memory_allocated"][1] = 25 * GIB  # allocated before the limit was set
    assert device.memories()[2].free == 0
