"""All checks of one job, in the order in which a start would meet them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from runyard.preflight import command_words, executables, gpu_driver, place_checks, python_checks
from runyard.preflight.findings import Finding, warned, worst
from runyard.preflight.plan import Plan, Report

Check = Callable[[], list[Finding]]


def report(plan: Plan) -> Report:
    began = time.monotonic()
    found: list[Finding] = []
    for name, check in _checks(plan):
        try:
            found += check()
        except Exception as error:  # a fault of ours must not stop somebody's job
            found.append(warned(name, "check_crashed", error=type(error).__name__))
        if name == "working_dir" and worst(found) == "fail":
            break  # everything else would only repeat it
    return {
        "verdict": worst(found),
        "seconds": round(time.monotonic() - began, 4),
        "checks": [one.shown() for one in found],
    }


def _checks(plan: Plan) -> Iterator[tuple[str, Check]]:
    made = (plan.output_dir, plan.checkpoint_dir)
    yield "working_dir", lambda: [place_checks.working_dir(plan.cwd, made)]
    yield "command", lambda: _command(plan)
    yield "output", lambda: [place_checks.writable("output", plan.output_dir)]
    yield "checkpoints", lambda: [place_checks.writable("checkpoints", plan.checkpoint_dir)]
    yield "disk", lambda: [place_checks.disk(plan.checkpoint_dir)]
    yield "ports", lambda: place_checks.ports(plan.ports)
    yield "shared_memory", lambda: place_checks.shared_memory(_words(plan))
    if plan.wants_gpu:
        yield "gpu_driver", lambda: gpu_driver.present()
    if plan.fetches_from_hub:
        yield "hub_token", lambda: [place_checks.hub_token(plan.env)]


def _words(plan: Plan) -> list[str]:
    return [word for argument in plan.argv for word in argument.split()]


def _command(plan: Plan) -> list[Finding]:
    command = command_words.understood(plan.argv)
    env = {**plan.env, **command.assignments}
    if not command.words:
        return []
    found = executables.check(command, env, plan.cwd)
    executable = found.params.get("path")
    if found.verdict == "fail" or not isinstance(executable, str):
        return [found]
    run = command_words.python_run(command.words, executable, plan.cwd)
    if run is None:
        return [found]
    timeout = plan.interpreter_timeout_s
    return [found, *python_checks.check(run, env, plan.cwd, timeout, plan.wants_gpu)]
