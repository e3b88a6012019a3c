"""Asks a cluster who it is: `python probe_main.py ADDRESS`; prints one JSON object.

A program of its own, because Ray reads how to authenticate once per process: with
RAY_AUTH_MODE=disabled it tells whether the cluster answers people without a token.
"""

import json
import os
import socket
import sys
from typing import Any

_CONNECT_S = 3.0
_ANSWER_S = 5.0


def main(address: str) -> dict[str, Any]:
    import ray
    from ray._private import services
    from ray._raylet import GcsClient  # type: ignore[attr-defined,unused-ignore]

    found: dict[str, Any] = {"ray": ray.__version__, "python": sys.version.split()[0]}
    if address == "auto":
        address = services.get_ray_address_from_environment("auto", None) or ""
    found["address"] = address
    host, _, port = address.rpartition(":")
    try:
        # Ray itself would try for 40 s where nobody listens.
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
    except (OSError, ValueError) as error:
        return found | {"error": "unreachable", "message": str(error)}
    try:
        client = GcsClient(address=address)
        data = client.internal_kv_get(b"CLUSTER_METADATA", b"cluster", timeout=_ANSWER_S)
    except Exception as error:
        code = "refused" if type(error).__name__ == "AuthenticationError" else "failed"
        return found | {"error": code, "message": str(error)[:500]}
    return found | {"cluster": json.loads(data) if data else {}}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])), flush=True)
    os._exit(0)  # Ray's threads need not be waited for
