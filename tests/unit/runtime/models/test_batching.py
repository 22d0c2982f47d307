"""On a CPU every text is its own run; on a GPU shapes come from a short list."""

from hypothesis import given
from hypothesis import strategies as st

from tidegate_runtime.models.batching import GPU_LENGTHS, GPU_ROWS, Batch, plan_bucketed, plan_single

lengths = st.lists(st.integers(min_value=2, max_value=512), max_size=200)


def test_single_runs_keep_order_and_length() -> None:
    assert plan_single([5, 3]) == [Batch((0,), rows=1, length=5), Batch((1,), rows=1, length=3)]


@given(lengths)
def test_bucketed_runs_hold_every_text_once_in_a_shape_it_fits(lengths: list[int]) -> None:
    batches = plan_bucketed(lengths)
    assert sorted(number for batch in batches for number in batch.numbers) == list(range(len(lengths)))
    for batch in batches:
        assert batch.rows in GPU_ROWS
        assert batch.length in GPU_LENGTHS
        assert len(batch.numbers) <= batch.rows
        assert max(lengths[number] for number in batch.numbers) <= batch.length


def test_bucketed_runs_join_texts_of_similar_length() -> None:
    assert plan_bucketed([200, 10, 190, 12] * 32) == [
        Batch(tuple(range(1, 128, 4)) + tuple(range(3, 128, 4)), rows=64, length=16),
        Batch(tuple(range(2, 128, 4)) + tuple(range(0, 128, 4)), rows=64, length=256),
    ]


def test_a_text_beyond_the_longest_shape_keeps_its_length() -> None:
    assert plan_bucketed([700]) == [Batch((0,), rows=1, length=700)]
