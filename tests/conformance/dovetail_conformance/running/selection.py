"""-k EXPRESSION: words with and, or, not and parentheses, as in pytest.

A word is found anywhere in a case's id, upper or lower case; one with * or ? must match the whole id; an op's or a
part's full name (`add`, `device.memory`) means that one alone, not logaddexp too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from ..ids import glob

Predicate = Callable[[str], bool]


class BadExpression(ValueError):
    pass


def selects(expression: str, groups: Collection[str] = ()) -> Predicate:
    """Does an id satisfy the expression? `groups` are the names that stand for themselves."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression)
    if not tokens:
        raise BadExpression("-k: the expression is empty")
    known = {g.lower() for g in groups}
    try:
        predicate, rest = _either(tokens, known)
    except RecursionError:
        raise BadExpression("-k: too many parentheses inside one another") from None
    if rest:
        raise BadExpression(f"-k: {rest[0]!r} is not expected here: put and, or, not between words")
    return predicate


def _any_of(a: Predicate, b: Predicate) -> Predicate:
    return lambda id: a(id) or b(id)


def _all_of(a: Predicate, b: Predicate) -> Predicate:
    return lambda id: a(id) and b(id)


def _either(tokens: list[str], groups: Collection[str]) -> tuple[Predicate, list[str]]:
    left, rest = _both(tokens, groups)
    while rest and rest[0].lower() == "or":
        right, rest = _both(rest[1:], groups)
        left = _any_of(left, right)
    return left, rest


def _both(tokens: list[str], groups: Collection[str]) -> tuple[Predicate, list[str]]:
    left, rest = _one(tokens, groups)
    while rest and rest[0].lower() == "and":
        right, rest = _one(rest[1:], groups)
        left = _all_of(left, right)
    return left, rest


def _one(tokens: list[str], groups: Collection[str]) -> tuple[Predicate, list[str]]:
    if not tokens or tokens[0] == ")" or tokens[0].lower() in ("and", "or"):
        raise BadExpression(f"-k: a word is missing {f'before {tokens[0]!r}' if tokens else 'at the end'}")
    head, rest = tokens[0].lower(), tokens[1:]
    if head == "not":
        inner, rest = _one(rest, groups)
        return lambda id: not inner(id), rest
    if head == "(":
        inner, rest = _either(rest, groups)
        if not rest or rest[0] != ")":
            raise BadExpression("-k: a closing parenthesis is missing")
        return inner, rest[1:]
    if "*" in head or "?" in head:
        matches = glob(head)
        return lambda id: matches(id.lower()), rest
    if head in groups:
        return lambda id: id.lower().partition("[")[0] == head, rest
    return lambda id: head in id.lower(), rest
