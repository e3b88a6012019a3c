"""What each category of failure gets: one row of data, never a branch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from runyard.domain.failures.categories import Category


class Strategy(StrEnum):
    REDUCE_BATCH_SIZE = "reduce_batch_size"
    CLEAR_CACHE = "clear_cache"
    RECONFIGURE_PARAMETERS = "reconfigure_parameters"
    RESTART_FROM_CHECKPOINT = "restart_from_checkpoint"
    RETRY_SAME = "retry_same"
    OTHER_GPUS_FENCED = "other_gpus_fenced"
    WAIT_FOR_SPACE = "wait_for_space"
    GIVE_UP = "give_up"


class Charge(StrEnum):
    """Whether a retry counts against the job's max_retries."""

    NO = "no"
    AFTER_BUDGET = "after_budget"  # the category's own retries come first
    YES = "yes"


SAME_ROOT_LIMIT = 3


@dataclass(frozen=True, slots=True)
class Row:
    """`budget` are the category's own retries (None: no limit), `delays` the waits before them,
    the last of which repeats (None: the job's retry_delays). `same_root` is how often the same
    root may come without a step of progress before nothing more is tried."""

    strategy: Strategy
    budget: int | None = 0
    delays: tuple[float, ...] | None = (0.0,)
    charge: Charge = Charge.NO
    same_root: int = SAME_ROOT_LIMIT
    renews: bool = False  # the budget is fresh after every step of progress
    other_gpus: bool = False  # elsewhere, if there is an elsewhere


_GIVE_UP = Row(Strategy.GIVE_UP, 0, ())
_MEMORY = Row(Strategy.RECONFIGURE_PARAMETERS, 2, (30.0,))
_WAIT_LONGER = (30.0, 120.0, 600.0)
_RANKS = Row(Strategy.RETRY_SAME, 3, _WAIT_LONGER, renews=True)
_FAULT = Row(Strategy.RETRY_SAME, 1, (30.0,), Charge.AFTER_BUDGET, same_root=2, other_gpus=True)
# Nothing is wrong with the job; a bound remains for one that takes its host down each time.
_FREE = Row(Strategy.RETRY_SAME, None, (0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 60.0), same_root=20)
_CHARGED = Row(Strategy.RETRY_SAME, 0, None, Charge.YES)
# Waiting is what these need, so that the same root says little.
_NETWORK_TRIES = 5

ROWS: dict[Category, Row] = {
    Category.GPU_OOM: Row(Strategy.REDUCE_BATCH_SIZE, 4, (0.0,)),
    Category.HOST_OOM: _MEMORY,
    Category.SHM: _MEMORY,
    Category.FD_LIMIT: _MEMORY,
    Category.RLIMIT: _CHARGED,
    Category.CUDA_FAULT: _FAULT,
    Category.GPU_HW: Row(Strategy.OTHER_GPUS_FENCED, None, (0.0,)),
    Category.GPU_BUSY: Row(Strategy.CLEAR_CACHE, 3, _WAIT_LONGER, renews=True),
    Category.HOST_DRIVER: _GIVE_UP,
    Category.COMM_HANG: _RANKS,
    Category.COMM_NET: _RANKS,
    Category.RENDEZVOUS: _RANKS,
    Category.PORT_IN_USE: Row(Strategy.RECONFIGURE_PARAMETERS, 3, (5.0, 30.0, 120.0)),
    Category.STALL: _RANKS,
    Category.NAN: Row(Strategy.RESTART_FROM_CHECKPOINT, 2, (0.0,)),
    Category.DISK_FULL: Row(Strategy.WAIT_FOR_SPACE, 2, (30.0,), renews=True),
    Category.STORAGE: Row(Strategy.RETRY_SAME, 1, (60.0,), renews=True),
    Category.CKPT_CORRUPT: Row(Strategy.RESTART_FROM_CHECKPOINT, 2, (0.0,)),
    Category.CKPT_MISMATCH: _GIVE_UP,
    Category.CKPT_MISSING: Row(Strategy.RESTART_FROM_CHECKPOINT, 1, (0.0,)),
    Category.PARTIAL_DOWNLOAD: Row(Strategy.CLEAR_CACHE, 2, (5.0, 60.0)),
    Category.NETWORK: Row(
        Strategy.RETRY_SAME,
        _NETWORK_TRIES,
        (30.0, 60.0, 120.0, 300.0, 900.0),
        same_root=_NETWORK_TRIES + 1,
        renews=True,
    ),
    Category.RATE_LIMIT: Row(
        Strategy.RETRY_SAME,
        _NETWORK_TRIES,
        (60.0, 300.0, 900.0),
        same_root=_NETWORK_TRIES + 1,
        renews=True,
    ),
    Category.AUTH: _GIVE_UP,
    Category.MODEL_ID: _GIVE_UP,
    Category.MODEL_FILES: _GIVE_UP,
    Category.IMPORT: _GIVE_UP,
    Category.ENV: _GIVE_UP,
    Category.CODE: _GIVE_UP,
    Category.CODE_DATA: _GIVE_UP,
    Category.CONFIG: _GIVE_UP,
    Category.PATH: _GIVE_UP,
    Category.DATA: _GIVE_UP,
    Category.SEGFAULT: _FAULT,
    Category.CRASH: _FAULT,
    Category.SERVICE: _CHARGED,
    Category.PREEMPTED: _FREE,
    Category.SERVER_RESTART: _FREE,
    Category.TIME_LIMIT: Row(Strategy.RETRY_SAME, None, (0.0,)),
    Category.TIMEOUT: _CHARGED,
    Category.RULE: _CHARGED,
    Category.EXTERNAL_STOP: _GIVE_UP,
    Category.UNKNOWN_KILL: _CHARGED,
    Category.UNKNOWN: _CHARGED,
}

NEVER_RETRIED = frozenset(
    category for category, row in ROWS.items() if row.strategy is Strategy.GIVE_UP
)
