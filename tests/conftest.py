"""What holds for every test: a clean environment, no network but loopback, recorded outcomes."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from docker_engine import docker_engine, own_docker_engine  # noqa: F401
from people import person  # noqa: F401
from podman_engine import podman_engine, podman_without_init  # noqa: F401
from postgres import own_postgres_server, postgres_server, postgres_url  # noqa: F401
from worker_groups import ByGroup

ROW = re.compile(r"\bR\d+\b")
# The same examples in every run, however long a busy machine takes for one.
settings.register_profile(
    "calm", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("calm")


def pytest_addoption(parser):
    parser.addoption("--outcomes", metavar="FILE", help="write the outcome of every test as JSON")


def pytest_configure(config):
    # Started in the background or under nohup, we would pass on to our children that these are
    # ignored, and a Ctrl-C of a test would reach nobody.
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    for name in [name for name in os.environ if name.startswith("RUNYARD_")]:
        del os.environ[name]
    # A forgotten --data-dir must not touch the yard of the person who runs the tests.
    config.stash[_home] = os.environ.get("HOME"), tempfile.mkdtemp(prefix="runyard-test-home-")
    os.environ["HOME"] = config.stash[_home][1]
    if config.getoption("--outcomes") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Outcomes(Path(config.getoption("--outcomes"))))
    sys.addaudithook(_refuse_the_network)


def pytest_unconfigure(config):
    before, own = config.stash[_home]
    if before is not None:
        os.environ["HOME"] = before
    shutil.rmtree(own, ignore_errors=True)


def pytest_collection_modifyitems(items):
    for item in items:
        text = getattr(getattr(item, "function", None), "__doc__", None) or ""
        rows = sorted(set(ROW.findall(text)))
        if rows:
            item.user_properties.append(("rows", rows))


@pytest.hookimpl(optionalhook=True)  # tests that run tests do so without xdist
def pytest_xdist_make_scheduler(config, log):
    return ByGroup(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):  # noqa: ARG001 (pytest gives them by name)
    """A missing part skips on a laptop; in CI it fails, whichever test missed it."""
    report = yield
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not accept: {report.longrepr}"
    return report


_home = pytest.StashKey[tuple[str | None, str]]()


class _Outcomes:
    """Kept by the controlling process, which sees the reports of all workers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outcomes: dict[str, dict] = {}

    def pytest_runtest_logreport(self, report):
        rows = dict(report.user_properties).get("rows", [])
        new = {"rows": rows, "outcome": "passed", "seconds": 0.0}
        entry = self.outcomes.setdefault(report.nodeid, new)
        entry["seconds"] = round(entry["seconds"] + report.duration, 3)
        if report.outcome != "passed" and entry["outcome"] != "failed":
            entry["outcome"] = report.outcome

    def pytest_sessionfinish(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.outcomes, indent=1, sort_keys=True) + "\n")


def _refuse_the_network(event: str, arguments: tuple) -> None:
    if event != "socket.connect" or not isinstance(arguments[1], tuple):
        return
    host = arguments[1][0]
    try:
        local = ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        local = host == "localhost"
    # 0.0.0.0 reaches this machine; other addresses of its own are used by multi-node tests.
    if not local and host not in ("0.0.0.0", "::", "") and host not in _own_addresses():
        raise PermissionError(f"tests stay on this machine, and this one wants {host}")


def _own_addresses() -> set[str]:
    import psutil  # only when a test leaves loopback

    return {
        address.address.partition("%")[0]
        for addresses in psutil.net_if_addrs().values()
        for address in addresses
    }
