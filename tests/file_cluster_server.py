"""A real server whose Ray is a cluster in a folder: FILE_CLUSTER names it."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from file_cluster import FileCluster
from runyard import server
from runyard.cli.main import main

_made_by_server = server._executors


def _with_cluster(settings, server_id):
    made = _made_by_server(replace(settings, executors=("local",)), server_id)
    return {**made, "ray": FileCluster(Path(os.environ["FILE_CLUSTER"]), settings.data_dir)}


if __name__ == "__main__":
    server._executors = _with_cluster
    sys.exit(main())
