"""A search with Optuna in which every trial is a Runyard job (`pip install optuna`).

    python examples/search_optuna.py --trials 8 --storage sqlite:///search.db -- \
        python train.py --lr {lr}

This program only asks, watches and tells: jobs run wherever the server runs them. It may be killed
at any moment. Started again with the same storage it goes on with the trials that were running:
a trial is submitted under a key of its own, so that it never becomes two jobs.
"""

from __future__ import annotations

import argparse
import sys
import time

import optuna
from optuna.trial import TrialState

import runyard

LOOK_S = 0.2
SETTLE_S = 1.0  # the last metrics of a job are there a moment after its end
PATIENCE_S = 30.0


def main() -> int:
    args = _arguments()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        study_name=args.study,
        storage=args.storage,
        load_if_exists=True,
        sampler=optuna.samplers.RandomSampler(seed=args.seed),
        pruner=optuna.pruners.ThresholdPruner(upper=args.worst),
    )
    with runyard.Client() as client:
        while trial := _next_trial(study, args.trials):
            state, value = _run(client, study, trial, args)
            study.tell(trial, value, state=state)
            print(f"trial {trial.number}: {state.name.lower()} {value}", flush=True)
    print(f"best: {study.best_value} with {study.best_params}", flush=True)
    return 0


def _next_trial(study: optuna.Study, wanted: int) -> optuna.Trial | None:
    """One that an earlier run of this program left, or a new one while more are wanted."""
    for left in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        return optuna.Trial(study, left._trial_id)
    return study.ask() if len(study.get_trials(deepcopy=False)) < wanted else None


def _run(
    client: runyard.Client, study: optuna.Study, trial: optuna.Trial, args: argparse.Namespace
) -> tuple[TrialState, float | None]:
    rate = trial.suggest_float("lr", 1e-4, 1.0, log=True)
    job = client.submit(
        name=f"{study.study_name}-{trial.number}",
        command=[word.replace("{lr}", f"{rate:.6g}") for word in args.command],
        labels={"study": study.study_name, "trial": str(trial.number)},
        idempotency_key=f"{study.study_name}-{trial.number}",
        cpu_cores=args.cpus,
        memory_gb=args.memory,
        gpu_count=args.gpus,
        max_retries=0,
    )
    told = 0
    while True:
        now = client.get(job.id)
        loss = _loss(client, job.id)
        for step, value in list(zip(loss["steps"], loss["values"], strict=True))[told:]:
            trial.report(value, step)
            told += 1
        if now["status"] in ("completed", "failed", "cancelled"):
            last = _last_loss(client, job.id) if now["status"] == "completed" else None
            return (TrialState.FAIL if last is None else TrialState.COMPLETE), last
        if trial.should_prune():
            client.cancel(job.id)  # comes back when nothing of it is left
            return TrialState.PRUNED, None
        time.sleep(LOOK_S)


def _loss(client: runyard.Client, job_id: str) -> dict[str, list[float]]:
    return client.metrics(job_id, keys="loss").get("loss", {"steps": [], "values": []})


def _last_loss(client: runyard.Client, job_id: str) -> float | None:
    """Of a job that has ended: once there are some and no more come."""
    deadline = time.monotonic() + PATIENCE_S
    before, values = [], _loss(client, job_id)["values"]
    while (not values or values != before) and time.monotonic() < deadline:
        time.sleep(SETTLE_S)
        before, values = values, _loss(client, job_id)["values"]
    return values[-1] if values else None


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A search in which every trial is a job.")
    parser.add_argument("--study", default="search")
    parser.add_argument("--storage", default="sqlite:///search.db")
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worst", type=float, default=10.0, help="a loss above it ends a trial")
    parser.add_argument("--cpus", type=float, default=1)
    parser.add_argument("--memory", type=float, default=1, help="GB")
    parser.add_argument("--gpus", type=float, default=0)
    parser.add_argument("command", nargs="+", help="the training, with {lr} where it belongs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
