"""Terms of texts in all the scripts, and of what people type."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.unit.runtime.store.samples import PUBLIC, lexical_hits, make_document, make_shape

from tidegate_runtime.stores.embedded import EmbeddedReader, EmbeddedWriter
from tidegate_runtime.stores.embedded.analyzer import query_terms_of, terms_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Foxes jumped over running dogs", ["fox", "jump", "over", "run", "dog"]),
        ("It's the dog's, they don't", ["dog", "don"]),
        ("max_tokens=256; C++ v2.5", ["max", "token", "256", "c", "v2", "5"]),
        ("state-of-the-art", ["state", "art"]),
        ("naïve café Straße", ["naïv", "café", "straße"]),
        ("Привет Мир", ["привет", "мир"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("한국어 검색", ["한국어", "검색"]),
        ("ภาษา", ["ภา", "าษ", "ษา"]),
        ("カタカナ", ["カタ", "タカ", "カナ"]),
        ("ｶﾞｷﾞ", ["ガギ"]),
        ("co\u00adoperate\u200b x\ufe0f", ["cooper", "x"]),
        ("", []),
    ],
)
def test_words_by_script(text: str, expected: list[str]) -> None:
    assert sorted(terms_of(text)) == sorted(expected)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What does the fox say about its own dogs?", ["fox", "say", "dog"]),
        ("Who are they?", ["who"]),
        ("how do you do", ["how", "do", "you", "do"]),
        ("what is 年假", ["年假"]),
        ("What is a café?", ["café"]),
    ],
)
def test_a_query_leaves_out_what_only_shapes_it_unless_nothing_else_is_there(query: str, expected: list[str]) -> None:
    assert query_terms_of(query) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("红烧肉的做法", {"红烧", "烧肉", "红烧肉", "做法"}),
        ("中华人民共和国", {"中华人民共和国", "中华", "华人", "人民", "共和", "共和国"}),
        ("张培仁创办魔岩唱片", {"张培", "培仁", "创办", "魔岩", "唱片"}),
        ("什么是量子纠缠？", {"量子", "纠缠"}),
        ("李成栋的字是什么", {"李成", "栋", "字"}),
        ("RTX4090显卡有多少个", {"rtx4090", "显卡"}),
        ("𠮷野家", {"𠮷野", "野家"}),
    ],
)
def test_han_text_gives_dictionary_words_their_parts_and_pairs_of_the_rest(text: str, expected: set[str]) -> None:
    assert expected <= set(terms_of(text))
    assert not {"的", "是", "什么", "多少"} & set(terms_of(text))


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("ＲＴＸ４０９０", "RTX4090"),
        ("１０％", "10%"),
        ("年假\u3000制度", "年假 制度"),
        ("（一）", "(一)"),
        ("５㎏", "5kg"),
        ("A－1", "a-1"),
        ("A−1", "a-1"),
        ("A‐1", "a‑1"),
        ("ﬁne", "fine"),
        ("cafe\u0301", "café"),
        ("ABC１２３", "abc123"),
    ],
)
def test_two_ways_to_write_one_thing_meet(written: str, asked: str) -> None:
    assert terms_of(written)
    assert terms_of(written) == terms_of(asked)


QUERIES_OF_ALL_KINDS = [
    "C++/CLI (v2) 是什么?",
    "原因/方案",
    "7-abc*",
    '"未闭合',
    "a AND OR b",
    "/regex/",
    "~",
    "***",
    "🙂🙂",
    "👩‍👩‍👧‍👦",
    "年" * 4000,
    "ab 中" * 1000,
    "x" * 4000,
    "a'" * 2000,
    "。",
    "\x00\x01\x1f\x7f",
    "\ud800",
    "\u0301\u0301",
    "\u202e\u200f",
    "foo) OR tenant:B",
]


@pytest.fixture(scope="module")
def mixed_revision(tmp_path_factory: pytest.TempPathFactory) -> EmbeddedReader:
    folder = tmp_path_factory.mktemp("mixed")
    writer = EmbeddedWriter.open(folder, revision="r", shape=make_shape(language="multi"))
    documents = [make_document(f"{i}", [query]) for i, query in enumerate(QUERIES_OF_ALL_KINDS)]
    writer.commit(upserts=documents, rules=PUBLIC)
    writer.mark_ready(dense=True)
    writer.close()
    return EmbeddedReader.open(folder)


@pytest.mark.parametrize("number", range(len(QUERIES_OF_ALL_KINDS)))
def test_no_query_fails_and_one_that_has_words_finds_itself(mixed_revision: EmbeddedReader, number: int) -> None:
    query = QUERIES_OF_ALL_KINDS[number]
    hits = lexical_hits(mixed_revision.snapshot(), query)
    if terms_of(query):
        assert hits[0] == (str(number), query)
    else:
        assert hits == []


DISHES = ["红烧肉", "宫保鸡丁", "麻婆豆腐", "鱼香肉丝", "糖醋排骨", "清蒸鲈鱼", "回锅肉", "水煮鱼", "东坡肉", "佛跳墙"]


def test_a_dish_finds_its_recipe_and_an_unrelated_question_finds_nothing(tmp_path: Path) -> None:
    writer = EmbeddedWriter.open(tmp_path, revision="r", shape=make_shape(language="zh"))
    documents = [make_document(dish, [f"{dish}的做法是先准备材料，然后下锅。"]) for dish in DISHES]
    writer.commit(upserts=documents, rules=PUBLIC)
    writer.mark_ready(dense=True)
    snapshot = EmbeddedReader.open(tmp_path).snapshot()
    for dish in DISHES:
        assert lexical_hits(snapshot, f"{dish}怎么做？")[0][0] == dish
    assert lexical_hits(snapshot, "什么是量子纠缠？") == []


@pytest.mark.parametrize("before", ["５㎏ ", "ﬁ🐟", "e\u0301e\u0301", "👩‍👩‍👧 "])
def test_a_hit_shows_the_slice_of_the_original(tmp_path: Path, before: str) -> None:
    original = before + "ＲＴＸ４０９０ 保修"
    document = make_document("a", [original])
    writer = EmbeddedWriter.open(tmp_path, revision="r", shape=make_shape())
    writer.commit(upserts=[document], rules=PUBLIC)
    writer.mark_ready(dense=True)
    assert lexical_hits(EmbeddedReader.open(tmp_path).snapshot(), "rtx4090 保修") == [("a", original)]


def test_threads_get_the_same_terms() -> None:
    text = " ".join(f"{stem}{number} walking{number}ings" for number in range(300) for stem in ("runs", "jumped"))
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append(terms_of(text))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [terms_of(text)] * 8


def test_the_dictionary_is_loaded_for_han_text_only_and_silently(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from tidegate_runtime.stores.embedded import han\n"
        "from tidegate_runtime.stores.embedded.analyzer import query_terms_of, terms_of\n"
        "terms_of('plain english, naïve')\n"
        "assert han._load.cache_info().currsize == 0\n"
        "assert '量子' in terms_of('量子纠缠')\n"
        "assert han._load.cache_info().currsize == 1\n"
        "assert 'jieba' not in sys.modules\n"
    )
    environment = {"TMPDIR": str(tmp_path), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []
