"""What a client asks about what jobs left and what they need: checkpoints, files, datasets."""

from __future__ import annotations

from typing import Any

from runyard.sdk.asking import BASE, in_path, job_path
from runyard.sdk.connection import Connection


class Results:
    _connection: Connection

    def checkpoints(self, job: str | int) -> list[dict[str, Any]]:
        """In the order they were saved, each with its step, size and verdict."""
        return list(self._connection.request("GET", f"{BASE}{job_path(job)}/checkpoints").json())

    def files(self, job: str | int) -> dict[str, Any]:
        """What is in the job's output directory."""
        return dict(self._connection.request("GET", f"{BASE}{job_path(job)}/files").json())

    def datasets(self) -> list[dict[str, Any]]:
        """By name."""
        return list(self._connection.request("GET", f"{BASE}/datasets").json())

    def create_dataset(self, name: str, uri: str, *, hash: str | None = None) -> dict[str, Any]:
        """`create_dataset("images", "https://...")`; its `id` goes into a job's dataset_ids."""
        body = {"name": name, "uri": uri, "hash": hash}
        return dict(self._connection.request("POST", f"{BASE}/datasets", body=body).json())

    def delete_dataset(self, dataset: str | int) -> None:
        """By its name or number. Jobs that were submitted with it are not affected."""
        self._connection.request("DELETE", f"{BASE}/datasets/{in_path(dataset)}")
