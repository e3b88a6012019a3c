"""Buckets in another region than the environment says; the real ones cannot be reached here."""

from email.message import Message

import pytest

from runyard.prefetch import backoff, object_access, object_source, signing
from runyard.prefetch.listed import Asking


class ScriptedAnswer:
    def __init__(self, status, headers):
        self.status, self.headers = status, Message()
        for name, value in headers.items():
            self.headers[name] = value

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


class ScriptedConnections:
    """Answers as a store does that has the bucket in `home`."""

    def __init__(self, home, status):
        self.home, self.status, self.asked = home, status, []

    def ask(self, method, url, headers=None, authorize=None):  # noqa: ARG002
        self.asked.append((method, url, authorize(method, url).get("Authorization", "")))
        if f"s3.{self.home}." not in url:
            return ScriptedAnswer(self.status, {"x-amz-bucket-region": self.home})
        return ScriptedAnswer(200, {"Content-Length": "3", "ETag": '"abc-2"'})


@pytest.mark.parametrize("status", [301, 400, 403])
def test_the_region_is_learned_and_signed_for(status):
    connections = ScriptedConnections("ap-test-2", status)
    asking = Asking(connections, lambda: backoff.Patience(1, 1.0, lambda _t, _d: None))
    keys = signing.Credentials("AKID", "secret")
    access = object_access.Access(None, "us-east-1", keys)
    bucket = object_source.Bucket("bucket", access, asking)
    (file,) = bucket.listed("s3://bucket/key", "key").files
    assert file.url == "https://s3.ap-test-2.amazonaws.com/bucket/key"
    assert (file.size, file.version, file.digest) == (3, "abc-2", None)
    assert [url for _, url, _ in connections.asked] == [
        "https://s3.us-east-1.amazonaws.com/bucket/key",
        "https://s3.ap-test-2.amazonaws.com/bucket/key",
    ]
    assert "/ap-test-2/s3/aws4_request" in connections.asked[1][2]
    assert "/ap-test-2/s3/" in file.authorize("GET", file.url)["Authorization"]
