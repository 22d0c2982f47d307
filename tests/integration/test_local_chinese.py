"""Chinese documents under `tidegate local`: language found by itself, words cut, widths folded."""

import hashlib
import json
from collections.abc import Iterator

import pytest
from tests.integration.local_server import (
    Answer,
    LocalServer,
    config_map,
    knowledge_base,
    pipeline,
    running,
    write_manifests,
)

pytestmark = [pytest.mark.models, pytest.mark.timeout(400)]

DOCUMENTS = {
    "mapo.md": "# 麻婆豆腐\n\n麻婆豆腐用嫩豆腐、牛肉末和郫县豆瓣酱烧成，口味麻辣，出锅前撒花椒粉。",
    "hongshao.md": "# 红烧肉\n\n红烧肉选五花肉，先炒糖色，再用小火炖一个小时。",
    "qingzheng.md": "# 清蒸鲈鱼\n\n鲈鱼洗净后铺上姜丝，大火蒸八分钟，淋蒸鱼豉油。",
    "jianbing.md": "# 煎饼果子\n\n天津的煎饼果子用绿豆面糊摊成，里面夹油条或薄脆。",
    "shouji.md": "# 手机保修\n\n海潮牌手机自购买之日起保修一年，屏幕损坏不在保修范围之内。",
    "xianka.md": "# 显卡\n\n工作站配有ＲＴＸ４０９０显卡，显存为二十四ＧＢ。",
    "zhekou.md": "# 会员\n\n金卡会员在生日当月购物享受１０％的折扣。",
    "xiangzi.md": "# 包裹\n\n单个包裹不得超过３０㎏，超重的包裹须分开寄送。",
    "tiaokuan.md": "# 条款\n\n第（一）条：租客应在每月五日之前缴纳房租。",
    "bianhao.md": "# 设备编号\n\n三号机房的空调编号为ＡＢＣ－１２３，由运维部负责。",
    "chunjie.md": "# 春节假期\n\n公司春节放假八天，前后两个周末调休上班。",
    "wifi.md": "# 无线网络\n\n访客无线网络的密码每周一更换，请到前台领取。",
}


KEY = "reader-key"


@pytest.fixture(scope="module")
def handbook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    folder = tmp_path_factory.mktemp("chinese")
    # A key with the scope `explain`: each leg's scores show what it has found.
    entry = {"sha256": hashlib.sha256(KEY.encode()).hexdigest(), "tenants": ["t"], "scopes": ["query", "explain"]}
    write_manifests(
        folder / "files",
        {**config_map("handbook"), "data": DOCUMENTS},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"t": json.dumps(entry)}},
        knowledge_base("handbook", {"name": "handbook", "from": {"configMap": {"name": "handbook"}}}),
        pipeline("handbook", "handbook", auth={"apiKeys": {"secretRef": {"name": "keys"}}}),
    )
    with running(LocalServer(folder, folder / "files")) as server:
        yield server


def ask(server: LocalServer, query: str) -> Answer:
    answer = server.ask(query, key=KEY, top_k=50, explain=True)
    assert answer.status == 200, answer
    return answer


def words_found(answer: Answer) -> list[str]:
    """Return the documents in which the bm25 leg has found a word, best first."""
    hits = [(each["scores"]["bm25"], each["document_id"]) for each in answer.results if each["scores"]["bm25"] > 0]
    return [document for _, document in sorted(hits, reverse=True)]


def test_the_language_and_the_encoder_are_chosen_from_the_documents(handbook: LocalServer) -> None:
    state = handbook.state_of("handbook-indexer")
    assert state["census"]["language"] == "zh"
    (revision,) = state["revisions"]
    assert revision["language"] == "zh"
    assert revision["embedder"].startswith("use-m3@")
    assert revision["truncatedChunks"] == 0
    assert json.loads((handbook.state / "local.json").read_text())["languages"] == {"handbook": "zh"}


@pytest.mark.parametrize(
    ("query", "document"),
    [
        ("麻婆豆腐怎么做", "mapo.md"),
        ("红烧肉要炖多久", "hongshao.md"),
        ("鲈鱼要蒸几分钟", "qingzheng.md"),
        ("海潮牌手机保修多长时间", "shouji.md"),
        ("煎饼果子里夹什么", "jianbing.md"),
        ("春节放几天假", "chunjie.md"),
    ],
)
def test_the_right_document_comes_first_and_the_words_alone_find_it(
    handbook: LocalServer, query: str, document: str
) -> None:
    answer = ask(handbook, query)
    assert answer.documents[0] == document
    assert words_found(answer)[0] == document
    for result in answer.results:
        place = result["location"]
        assert result["content"] == DOCUMENTS[result["document_id"]][place["start"] : place["end"]]


def test_an_unrelated_question_finds_no_words_instead_of_the_same_document_each_time(handbook: LocalServer) -> None:
    for query in ("量子纠缠", "xylophone", "！？。", "冰川"):
        assert words_found(ask(handbook, query)) == []


@pytest.mark.parametrize(
    ("query", "document"),
    [
        ("RTX4090", "xianka.md"),
        ("rtx4090", "xianka.md"),
        ("ＲＴＸ４０９０", "xianka.md"),
        ("10%的折扣", "zhekou.md"),
        ("１０％的折扣", "zhekou.md"),
        ("30kg的包裹", "xiangzi.md"),
        ("(一)条租客", "tiaokuan.md"),
        ("ABC-123", "bianhao.md"),
        ("ABC\u2212123", "bianhao.md"),
        ("ABC\u3000123", "bianhao.md"),
    ],
)
def test_full_and_half_width_meet_and_the_original_is_shown(handbook: LocalServer, query: str, document: str) -> None:
    answer = ask(handbook, query)
    assert words_found(answer)[0] == document
    shown = next(each for each in answer.results if each["document_id"] == document)
    assert shown["content"] in DOCUMENTS[document]
