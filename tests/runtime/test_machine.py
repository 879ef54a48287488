"""Cores and memory as granted, on systems made for the test."""

import ctypes
import os

import pytest

from penstock import cgroup
from penstock.runtime.machine.granted import available_memory, granted_cores, granted_cpus, granted_memory

INSTALLED = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
MB = 1 << 20
NONE = "9223372036854771712"  # version 1 writes this number for "no limit"

V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
CPU = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:5 - cgroup cgroup rw,cpu,cpuacct"
MEMORY = "35 31 0:32 / /sys/fs/cgroup/memory rw,nosuid shared:6 - cgroup cgroup rw,memory"
UNIFIED = "41 31 0:38 / /sys/fs/cgroup/unified rw,nosuid shared:7 - cgroup2 cgroup2 rw"
OTHERS = """\
22 28 0:20 / /proc rw,relatime - proc proc rw
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd"""


def with_cores(monkeypatch, count):
    monkeypatch.delattr(os, "process_cpu_count", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(count)), raising=False)


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Make a system of eight cores: the process's groups, mounts, and files below `/sys/fs/cgroup`."""
    with_cores(monkeypatch, 8)

    def make(groups=None, mounts=None, files=(), meminfo=None):
        proc = {"self/cgroup": groups, "self/mountinfo": None if mounts is None else "\n".join([OTHERS, *mounts])}
        proc["meminfo"] = meminfo
        texts = {f"proc/{name}": text for name, text in proc.items() if text is not None}
        texts |= {f"sys/fs/cgroup/{name}": text for name, text in dict(files).items()}
        for name, text in texts.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else f"{text}\n".encode())
        return tmp_path

    return make


# -- cores


@pytest.mark.parametrize(
    ("quota", "cores", "cpus"),
    [
        ("max 100000", 8, 8),
        ("max", 8, 8),
        ("200000 100000", 2, 2),
        ("50000 100000", 0.5, 1),
        ("250000 100000", 2.5, 3),
        ("25000 50000", 0.5, 1),
        ("150000", 1.5, 2),
        ("9000000 100000", 8, 8),
        ("1000 1000000", 0.001, 1),
        ("", 8, 8),
        ("0 100000", 8, 8),
        ("100000 0", 8, 8),
        ("-1 100000", 8, 8),
        ("many", 8, 8),
        ("100000 long", 8, 8),
        ("100000 100000 and more", 1, 1),
        ("1" * 5000 + " 100000", 8, 8),
        ("²00000 100000", 8, 8),
        (b"\xff\xfe\x00", 8, 8),
    ],
)
def test_a_quota_of_version_2(system, quota, cores, cpus):
    root = system("0::/", [V2], {"cpu.max": quota})
    assert granted_cores(root) == cores
    assert granted_cpus(root) == cpus


@pytest.mark.parametrize(
    ("quota", "period", "cores"),
    [
        ("300000", "100000", 3),
        ("50000", "100000", 0.5),
        ("-1", "100000", 8),
        ("300000", None, 8),
        (None, "100000", 8),
        ("300000", "0", 8),
        ("300000", "soon", 8),
    ],
)
def test_a_quota_of_version_1(system, quota, period, cores):
    texts = {"cpu,cpuacct/cpu.cfs_quota_us": quota, "cpu,cpuacct/cpu.cfs_period_us": period}
    files = {name: text for name, text in texts.items() if text is not None}
    assert granted_cores(system("4:cpu,cpuacct:/", [CPU], files)) == cores


@pytest.mark.parametrize(
    ("ranks", "files", "affinity", "cores"),
    [
        ("4", {}, 8, 2),
        ("16", {}, 8, 0.5),
        ("4", {"cpu.max": "200000 100000"}, 8, 0.5),
        ("4", {"cpuset.cpus.effective": "0-3"}, 4, 1),
        ("4", {}, 2, 2),  # each rank was bound to its own cores
        ("4", {"cpuset.cpus.effective": "0-3"}, 1, 1),
        ("1", {}, 8, 8),
        ("0", {}, 8, 8),
        ("", {}, 8, 8),
        ("two", {}, 8, 8),
        ("-2", {}, 8, 8),
    ],
)
def test_ranks_of_one_machine_share_its_cores(system, monkeypatch, ranks, files, affinity, cores):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", ranks)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    with_cores(monkeypatch, affinity)
    root = system("0::/", [V2], files)
    assert granted_cores(root) == cores
    assert granted_cpus(root) == max(1, round(cores + 0.4))


