"""The key of a machine's own command line, made at the first start."""

from concurrent.futures import ThreadPoolExecutor


def test_servers_that_start_together_each_get_a_key(make_engine, tmp_path):
    """R54: several servers of one database make their keys at the same moment."""
    engine = make_engine()
    folders = [tmp_path / f"server{n}" for n in range(8)]
    for folder in folders:
        folder.mkdir()
    ring = engine.yard.key_ring
    with ThreadPoolExecutor(len(folders)) as pool:
        secrets = list(pool.map(ring.ensure_local, folders))
    assert len(set(secrets)) == len(folders)
    assert all(engine.yard.authenticate(secret).role == "admin" for secret in secrets)
    assert all((folder / "admin.key").stat().st_mode & 0o077 == 0 for folder in folders)
    assert [ring.ensure_local(folder) for folder in folders] == secrets


def test_a_key_that_no_longer_opens_the_store_is_made_anew(make_engine, tmp_path):
    """R54"""
    engine = make_engine()
    (tmp_path / "admin.key").write_text("ry_from_another_database\n")
    secret = engine.yard.key_ring.ensure_local(tmp_path)
    assert engine.yard.authenticate(secret).role == "admin"
