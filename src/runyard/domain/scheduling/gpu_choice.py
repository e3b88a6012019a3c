"""Which GPUs of a machine a job gets: close to each other, and packed so that big holes stay."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from runyard.domain.resources import Gpu, GpuGrant, Request

WHOLE = 1000

_WORD = re.compile(r"[a-z0-9]+")


@lru_cache(maxsize=1024)
def matches_type(wanted: str | None, name: str) -> bool:
    """Whether a GPU of this name is what `wanted` means: "RTX 4090", "rtx4090" and "4090" all mean
    an "NVIDIA GeForce RTX 4090"; "A10" does not mean an A100."""
    if wanted is None:
        return True
    asked, words = _words(wanted), _words(name)
    if not asked:
        return False
    if set(asked) <= set(words):
        return True
    squeezed = "".join(asked)
    return any(
        "".join(words[start:end]) == squeezed
        for start in range(len(words))
        for end in range(start + 1, len(words) + 1)
    )


def usable(gpu: Gpu) -> bool:
    """Whether we may give this GPU to a job at all."""
    return not (gpu.fenced or gpu.holders or gpu.locked_by_other_server)


def choose_gpus(
    gpus: Sequence[Gpu],
    request: Request,
    used: Mapping[str, int],
    *,
    kept: Mapping[str, int] | None = None,
    allowed: Callable[[Gpu], bool] = usable,
) -> tuple[GpuGrant, ...] | None:
    """The GPUs for this request, () when it wants none, None when they are not free.

    `used` holds the granted thousandths by uuid, `kept` those that belong to somebody else's
    reservation.
    """
    if request.gpu_milli <= 0:
        return ()
    if not request.shares_gpu and not _untouched(gpus, used, request.gpu_whole):
        return None  # most questions on a busy cluster end here, so this is asked first
    room = {
        gpu.uuid: WHOLE - used.get(gpu.uuid, 0) - (kept.get(gpu.uuid, 0) if kept else 0)
        for gpu in gpus
    }
    fitting = [gpu for gpu in gpus if allowed(gpu) and matches_type(request.gpu_type, gpu.name)]
    if request.shares_gpu:
        return _choose_share(fitting, request.gpu_milli, room)
    free = [gpu for gpu in fitting if room[gpu.uuid] >= WHOLE]
    chosen = _choose_whole(free, request.gpu_whole)
    if chosen is None:
        return None
    return tuple(GpuGrant(gpu.uuid, gpu.index, WHOLE) for gpu in chosen)


def _untouched(gpus: Sequence[Gpu], used: Mapping[str, int], wanted: int) -> bool:
    """Whether of so many nothing is granted, whatever else they are."""
    if len(gpus) < wanted:
        return False
    for gpu in gpus:
        if not used.get(gpu.uuid):
            wanted -= 1
            if not wanted:
                return True
    return False


def group_count(gpus: Iterable[Gpu], grants: Iterable[GpuGrant]) -> int:
    """Over how many topology groups these grants spread."""
    chosen = {grant.uuid for grant in grants}
    return len({gpu.group for gpu in gpus if gpu.uuid in chosen})


def _choose_share(
    gpus: Sequence[Gpu], milli: int, room: Mapping[str, int]
) -> tuple[GpuGrant, ...] | None:
    fitting = [gpu for gpu in gpus if room[gpu.uuid] >= milli]
    if not fitting:
        return None
    untouched = _by_group(gpu for gpu in gpus if room[gpu.uuid] >= WHOLE)

    def cost(gpu: Gpu) -> tuple[bool, int, int, int]:
        fresh = room[gpu.uuid] >= WHOLE
        # a fresh GPU is broken up where the fewest whole ones lie together
        return (fresh, len(untouched[gpu.group]) if fresh else 0, room[gpu.uuid], gpu.index)

    best = min(fitting, key=cost)
    return (GpuGrant(best.uuid, best.index, milli),)


def _choose_whole(free: Sequence[Gpu], count: int) -> list[Gpu] | None:
    if len(free) < count:
        return None
    models: dict[str, list[Gpu]] = {}
    for gpu in free:
        models.setdefault(gpu.name, []).append(gpu)
    # a job that did not ask for a type still runs best on equal GPUs
    pools = [model for model in models.values() if len(model) >= count] or [list(free)]
    picks = [_closest(pool, count) for pool in pools]
    return min(picks, key=lambda pick: (pick[0], pick[1], pick[2][0].index))[2]


def _closest(pool: Sequence[Gpu], count: int) -> tuple[int, int, list[Gpu]]:
    """(groups touched, GPUs left over in the last one, the GPUs): few groups, then tight ones."""
    groups = _by_group(pool)
    chosen: list[Gpu] = []
    touched = 0
    while True:
        missing = count - len(chosen)
        enough = [members for members in groups.values() if len(members) >= missing]
        if enough:
            tight = min(enough, key=lambda members: (len(members), members[0].index))
            chosen += tight[:missing]
            chosen.sort(key=lambda gpu: gpu.index)
            return touched + 1, len(tight) - missing, chosen
        name, largest = min(groups.items(), key=lambda item: (-len(item[1]), item[1][0].index))
        chosen += largest
        touched += 1
        del groups[name]


def _by_group(gpus: Iterable[Gpu]) -> dict[str, list[Gpu]]:
    groups: dict[str, list[Gpu]] = {}
    for gpu in sorted(gpus, key=lambda gpu: gpu.index):
        groups.setdefault(gpu.group, []).append(gpu)
    return groups


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
