"""What the GPUs of attempts held before they started; a restart of the server must not forget it:
what is used after their end is compared with it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from runyard.domain.states import AttemptStatus
from runyard.stores.base import Store, Transaction

_FLAG = "gpu_before:"


class MemoryBefore:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, dict[str, int]] = {}  # attempt -> gpu uuid -> MB

    def remember(self, attempt_id: str, used_mb: Mapping[str, int]) -> None:
        self._known[attempt_id] = dict(used_mb)
        self._keep(attempt_id, json.dumps(dict(used_mb)))

    def of(self, attempt_id: str) -> Mapping[str, int]:
        """Empty where nobody knows it, as of an attempt that an earlier release started."""
        if attempt_id not in self._known:
            with self._store.read() as reader:
                kept = reader.flag(_FLAG + attempt_id)
            self._known[attempt_id] = json.loads(kept) if kept else {}
        return self._known[attempt_id]

    def forget(self, attempt_id: str) -> None:
        self._known.pop(attempt_id, None)
        self._keep(attempt_id, None)

    def forget_ended(self) -> None:
        """Of attempts whose server died between their end and this."""
        with self._store.read() as reader:
            kept = [name.removeprefix(_FLAG) for name in reader.flags(_FLAG)]
            found = {name: reader.attempt(name) for name in kept}
        for name, attempt in found.items():
            if attempt is None or attempt.status is AttemptStatus.ENDED:
                self.forget(name)

    def _keep(self, attempt_id: str, value: str | None) -> None:
        def work(tx: Transaction) -> None:
            tx.set_flag(_FLAG + attempt_id, value)

        self._store.write_soon(work, durable=False)
