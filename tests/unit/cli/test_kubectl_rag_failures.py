"""Commands of `kubectl rag` that cannot be carried out, or are ended: a line and an exit code, never a traceback."""

from pathlib import Path

import pytest
from tests.unit.cli.test_kubectl_rag import Cluster, Told, cluster, pipeline, policy

from tidegate_cli import rag_requests
from tidegate_cli.kubectl import Document
from tidegate_cli.kubectl_rag import main


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Told:
    return Told(capsys)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff", "the table is not UTF-8 at byte 0; convert it, for example with iconv"),
        (b"kind: ConfigMap\ndata: {routing.json: '{'}", "the table is neither JSON nor YAML: "),
        (b"kind: ConfigMap\ndata: {routing.json: 5}", "the table is not an object; give the ConfigMap"),
        (b"kind: ConfigMap\ndata: [routing.json]", "the ConfigMap holds no routing.json"),
    ],
)
def test_a_table_that_cannot_be_read_is_a_line(told: Told, tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "table").write_bytes(content)
    told(cluster(), "explain", "docs", "--table", str(tmp_path / "table"), code=1)
    assert message in told.error
    assert len(told.error.splitlines()) == 1


def test_ctrl_c_ends_a_command_without_a_traceback(told: Told) -> None:
    class Interrupted(Cluster):
        def find(self, kind: str, *, selector: str = "", group: str = ".tidegate.dev") -> list[Document]:
            raise KeyboardInterrupt

    assert told(Interrupted(), "status", "--watch", code=130) == ""
    assert told.error == ""


@pytest.mark.parametrize("header", ["x-beta", "=1", "x beta=1", "x-b\u00e9ta=1"])
def test_what_can_be_no_header_is_wrong_usage(capsys: pytest.CaptureFixture[str], header: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["explain", "docs", "--header", header])
    assert "is not NAME=VALUE, for example x-beta=1" in capsys.readouterr().err


def test_an_order_of_a_user_without_a_name_is_an_order(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 10001")

    monkeypatch.setattr(rag_requests.getpass, "getuser", nobody)
    at = cluster(pipeline(), policy("docs"))
    assert told.outcome(at, "promote", "docs")["by"] == ""
