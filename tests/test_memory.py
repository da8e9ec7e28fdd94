"""How much memory a cache_size stands for."""

from pathlib import Path

import pytest

from onefit import memory


def test_megabytes():
    assert memory.budget_bytes(200, 10**6) == 200 << 20
    assert memory.budget_bytes(0.5, 10) == 1 << 19


def test_auto_is_a_share_of_what_is_free(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 10 << 30)
    assert memory.budget_bytes("auto", 100_000) == int(memory.SHARE * (10 << 30))


def test_auto_does_not_ask_for_small_kernels(monkeypatch):
    monkeypatch.delattr(memory, "available_bytes")
    assert memory.budget_bytes("auto", 1000) >= 8 * 1000**2


def test_something_is_free():
    assert memory.available_bytes() > 1 << 20


@pytest.mark.parametrize(
    ("limit", "used", "expected"),
    [("max", "5", None), ("1000", "400", 650), ("1000", "2000", 0), ("garbage", "5", None)],
)
def test_a_container_limits_it(monkeypatch, limit, used, expected):
    stat = "anon 100\ninactive_file 50\n"
    files = {"memory.max": limit, "memory.current": used, "memory.stat": stat}
    monkeypatch.setattr(Path, "read_text", lambda path: files[path.name])
    assert memory._control_group_available() == expected
