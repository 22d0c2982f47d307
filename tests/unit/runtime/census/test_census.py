"""Scripts of documents, and the language and the dense leg that they decide."""

import pytest

from tidegate_api.builtins import MINILM, USE_M3
from tidegate_api.shape import Language
from tidegate_runtime.indexer.census import count_scripts, decide_language, language_mismatch_share, take_census

ENGLISH = "Annual leave is twenty-five days. "
CHINESE = "年假为二十五天，病假需要证明。"
MIXED = "使用 kubectl apply 部署 Deployment 资源，然后用 kubectl get pods 检查状态。"
JAPANESE = "有給休暇は年に二十五日です。"
RUSSIAN = "Отпуск составляет двадцать пять дней."


@pytest.mark.parametrize(
    ("text", "scripts"),
    [
        ("Straße café ﬁne Ａ", {"Latin": 14}),
        ("年假", {"Han": 2}),
        ("ひらカタｶﾅ", {"Kana": 6}),
        ("한국어", {"Hangul": 3}),
        (
            "дни αβγ עברית عربى हि ไทย",
            {"Cyrillic": 3, "Greek": 3, "Hebrew": 5, "Arabic": 4, "Devanagari": 1, "Thai": 3},
        ),
        ("𠮷ა", {"Han": 1, "Other": 1}),
        ("123 ①㎏ … 👩‍🚀 +-= ，。", {}),
        ("", {}),
    ],
)
def test_letters_are_counted_by_script_and_nothing_else(text: str, scripts: dict[str, int]) -> None:
    assert count_scripts(text) == scripts


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        ([], "en"),
        (["123"], "en"),
        ([ENGLISH], "en"),
        ([ENGLISH] * 200 + [RUSSIAN], "en"),
        ([ENGLISH] * 5 + [RUSSIAN], "multi"),
        ([CHINESE], "zh"),
        ([MIXED], "zh"),
        ([ENGLISH, ENGLISH, CHINESE], "multi"),
        ([JAPANESE], "multi"),
        ([RUSSIAN], "multi"),
    ],
)
def test_scripts_decide_the_language(texts: list[str], language: Language) -> None:
    census = take_census(texts)
    assert (census.language, census.documents) == (language, len(texts))


def test_the_census_lists_its_counts() -> None:
    assert take_census([ENGLISH, "年假"]).scripts == {"Han": 2, "Latin": 27}


def test_counts_of_several_documents_decide_like_their_sum() -> None:
    assert decide_language(count_scripts(CHINESE) + count_scripts(MIXED)) == "zh"


def test_a_long_document_is_sampled_at_both_ends_and_in_the_middle() -> None:
    counts = count_scripts("a" * 40_000 + "中" * 40_000 + "д" * 40_000)
    assert counts == {"Latin": 2000, "Han": 2000, "Cyrillic": 2000}


@pytest.mark.parametrize(
    ("chunks", "share"),
    [([], 0.0), ([ENGLISH, "123"], 0.0), ([ENGLISH] * 3 + [CHINESE], 0.25), ([ENGLISH + "年假"], 0.0), ([MIXED], 1.0)],
)
def test_chunks_outside_the_encoders_languages_are_a_share(chunks: list[str], share: float) -> None:
    assert language_mismatch_share(chunks, MINILM) == share


def test_an_encoder_for_any_language_has_no_chunk_outside() -> None:
    assert language_mismatch_share([CHINESE, RUSSIAN], USE_M3) == 0


def test_the_scripts_of_an_encoders_languages_are_readable() -> None:
    fingerprint = MINILM.model_copy(update={"languages": ["en", "ru", "ja"]})
    assert language_mismatch_share([ENGLISH, RUSSIAN, JAPANESE, "한국어"], fingerprint) == 0.25
