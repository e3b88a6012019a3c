"""The web page: served without a key, strictly, confined, below any path."""

import gzip
import http.client

import pytest
from served import BASE, Served

INDEX = """<!doctype html><html lang="en"><head><meta charset="utf-8" />
<base href="/" /><title>Runyard</title><script type="module" src="./assets/app-1a2b.js"></script>
</head><body><div id="app"></div></body></html>
"""
SCRIPT = "console.log('runyard');" * 200
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def _built(folder):
    (folder / "assets" / "deep").mkdir(parents=True)
    (folder / "index.html").write_text(INDEX)
    (folder / "theme.js").write_text("1")
    (folder / "favicon.svg").write_text("<svg/>")
    (folder / ".env").write_text("hidden")
    script = folder / "assets" / "app-1a2b.js"
    script.write_text(SCRIPT)
    script.with_name("app-1a2b.js.gz").write_bytes(gzip.compress(SCRIPT.encode()))
    script.with_name("app-1a2b.js.br").write_bytes(b"brotli")
    (folder / "assets" / "plain-9z.css").write_text("a{}")
    (folder / "assets" / "deep" / "font.woff2").write_bytes(b"font")
    (folder.parent / "secret.js").write_text("secret")
    (folder / "assets" / "way-out.js").symlink_to(folder.parent / "secret.js")
    return folder


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("web")
    made = Served(folder / "data", web=_built(folder / "built"))
    yield made
    made.close()


def get(served, path, method="GET", **headers):
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return served.call(method, path, key="", headers=sent)


PAGES = """
/ /now /jobs /jobs/job-abc /jobs/job-abc/logs /queue /alerts /machines /settings /login /nowhere
"""


@pytest.mark.parametrize("path", PAGES.split())
def test_every_page_is_index_html_without_a_key(served, path):
    answer = get(served, path, **HTML)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert '<div id="app">' in answer.data.decode()
    assert '<base href="/" />' in answer.data.decode()


def test_the_root_is_a_page_for_whoever_asks(served):
    assert get(served, "/", Authorization="").status == 200
    assert get(served, "/", Accept="*/*").status == 200
    assert get(served, "/?from=mail", **HTML).status == 200


@pytest.mark.parametrize(
    "path", ["/api", f"{BASE}/jobs", "/api/training-jobs", f"{BASE}/nowhere", "/cancel_job/1"]
)
def test_paths_of_the_api_are_no_pages(served, path):
    assert get(served, path, **HTML).status == 401
    assert get(served, "/healthz", **HTML).body["status"] == "ok"
    assert "openapi" in get(served, "/docs", **HTML).data.decode()


def test_what_is_no_page_and_no_file_still_needs_a_key(served):
    assert get(served, "/nowhere").status == 401
    assert get(served, "/nowhere", Accept="application/json").status == 401
    assert get(served, "/jobs", "POST", **HTML).status == 401


def test_the_policy_is_strict(served):
    """R37: strict Content-Security-Policy, no external requests at all."""
    headers = get(served, "/", **HTML).headers
    rules = dict(
        rule.strip().split(" ", 1) for rule in headers["Content-Security-Policy"].split(";")
    )
    assert rules["default-src"] == rules["script-src"] == rules["style-src"] == "'self'"
    assert rules["style-src-attr"] == "'unsafe-inline'"
    assert rules["frame-ancestors"] == rules["object-src"] == "'none'"
    assert rules["base-uri"] == rules["form-action"] == "'self'"
    assert rules["img-src"] == "'self' data:"
    own = f"127.0.0.1:{served.port}"
    assert rules["connect-src"] == f"'self' ws://{own} wss://{own}"
    assert "unsafe-eval" not in headers["Content-Security-Policy"]
    assert "*" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"


def test_other_answers_are_not_taken_for_pages(served):
    docs = served.call("GET", "/docs").headers
    assert "default-src 'none'" in docs["Content-Security-Policy"]
    assert docs["X-Frame-Options"] == "DENY"
    for path in (f"{BASE}/jobs", "/healthz", "/docs", "/metrics", "/nowhere"):
        assert served.call("GET", path).headers.get_all("X-Content-Type-Options") == ["nosniff"]


def test_a_host_cannot_write_into_the_policy(served):
    answer = get(served, "/", Host="x; script-src evil.localhost", **HTML)
    assert "evil" not in answer.headers.get("Content-Security-Policy", "")
    answer = get(served, "/", X_Forwarded_Host="*", **HTML)
    assert "*" not in answer.headers["Content-Security-Policy"]
    assert get(served, "/", Host="evil.example", **HTML).code == "wrong_host"


def test_the_page_is_asked_for_again_and_sent_when_it_changed(served):
    first = get(served, "/", **HTML)
    assert first.headers["Cache-Control"] == "no-cache"
    tag = first.headers["ETag"]
    assert get(served, "/jobs", If_None_Match=tag, **HTML).status == 304
    assert get(served, "/", If_None_Match=f'"x", W/{tag}', **HTML).status == 304
    assert get(served, "/", If_None_Match='"x"', **HTML).status == 200
    below = get(served, "/", X_Forwarded_Prefix="/yard", **HTML)
    assert below.headers["ETag"] != tag


