"""Why a plan is as it is: stable codes with parameters, worded only where they are shown."""

from __future__ import annotations

# Something is changed. Parameters of each: category, and those named here.
BATCH_SIZE_REDUCED = "batch_size_reduced"  # before, after, accumulation, effective_kept
BATCH_SCALE_REDUCED = "batch_scale_reduced"  # scale: the program must ask for it
RECOMPUTE_ACTIVATIONS = "recompute_activations"  # name
GPU_HELD_BY_OTHERS = "gpu_held_by_others"  # foreign_bytes: waits until the GPU is empty
WORKERS_REDUCED = "workers_reduced"  # before, after
PINNING_OFF = "pinning_off"  # name: the loader pins no memory any more
PORT_CHANGED = "port_changed"  # before, after
LEARNING_RATE_LOWERED = "learning_rate_lowered"  # before, after, bad_step
ROLLED_BACK = "rolled_back"  # bad_step: an older checkpoint, nothing else
CHECKPOINT_REPLACED = "checkpoint_replaced"  # path: the broken one
FRESH_START = "fresh_start"  # no checkpoint to resume from
CACHE_CLEARED = "cache_cleared"  # path
GPU_FENCED = "gpu_fenced"  # gpus
OTHER_GPU = "other_gpu"
WAIT_FOR_SPACE = "wait_for_space"  # path, free_bytes, wanted_bytes
RETRY_SAME = "retry_same"
OWN_CHANGE_WITHDRAWN = "own_change_withdrawn"  # name: the program did not take it

# Nothing more is tried.
NOT_RETRYABLE = "not_retryable"  # the same would happen again
NO_RETRIES_ASKED = "no_retries_asked"  # max_retries is 0
BUDGET_USED_UP = "budget_used_up"  # budget
RETRIES_USED_UP = "retries_used_up"  # max_retries
SAME_ROOT_AGAIN = "same_root_again"  # times, fingerprint, step
NOTHING_TO_CHANGE = "nothing_to_change"  # what
BATCH_SIZE_IS_ONE = "batch_size_is_one"
BATCH_SEARCH_EXHAUSTED = "batch_search_exhausted"
READ_ONLY = "read_only"
BY_OVERRIDE = "by_override"

GIVE_UPS = frozenset(
    {
        NOT_RETRYABLE,
        NO_RETRIES_ASKED,
        BUDGET_USED_UP,
        RETRIES_USED_UP,
        SAME_ROOT_AGAIN,
        NOTHING_TO_CHANGE,
        BATCH_SIZE_IS_ONE,
        BATCH_SEARCH_EXHAUSTED,
        READ_ONLY,
        BY_OVERRIDE,
    }
)
