"""Fixtures of the conductor's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.launch.fake_hub import Hub, serve


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    yield from serve(monkeypatch)


@pytest.fixture(scope="session")  # fsspec keeps its connection to the first one
def bucket() -> Iterator[str]:
    """An empty bucket of a server of its own, which the environment names, as with any S3 that is not Amazon's."""
    moto = pytest.importorskip("moto.server")
    pytest.importorskip("s3fs")
    import boto3

    server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        boto3.client("s3").create_bucket(Bucket="malmoi")
        yield "s3://malmoi"
    server.stop()
