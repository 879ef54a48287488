"""Cores and memory as granted, on control groups made for the test."""

import os

import pytest

from penstock.runtime.machine import granted_cpus, granted_memory


@pytest.fixture(autouse=True)
def _fresh():
    granted_cpus.cache_clear()
    granted_memory.cache_clear()
    yield
    granted_cpus.cache_clear()
    granted_memory.cache_clear()


def group(root, **files):
    for name, text in files.items():
        path = root.joinpath(*name.split("__"))
        path = path.with_name(path.name.replace("_dot_", "."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def with_cores(monkeypatch, count):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(count)), raising=False)


@pytest.mark.parametrize(
    ("files", "cpus"),
    [
        ({}, 8),
        ({"cpu_dot_max": "max 100000\n"}, 8),
        ({"cpu_dot_max": "200000 100000\n"}, 2),
        ({"cpu_dot_max": "150000 100000\n"}, 2),
        ({"cpu_dot_max": "10000 100000\n"}, 1),
        ({"cpu_dot_max": "9000000 100000\n"}, 8),
        ({"cpu__cpu_dot_cfs_quota_us": "300000\n", "cpu__cpu_dot_cfs_period_us": "100000\n"}, 3),
        ({"cpu__cpu_dot_cfs_quota_us": "-1\n", "cpu__cpu_dot_cfs_period_us": "100000\n"}, 8),
        ({"cpu__cpu_dot_cfs_quota_us": "300000\n"}, 8),
    ],
)
def test_cores_are_the_quota_s_within_the_affinity_mask(tmp_path, monkeypatch, files, cpus):
    with_cores(monkeypatch, 8)
    assert granted_cpus(group(tmp_path, **files)) == cpus


def test_cores_without_an_affinity_mask_are_counted(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert granted_cpus(tmp_path) == 1


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({"memory_dot_max": "max\n"}, None),
        ({"memory_dot_max": "1048576\n"}, 1 << 20),
        ({"memory__memory_dot_limit_in_bytes": "2097152\n"}, 2 << 20),
        ({"memory__memory_dot_limit_in_bytes": "9223372036854771712\n"}, None),
        ({}, None),
    ],
)
def test_memory_is_the_limit_s_within_what_is_installed(tmp_path, files, limit):
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert granted_memory(group(tmp_path, **files)) == (installed if limit is None else limit)