def test_ranks_of_one_machine_share_its_memory(system, monkeypatch):
    root = system("0::/", [V2], {"memory.max": str(800 * MB), "memory.current": str(200 * MB), "memory.stat": ""})
    alone, left = granted_memory(root), available_memory(root)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    granted_memory.cache_clear()
    assert granted_memory(root) == alone // 4 == 200 * MB
    assert available_memory(root) == left // 4


CPUSET = "36 31 0:33 / /sys/fs/cgroup/cpuset rw,nosuid shared:8 - cgroup cgroup rw,cpuset"


@pytest.mark.parametrize(
    ("cores", "count"),
    [
        ("0-1", 2),
        ("3", 1),
        ("0-1,4,6-7", 5),
        ("0-63", 8),
        ("0-3,2-5", 6),
        ("", 8),
        ("5-2", 8),
        ("0-", 8),
        ("-3", 8),
        ("0,,1", 8),
        ("all", 8),
        ("0-99999999999", 8),
        (b"\xff\xfe\x00", 8),
    ],
)
def test_a_set_of_cores_smaller_than_the_affinity_mask(system, cores, count):
    assert granted_cores(system("0::/", [V2], {"cpuset.cpus.effective": cores})) == count


@pytest.mark.parametrize("name", ["cpuset.cpus", "cpuset.effective_cpus"])
def test_a_set_of_cores_of_version_1(system, name):
    assert granted_cores(system("3:cpuset:/", [CPUSET], {f"cpuset/{name}": "1-3"})) == 3


@pytest.mark.parametrize(("quota", "cores"), [("150000 100000", 1.5), ("900000 100000", 2), ("max 100000", 2)])
def test_sets_of_cores_and_quotas_bound_together(system, quota, cores):
    files = {"cpuset.cpus.effective": "0-5", "job/cpuset.cpus.effective": "4-7", "cpu.max": quota}
    assert granted_cores(system("0::/job", [V2], files)) == cores


def test_sets_of_cores_that_exclude_each_other_are_none(system):
    files = {"cpuset.cpus.effective": "0-1", "job/cpuset.cpus.effective": "4-7"}
    assert granted_cores(system("0::/job", [V2], files)) == 8


def test_a_quota_of_more_than_the_cores_of_the_affinity_mask(system, monkeypatch):
    with_cores(monkeypatch, 1)
    root = system("0::/", [V2], {"cpu.max": "150000 100000"})
    assert granted_cores(root) == 1.0
    assert granted_cpus(root) == 1


def test_every_group_above_bounds_those_below(system):
    files = {
        "user.slice/cpu.max": "400000 100000",
        "user.slice/job.slice/cpu.max": "250000 100000",
        "user.slice/job.slice/step.scope/cpu.max": "max 100000",
        "user.slice/job.slice/other.scope/cpu.max": "50000 100000",
        "user.slice/memory.max": str(900 * MB),
        "user.slice/job.slice/memory.high": str(700 * MB),
        "user.slice/job.slice/step.scope/memory.max": "max",
    }
    root = system("0::/user.slice/job.slice/step.scope", [V2], files)
    assert granted_cores(root) == 2.5
    assert granted_memory(root) == 700 * MB


def test_a_container_of_version_1_sees_its_group_as_the_mount_point(system):
    """`/proc/self/cgroup` has the group's name on the host, and the mount shows only that part of the tree."""
    group = "/docker/0123abcd"
    mounts = [
        "32 31 0:29 /docker/0123abcd /sys/fs/cgroup/cpu,cpuacct ro,nosuid - cgroup cgroup rw,cpu,cpuacct",
        "35 31 0:32 /docker/0123abcd /sys/fs/cgroup/memory ro,nosuid - cgroup cgroup rw,memory",
    ]
    files = {
        "cpu,cpuacct/cpu.cfs_quota_us": "150000",
        "cpu,cpuacct/cpu.cfs_period_us": "100000",
        "memory/memory.limit_in_bytes": str(512 * MB),
        "memory/inner/memory.limit_in_bytes": str(256 * MB),
    }
    root = system(f"8:cpuset:/\n4:memory:{group}/inner\n1:cpu,cpuacct:{group}\n0::/", mounts, files)
    assert granted_cores(root) == 1.5
    assert granted_memory(root) == 256 * MB


def test_a_container_of_version_2_has_a_root_of_its_own(system):
    root = system("0::/", [V2], {"cpu.max": "50000 100000", "memory.max": str(512 * MB)})
    assert granted_cores(root) == 0.5
    assert granted_memory(root) == 512 * MB


@pytest.mark.parametrize("group", ["/../../kubepods/pod7", "/elsewhere", "/deleted (deleted)", ""])
def test_a_group_that_cannot_be_seen_leaves_what_the_mount_shows(system, group):
    mounts = [V2.replace(" / /sys", " /part /sys")]
    root = system(f"0::{group}", mounts, {"cpu.max": "200000 100000"})
    assert granted_cores(root) == 2


