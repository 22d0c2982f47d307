"""`tidegate query` against what is no pipeline, and with arguments that no request can carry: a line and a next step."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.integration.local_server import run_command

ANSWER = {"release": "rel-1", "arm": "stable", "results": []}


class Peer:
    """Listens, answers the first request with given bytes, and keeps what it was sent."""

    def __init__(self, answer: bytes) -> None:
        self.received = b""
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    @property
    def url(self) -> str:
        """Return where it listens."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        """End it, whether or not somebody came."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _run(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # closed before anybody came
            return
        with connection:
            while b"\r\n\r\n" not in self.received or not self.received.endswith(b"}"):
                received = connection.recv(65536)
                assert received, "the request ended too early"
                self.received += received
            connection.sendall(self._answer)


@contextmanager
def peer(answer: bytes) -> Iterator[Peer]:
    """Return a peer for one request."""
    listening = Peer(answer)
    try:
        yield listening
    finally:
        listening.close()


def http(content: bytes, status: str = "200 OK", length: int | None = None) -> bytes:
    size = len(content) if length is None else length
    return f"HTTP/1.1 {status}\r\ncontent-length: {size}\r\n\r\n".encode() + content


def refusal(*arguments: str) -> str:
    """Return the one line with which a question fails."""
    done = run_command("query", "who?", *arguments)
    assert (done.returncode, done.stdout) == (1, ""), done
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr.rstrip()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (http(b"<html>hello</html>"), "URL did not answer as Tidegate does; check the address"),
        (http(b"\xff\xfe"), "URL did not answer as Tidegate does; check the address"),
        (http(b"[]"), "URL did not answer as Tidegate does; check the address"),
        (http(b'{"results": []}'), "URL did not answer as Tidegate does; check the address"),
        (http(b"", "404 Not Found"), "HTTP 404 from URL/v1/retrieve; check the address"),
        (http(b"{", "500 Oops", length=100), "HTTP 500 from URL/v1/retrieve; check the address"),
        (
            http(b"{}", length=100),
            'URL does not speak HTTP as it should ("IncompleteRead(2 bytes read, 98 more expected)"); check the address',
        ),
        (b"SSH-2.0-OpenSSH_9.6\r\n", 'URL does not speak HTTP as it should ("SSH-2.0-OpenSSH_9.6"); check the address'),
        (b"", "URL cannot be reached (Remote end closed connection without response); is it running?"),
    ],
    ids=["html", "binary", "list", "no release", "404", "cut 500", "cut 200", "ssh", "nothing"],
)
def test_what_is_no_pipeline_is_said_to_be_none(answer: bytes, message: str) -> None:
    with peer(answer) as listening:
        assert refusal("--url", listening.url) == message.replace("URL", listening.url)


@pytest.mark.parametrize(
    "url", ["foo", "file:///etc/passwd", "http://", "http://h:70000", "http://[::1", f"http://{'a' * 64}", "http://h/é"]
)
def test_what_cannot_be_an_address_is_refused(url: str) -> None:
    assert refusal("--url", url) == (
        f"{url!r} is no address: it must begin with http:// or https:// and go on with a host, "
        "such as http://127.0.0.1:8080"
    )


def test_an_address_with_a_space_is_refused() -> None:
    assert "'http://h/a b' is no address (URL can't contain control characters." in refusal("--url", "http://h/a b")


def test_a_value_with_a_line_break_is_refused_and_not_shown() -> None:
    assert refusal("--key", "abc\ndef") == "the value for header authorization holds a line break; remove it"


def test_identities_are_sent_as_utf_8() -> None:
    with peer(http(json.dumps(ANSWER).encode())) as listening:
        done = run_command("query", "谁?", "--url", listening.url, "--tenant", "中文", "--user", "Zoë")
        assert (done.returncode, done.stderr) == (0, "")
        headers = listening.received.lower()
    assert b"\r\nx-tidegate-tenant: " + "中文".encode() + b"\r\n" in headers
    assert b"\r\nx-tidegate-user: " + "zoë".encode() + b"\r\n" in headers
