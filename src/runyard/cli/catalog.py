"""Which commands there are. `runyard --help` reads only this, so that it answers at once."""

from __future__ import annotations

# (heading, ((command, one line), ...)); each command is a module of cli/commands with - as _.
GROUPS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Jobs",
        (
            ("run", "submit a job and follow it; Ctrl-C cancels it (-d: only submit)"),
            ("submit", "submit a job and print its id"),
            ("ls", "list jobs"),
            ("show", "one job, with its attempts"),
            ("logs", "a job's log (-f: follow)"),
            ("metrics", "a job's curves: loss, learning rate, ... (--watch: as they grow)"),
            ("wait", "wait for jobs to end; exits with the job's code"),
            ("checkpoints", "what a job has saved of itself, and whether it is whole"),
            ("explain", "why a job waits, or why it ended as it did"),
            ("drill", "does it recover? a fault is done to a throwaway clone of a job"),
            ("cancel", "end jobs and prove that nothing is left (--now: no grace)"),
            ("retry", "run an ended job again"),
            ("hold", "keep a waiting job from starting"),
            ("release", "let a held job start"),
        ),
    ),
    (
        "Queue and machines",
        (
            ("top", "what runs and how it is doing, on one live page"),
            ("queue", "what waits and why, what runs; pause and start dispatching"),
            ("nodes", "machines and what they have"),
            ("gpus", "GPUs and who holds them; fence, unfence"),
            ("alerts", "what needs attention; acknowledge, close"),
            ("rules", "alert rules of one's own; add, preview, enable, disable, rm"),
            ("datasets", "data that jobs name by a number; add, rm"),
            ("drain", "start nothing more on a node"),
            ("undrain", "let a drained node take jobs again"),
        ),
    ),
    (
        "Server",
        (
            ("server", "run the server in the foreground"),
            ("open", "open the web page, logged in (--print: only the link)"),
            ("doctor", "check that this machine is fit to run jobs"),
            ("demo", "submit a small training job and follow it"),
            ("notify", "who is told of everybody's jobs; add, rm, test, deliveries"),
            ("keys", "list, create and revoke API keys"),
            ("backup", "copy the database while the server runs"),
            ("prune", "forget jobs that ended long ago"),
            ("completion", "print the completion script of a shell"),
            ("openapi", "print the description of the HTTP API"),
            ("version", "print the version"),
        ),
    ),
)

COMMANDS = {name: text for _, rows in GROUPS for name, text in rows}

# Names that people coming from elsewhere type; they work and are not shown.
ALIASES = {"ps": "ls", "list": "ls", "stop": "cancel", "kill": "cancel", "requeue": "retry"}


def resolve(name: str, rest: list[str]) -> str | None:
    """The command a typed word means, or None."""
    if name in COMMANDS:
        return name
    if name == "status":
        return "show" if any(not word.startswith("-") for word in rest) else "ls"
    return ALIASES.get(name)


def usage() -> str:
    width = max(map(len, COMMANDS)) + 2
    lines = ["Usage: runyard COMMAND [OPTIONS] [ARGUMENTS]", ""]
    lines += ["Runs machine-learning training jobs: queued, placed, supervised, explained.", ""]
    for heading, rows in GROUPS:
        lines += [f"{heading}:"]
        lines += [f"  {name:<{width}}{text}" for name, text in rows] + [""]
    lines += [
        "Start with:  runyard server      then, in another terminal:",
        "             runyard run -- python train.py",
        "",
        "runyard COMMAND --help tells more. RUNYARD_URL and RUNYARD_API_KEY choose the server.",
    ]
    return "\n".join(lines)