def test_a_group_outside_of_what_is_mounted_is_not_looked_for_there(system):
    root = system("0::/../other", [V2], {"cpu.max": "200000 100000", "../other/cpu.max": "100000 100000"})
    assert granted_cores(root) == 2


def test_a_group_that_is_gone_leaves_those_above_it(system):
    root = system("0::/job/gone", [V2], {"job/cpu.max": "200000 100000"})
    assert granted_cores(root) == 2


def test_both_versions_at_once(system):
    root = system(
        "4:memory:/job\n1:cpu,cpuacct:/job\n0::/job",
        [CPU, MEMORY, UNIFIED],
        {
            "cpu,cpuacct/job/cpu.cfs_quota_us": "300000",
            "cpu,cpuacct/job/cpu.cfs_period_us": "100000",
            "unified/job/cpu.max": "250000 100000",
            "memory/job/memory.limit_in_bytes": str(600 * MB),
            "unified/job/memory.max": "max",
            "memory/job/cpu.max": "100000 100000",  # the kernel would not write such a line
        },
    )
    assert granted_cores(root) == 2.5
    assert granted_memory(root) == 600 * MB


def test_folders_with_odd_names(system):
    mounts = [V2.replace("/sys/fs/cgroup", r"/sys/fs/cgroup/with\040space\134")]
    root = system("0::/a:b", mounts, {"with space\\/a:b/cpu.max": "200000 100000"})
    assert granted_cores(root) == 2


@pytest.mark.parametrize(
    ("groups", "mounts"),
    [
        ("", []),
        ("garbage\n\n::\n0:", [V2]),
        ("0::/", ["", "31", "1 2 3 / /sys/fs/cgroup rw - cgroup2", " - cgroup2 x y", "a b c d e f - cgroup"]),
        (b"\x00\xff", [V2]),
    ],
)
def test_what_cannot_be_understood_is_no_limit(system, groups, mounts):
    root = system(groups, mounts, {"memory.max": "a lot", "cpu.max": "a few"})
    assert granted_cores(root) == 8
    assert granted_memory(root) == INSTALLED


def test_the_usual_places_where_nothing_says_what_is_mounted(system):
    root = system(files={"cpu.max": "200000 100000", "memory/memory.limit_in_bytes": str(512 * MB)})
    assert granted_cores(root) == 2
    assert granted_memory(root) == 512 * MB


def test_a_folder_in_place_of_a_file_is_no_limit(system):
    root = system("0::/", [V2], {"cpu.max/x": "1", "memory.max/x": "1"})
    assert granted_cores(root) == 8
    assert granted_memory(root) == INSTALLED


def test_cores_without_an_affinity_mask_are_counted(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "process_cpu_count", raising=False)  # makes the code use the next function
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert granted_cores(tmp_path) == 1.0
    assert granted_cpus(tmp_path) == 1


def test_cores_are_those_that_python_was_told(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "process_cpu_count", lambda: 3, raising=False)
    assert granted_cpus(tmp_path) == 3


# -- memory: granted


@pytest.mark.parametrize(
    ("name", "text", "limit"),
    [
        ("memory.max", "max", None),
        ("memory.max", str(MB), MB),
        ("memory.high", str(3 * MB), 3 * MB),
        ("memory.high", "max", None),
        ("memory.max", str(INSTALLED * 2), None),
        ("memory.max", "0", None),
        ("memory.max", "-5", None),
        ("memory.max", "", None),
    ],
)
def test_a_limit_of_version_2_within_what_is_installed(system, name, text, limit):
    assert granted_memory(system("0::/", [V2], {name: text})) == (limit or INSTALLED)


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({"memory/job/memory.limit_in_bytes": str(2 * MB)}, 2 * MB),
        ({"memory/job/memory.limit_in_bytes": NONE}, None),
        ({"memory/job/memory.limit_in_bytes": "9223372036854710272"}, None),  # with pages of 64 KiB
        ({"memory/job/memory.limit_in_bytes": NONE, "memory/memory.limit_in_bytes": str(3 * MB)}, 3 * MB),
        (
            {
                "memory/job/memory.limit_in_bytes": str(9 * MB),
                "memory/job/memory.stat": f"cache 17\nhierarchical_memory_limit {5 * MB}\ntotal_cache 5",
            },
            5 * MB,
        ),
    ],
)
def test_a_limit_of_version_1_within_what_is_installed(system, files, limit):
    assert granted_memory(system("4:memory:/job", [MEMORY], files)) == (limit or INSTALLED)


# -- memory: left

