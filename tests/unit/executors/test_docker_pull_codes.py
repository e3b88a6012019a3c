"""What kind of trouble an engine's words about a pull are."""

import pytest

from runyard.executors.docker_pull import code_of

SAID = {
    "not_found": [
        "manifest for 127.0.0.1:5000/missing:1 not found: manifest unknown: manifest unknown",
        "name unknown: repository name not known to registry",
    ],
    "auth": [
        "pull access denied for trainer, repository does not exist or may require 'docker login': "
        "denied: requested access to the resource is denied",
        "unauthorized: authentication required",
        'Head "https://registry.example.org/v2/": no basic auth credentials',
    ],
    "network": [
        'Get "http://127.0.0.1:5000/v2/": dial tcp 127.0.0.1:5000: connect: connection refused',
        "dial tcp: lookup registry.example.org on 10.0.0.2:53: no such host",
        "net/http: request canceled while waiting for connection (Client.Timeout exceeded)",
        "toomanyrequests: You have reached your pull rate limit.",
        "received unexpected HTTP status: 503 Service Unavailable",
        "('Connection aborted.', RemoteDisconnected('Remote end closed connection'))",
        "unexpected EOF",
    ],
    "disk_full": ["write /var/lib/docker/tmp/GetImageBlob1: no space left on device"],
    "failed": ["invalid reference format", "image operating system linux/arm64 does not match"],
}


@pytest.mark.parametrize(("code", "message"), [(c, m) for c, said in SAID.items() for m in said])
def test_only_what_may_pass_is_called_so(code, message):
    assert code_of(message) == code
