"""What becomes of a message (steering.md §4); scenarios of the steering reference §23."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwarden.spec.supervisors import OPERATOR
from nightwarden.steering.mailbox import (
    TRANSITIONS,
    Mailbox,
    NoSuchMessage,
    State,
    TooLate,
    event_of,
)
from nightwarden.steering.ports import NotQueued, Words


def words(number: int, text: str = "look", *, node: str = "", author: str = "dog") -> Words:
    return Words(message_id=f"m{number}", run_id="r", node_id=node, author=author, text=text)


def ids(messages: list) -> list[str]:  # type: ignore[type-arg]
    return [m.message_id for m in messages]


def box(*given: Words) -> Mailbox:
    found = Mailbox("r")
    for i, each in enumerate(given):
        found.enqueue(each, float(i))
    return found


def test_a_node_drains_its_own_and_what_is_for_any_oldest_first() -> None:
    """Scenario 61."""
    mail = box(
        words(1, node="a", author=OPERATOR),
        words(2, node="b", author=OPERATOR),
        words(3, author=OPERATOR),
    )
    assert ids(mail.take("a", 5)) == ["m1", "m3"]
    assert mail.get("m2").state is State.QUEUED


def test_who_does_not_know_its_node_takes_what_there_is() -> None:
    mail = box(words(1, node="a", author=OPERATOR), words(2, node="b", author=OPERATOR))
    assert ids(mail.take(None, 5)) == ["m1", "m2"]


def test_a_person_goes_first() -> None:
    mail = box(words(1, author="dog"), words(2, author=OPERATOR))
    assert ids(mail.take("a", 5)) == ["m2", "m1"]


def test_a_persons_word_that_is_on_its_way_holds_no_supervisor_up() -> None:
    """§4: one gate a node for supervisors, so that advice does not stack up; people have none."""
    mail = box(words(1, author=OPERATOR))
    assert ids(mail.take("a", 5)) == ["m1"]
    mail.enqueue(words(2, author="dog"), 6)
    assert ids(mail.take("a", 7)) == ["m2"]
    mail.enqueue(words(3, author="cat"), 8)
    assert ids(mail.take("a", 9)) == [], "the dog's word has not been taken up"


def test_delivered_then_consumed_by_the_next_step() -> None:
    mail = box(words(1, node="a"))
    (delivered,) = mail.take("a", 5)
    assert (delivered.state, delivered.delivered_at) == (State.DELIVERED, 5)
    assert mail.stepped("b", 6) == []
    (consumed,) = mail.stepped("a", 7)
    assert (consumed.state, consumed.consumed_at) == (State.CONSUMED, 7)


def test_a_newer_word_of_the_same_supervisor_replaces_one_still_queued() -> None:
    mail = box(words(1, node="a"))
    changed = mail.enqueue(words(2, node="a"), 3)
    assert [(m.message_id, m.state) for m in changed] == [
        ("m1", State.CANCELLED),
        ("m2", State.QUEUED),
    ]
    assert mail.get("m1").reason == "a newer one replaced it"


def test_words_to_another_node_of_another_author_or_a_person_are_not_replaced() -> None:
    mail = box(
        words(1, node="a"),
        words(2, node="b"),
        words(3, node="a", author="cat"),
        words(4, node="a", author=OPERATOR),
        words(5, node="a", author=OPERATOR),
    )
    assert {m.state for m in mail.all()} == {State.QUEUED}


def test_supervisors_share_one_gate_a_node() -> None:
    """steering.md §4: advice does not stack up."""
    mail = box(words(1, node="a"), words(2, node="a", author="cat"), words(3, node="b"))
    assert ids(mail.take("a", 5)) == ["m1"]
    assert ids(mail.take("a", 6)) == []
    assert ids(mail.take("b", 6)) == ["m3"]
    mail.stepped("a", 7)
    assert ids(mail.take("a", 8)) == ["m2"]


def test_the_gate_does_not_hold_a_person_up() -> None:
    mail = box(words(1, node="a"))
    mail.take("a", 5)
    mail.enqueue(words(2, node="a", author=OPERATOR), 6)
    assert ids(mail.take("a", 7)) == ["m2"]


def test_a_human_pause_folds_everything_that_waits_in() -> None:
    """Scenario 68."""
    mail = box(words(1), words(2, author="cat"), words(3, author=OPERATOR))
    assert ids(mail.fold("a", 5)) == ["m3", "m1", "m2"]
    assert {m.state for m in mail.all()} == {State.DELIVERED}


def test_a_delivered_message_cannot_be_taken_back() -> None:
    """Scenario 62."""
    mail = box(words(1))
    mail.take("a", 1)
    with pytest.raises(TooLate, match="m1 is delivered"):
        mail.cancel("m1")
    with pytest.raises(NoSuchMessage, match="no message 'm9'"):
        mail.cancel("m9")


def test_a_run_that_is_over_takes_nothing() -> None:
    """Scenario 63."""
    mail = box(words(1))
    assert [(m.message_id, m.reason) for m in mail.run_ended()] == [("m1", "the run ended")]
    with pytest.raises(NotQueued, match="is over"):
        mail.enqueue(words(2), 1)


def test_a_text_without_a_word_is_refused() -> None:
    with pytest.raises(NotQueued, match="empty"):
        box().enqueue(words(1, " \n"), 0)


@pytest.mark.parametrize("state", [State.QUEUED, State.DELIVERED, State.CONSUMED, State.CANCELLED])
def test_an_id_that_is_known_is_inserted_once(state: State) -> None:
    """Scenarios 64 and 65: whatever became of it, it is not revived."""
    mail = box(words(1, node="a"))
    if state in (State.DELIVERED, State.CONSUMED):
        mail.take("a", 1)
    if state is State.CONSUMED:
        mail.stepped("a", 2)
    if state is State.CANCELLED:
        mail.cancel("m1")
    assert mail.enqueue(words(1, "again", node="a"), 9) == []
    assert mail.get("m1").state is state
    assert mail.get("m1").text == "look"


def test_two_drainers_show_a_message_once() -> None:
    """Scenario 69."""
    mail = box(words(1, author=OPERATOR))
    first, second = mail.waiting("a", 1), mail.waiting("a", 1)
    assert ids(mail.deliver(first, 1)) == ["m1"]
    assert ids(mail.deliver(second, 1)) == []


def test_time_ends_what_waits_with_a_record() -> None:
    mail = Mailbox("r")
    mail.enqueue(words(1), 0, ttl_s=60)
    assert mail.take("a", 60) == []
    assert [(m.state, m.reason) for m in mail.expire(60)] == [(State.EXPIRED, "its time passed")]


def test_the_end_of_a_node_ends_what_was_for_it_alone() -> None:
    mail = box(words(1, node="a"), words(2), words(3, node="b"))
    assert ids(mail.node_ended("a")) == ["m1"]
    assert [m.state for m in mail.all()] == [State.EXPIRED, State.QUEUED, State.QUEUED]


def test_what_the_agent_never_got_goes_back() -> None:
    mail = box(words(1))
    mail.take("a", 1)
    assert mail.undelivered("m1").state is State.QUEUED
    assert ids(mail.take("a", 2)) == ["m1"]
    mail.stepped("a", 3)
    with pytest.raises(TooLate):
        mail.undelivered("m1")


def test_every_state_has_its_event() -> None:
    mail = Mailbox("r")
    mail.enqueue(words(1, node="a"), 0, ttl_s=60)
    queued = event_of(mail.get("m1"), lambda at: f"t{at:g}")
    assert (queued.text, queued.expires_at, queued.node_id) == ("look", "t60", "a")  # type: ignore[union-attr]
    tags = []
    for change in (
        lambda: mail.take("a", 1)[0],
        lambda: mail.stepped("a", 2)[0],
        lambda: mail.enqueue(words(2), 3)[0],
        lambda: mail.cancel("m2", "no"),
        lambda: mail.enqueue(words(3), 3)[0],
        lambda: mail.run_ended()[0],
    ):
        tags.append(event_of(change(), str).__struct_config__.tag)
    assert tags == [
        f"user_message_{word}"
        for word in ("delivered", "consumed", "queued", "cancelled", "queued", "expired")
    ]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["enqueue", "take", "fold", "step", "cancel", "node", "expire", "run"]),
        st.integers(0, 5),
        st.sampled_from(["", "a", "b"]),
        st.sampled_from(["dog", "cat", OPERATOR]),
    ),
    max_size=25,
)


@given(STEPS)
def test_no_message_is_lost_and_none_goes_an_unknown_way(steps: list[tuple]) -> None:  # type: ignore[type-arg]
    mail, now, known = Mailbox("r"), 0.0, {}
    for what, number, node, author in steps:
        now += 10
        try:
            match what:
                case "enqueue":
                    mail.enqueue(words(number, node=node, author=author), now, ttl_s=45)
                case "take":
                    mail.take(node or None, now)
                case "fold":
                    mail.fold(node or None, now)
                case "step":
                    mail.stepped(node, now)
                case "cancel":
                    mail.cancel(f"m{number}")
                case "node":
                    mail.node_ended(node)
                case "expire":
                    mail.expire(now)
                case "run":
                    mail.run_ended()
        except (TooLate, NoSuchMessage, NotQueued):
            pass
        for message in mail.all():
            before = known.get(message.message_id, message.state)
            assert before == message.state or message.state in TRANSITIONS[before]
            known[message.message_id] = message.state
        assert set(known) == set(ids(mail.all()))
        open_words = [
            m for m in mail.all() if m.state is State.DELIVERED and not m.by_operator and m.node_id
        ]
        if what != "fold" and not any(s[0] == "fold" for s in steps):
            assert len({m.node_id for m in open_words}) == len(open_words)