MEMINFO = "MemTotal:       24684096 kB\nMemFree:        21000000 kB\nMemAvailable:   %d kB\nHugePages_Total:       0"


def test_what_is_left_is_the_least_of_the_machine_and_all_groups(system):
    files = {
        "job/memory.max": str(900 * MB),
        "job/memory.current": str(500 * MB),
        "job/memory.stat": f"anon {300 * MB}\nfile {200 * MB}\ninactive_file {150 * MB}\nactive_file {50 * MB}",
        "job/step/memory.max": str(800 * MB),
        "job/step/memory.high": str(700 * MB),
        "job/step/memory.current": str(100 * MB),
        "job/step/memory.stat": f"inactive_file {20 * MB}",
    }
    for free, left in ((4096, 550), (300, 300)):
        root = system("0::/job/step", [V2], files, MEMINFO % (free << 10))
        assert available_memory(root) == left * MB


def test_what_a_group_of_version_1_leaves(system):
    files = {
        "memory/job/memory.limit_in_bytes": str(900 * MB),
        "memory/job/memory.usage_in_bytes": str(500 * MB),
        "memory/job/memory.stat": f"inactive_file {1 * MB}\nhierarchical_memory_limit {800 * MB}\n"
        f"total_inactive_file {100 * MB}",
    }
    root = system("4:memory:/job", [MEMORY], files, MEMINFO % (4 << 20))
    assert available_memory(root) == 400 * MB
    (root / "sys/fs/cgroup/memory/job/memory.usage_in_bytes").write_text(str(600 * MB))
    assert available_memory(root) == 300 * MB


@pytest.mark.parametrize(
    ("used", "stat", "left"),
    [
        (str(300 * MB), None, 0),
        (None, None, 200 * MB),
        ("some", "inactive_file some", 200 * MB),
        (str(50 * MB), f"inactive_file {70 * MB}", 200 * MB),
        (str(50 * MB), "inactive_file", 150 * MB),
        (str(50 * MB), b"\xff\xff", 150 * MB),
    ],
)
def test_odd_figures_of_what_is_used(system, used, stat, left):
    texts = {"memory.max": str(200 * MB), "memory.current": used, "memory.stat": stat}
    files = {name: text for name, text in texts.items() if text is not None}
    assert available_memory(system("0::/", [V2], files, MEMINFO % (4 << 20))) == left


def test_without_groups_it_is_what_the_machine_could_give(system):
    assert available_memory(system(meminfo=MEMINFO % 12345)) == 12345 << 10


@pytest.mark.parametrize("meminfo", [None, "", "MemAvailable: 5", "MemAvailable: a few kB", "MemFree: 5 kB"])
def test_a_machine_that_does_not_say_what_is_free_may_give_half(system, meminfo):
    root = system("0::/", [V2], {}, meminfo)
    assert available_memory(root) == (5 << 10 if meminfo == "MemAvailable: 5" else INSTALLED // 2)
    (root / "sys/fs/cgroup").mkdir(parents=True)
    (root / "sys/fs/cgroup/memory.max").write_text(str(10 * MB))
    granted_memory.cache_clear()
    if meminfo != "MemAvailable: 5":
        assert available_memory(root) == 5 * MB


class Windows:
    """The used part of Windows' `ctypes.windll`."""

    class kernel32:
        @staticmethod
        def GlobalMemoryStatusEx(found):
            status = found._obj
            assert ctypes.cast(status, ctypes.POINTER(ctypes.c_uint32))[0] == ctypes.sizeof(status) == 64
            status[1], status[2] = 512 * MB, 200 * MB
            return 1


def test_windows_says_it_in_its_own_way(tmp_path, monkeypatch):
    monkeypatch.setattr(ctypes, "windll", Windows, raising=False)
    monkeypatch.delattr(os, "sysconf", raising=False)
    assert granted_memory(tmp_path) == 512 * MB
    assert available_memory(tmp_path) == 200 * MB


def test_a_system_that_says_nothing_at_all(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sysconf", raising=False)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "process_cpu_count", raising=False)
    assert granted_memory(tmp_path) == 8 << 30
    assert available_memory(tmp_path) == 4 << 30
    assert granted_cpus(tmp_path) >= 1


# -- this machine


def test_this_machine_grants_something():
    assert 0 < granted_cores() <= (os.cpu_count() or 1) * 1.0
    assert 1 <= granted_cpus() < granted_cores() + 1
    assert 0 < granted_memory() <= INSTALLED
    assert 0 < available_memory() <= granted_memory()


def test_the_own_groups_are_folders_here_or_nowhere():
    for version in cgroup.levels("memory"):
        assert all(folder.is_absolute() for folder in version)