def test_assets_are_kept_for_ever_and_sent_packed(served):
    path = "/assets/app-1a2b.js"
    plain = get(served, path)
    assert plain.data.decode() == SCRIPT
    assert plain.headers["Content-Type"].startswith("text/javascript")
    assert plain.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert plain.headers["Vary"] == "Accept-Encoding"
    assert plain.headers["X-Content-Type-Options"] == "nosniff"
    zipped = get(served, path, Accept_Encoding="gzip, deflate")
    assert zipped.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(zipped.data).decode() == SCRIPT
    assert zipped.headers["Content-Type"].startswith("text/javascript")
    assert get(served, path, Accept_Encoding="gzip, br").data == b"brotli"
    assert get(served, path, Accept_Encoding="br;q=0, gzip;q=0.5").data == zipped.data
    assert get(served, path, Accept_Encoding="br;q=0.0").data == plain.data
    assert get(served, "/assets/plain-9z.css", Accept_Encoding="br").data == b"a{}"
    assert get(served, "/assets/deep/font.woff2").headers["Content-Type"] == "font/woff2"
    tags = {one.headers["ETag"] for one in (plain, zipped)}
    assert len(tags) == 2
    assert get(served, path, If_None_Match=plain.headers["ETag"]).status == 304


def test_a_part_of_an_asset(served):
    part = get(served, "/assets/app-1a2b.js", Range="bytes=0-6")
    assert (part.status, part.data) == (206, b"console")
    assert part.headers["Content-Range"] == f"bytes 0-6/{len(SCRIPT)}"
    assert get(served, "/assets/app-1a2b.js", Range="bytes=99999-").status == 416


@pytest.mark.parametrize("path", ["/", "/jobs", "/assets/app-1a2b.js", "/favicon.svg"])
def test_head_is_get_without_a_body(served, path):
    there, head = get(served, path, **HTML), get(served, path, "HEAD", **HTML)
    assert (head.status, head.data) == (200, b"")
    assert head.headers["Content-Length"] == there.headers["Content-Length"]
    assert head.headers["ETag"] == there.headers["ETag"]


def test_files_beside_the_page(served):
    assert get(served, "/theme.js").data == b"1"
    icon = get(served, "/favicon.svg")
    assert icon.headers["Content-Type"] == "image/svg+xml"
    assert icon.headers["Cache-Control"] == "no-cache"
    assert get(served, "/favicon.ico").status == 401
    assert get(served, "/.env").status == 401


WAYS_OUT = [
    "/assets/../../secret.js",
    "/assets/%2e%2e/%2e%2e/secret.js",
    "/assets/..%2f..%2fsecret.js",
    "/assets/..%5c..%5csecret.js",
    "/assets//etc/passwd",
    "/assets/%2fetc%2fpasswd",
    "/assets/way-out.js",
    "/assets/.env",
    "/assets/../.env",
    "/assets/app-1a2b.js%00.css",
    "/assets/",
    "/assets/deep",
    "/assets/nothing.js",
]


@pytest.mark.parametrize("path", WAYS_OUT)
def test_no_way_leads_out(served, path):
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    connection.request("GET", path)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    assert answer.status == 404, path
    assert b"secret" not in data
    assert b"root:" not in data


@pytest.mark.parametrize("prefix", ["/yard", "/a/b-c", "/yard/"])
def test_below_a_path_that_a_proxy_strips(served, prefix):
    page = get(served, "/jobs", X_Forwarded_Prefix=prefix, **HTML).data.decode()
    assert f'<base href="{prefix.rstrip("/")}/" />' in page
    answer = served.api(
        "POST", "/session", {"key": served.user}, key="", headers={"X-Forwarded-Prefix": prefix}
    )
    assert f"Path={prefix.rstrip('/')};" in answer.headers["Set-Cookie"]


@pytest.mark.parametrize(
    "prefix", ["//evil.example", "https://evil.example", '/"><script>', "/../x", "/a b", "\\\\x"]
)
def test_a_prefix_that_is_no_path_is_ignored(served, prefix):
    page = get(served, "/", X_Forwarded_Prefix=prefix, **HTML).data.decode()
    assert '<base href="/" />' in page


def test_below_a_path_that_a_proxy_passes_on(tmp_path):
    served = Served(tmp_path / "data", web=_built(tmp_path / "built"), root_path="/yard")
    try:
        for path in ("/yard", "/yard/", "/yard/jobs/1", "/jobs/1"):
            page = get(served, path, **HTML).data.decode()
            assert '<base href="/yard/" />' in page, path
        assert get(served, "/yard/assets/app-1a2b.js").status == 200
        for _ in range(2):
            served.submit(hold=True)
        listed = served.call("GET", f"/yard{BASE}/jobs", limit=1)
        assert listed.status == 200
        assert listed.headers["Link"].startswith(f"</yard{BASE}/jobs?")
        link = served.call("POST", f"/yard{BASE}/session/link").body
        assert link["path"].startswith("/yard/login#token=")
        assert get(served, "/yardstick", **HTML).status == 200
        assert get(served, f"/yardstick{BASE}/jobs").status == 401
    finally:
        served.close()


def test_a_server_without_its_page_says_how_to_build_it(make_served):
    served = make_served()
    for path in ("/", "/jobs"):
        answer = get(served, path, **HTML)
        assert answer.status == 200
        assert "make web" in answer.data.decode()
        assert answer.headers["Cache-Control"] == "no-store"
        assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
    assert get(served, "/assets/app.js").status == 404
