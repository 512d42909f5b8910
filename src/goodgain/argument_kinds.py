"""Checks the arguments of public functions by their declared types, so that a wrong kind is one sentence."""

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from numbers import Real
from os import PathLike
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

from goodgain.errors import GoodgainError, InputError
from goodgain.options import spell

P = ParamSpec("P")
T = TypeVar("T")
#: Declared type -> what a message calls it. Other classes have their own names.
_WORD_OF_TYPE: dict[Any, str] = {
    str: "a text",
    bool: "True or False",
    int: "a number",
    float: "a number",
    NoneType: "None",
    PathLike: "a path",
    Mapping: "a dict",
    Callable: "a function",
}
#: Types of lists: in their place any iterable will do.
_LIST_TYPES = (Iterable, Collection, Sequence)
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def checks_kinds(function: Callable[P, T]) -> Callable[P, T]:
    """Turn an error of Python or Polars into an `InputError` if an argument is not of its declared type.

    The function's own checks come first: they say more. Types that say nothing at run time, such as `Any` and protocols, allow
    every value. An int is a number wherever a float is.

    >>> @checks_kinds
    ... def shorten(text: str, most: int = 5) -> str:
    ...     return text.strip()[:most]
    >>> shorten(["a", "b"])
    Traceback (most recent call last):
        ...
    goodgain.errors.InputError: text=['a', 'b']: give a text
    """
    signature = inspect.signature(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        with refuse_wrong_kinds(function, signature, args, kwargs):
            return function(*args, **kwargs)

    return call


@contextmanager
def refuse_wrong_kinds(
    function: Callable[..., Any], signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterator[None]:
    """Around a call: turn an error of Python or Polars into an `InputError` if an argument is not of its declared type."""
    try:
        yield
    except GoodgainError:
        raise
    except Exception as error:
        _raise_for_wrong_kind(error, function, signature, args, kwargs)
        raise


def _raise_for_wrong_kind(
    error: Exception,
    function: Callable[..., Any],
    signature: inspect.Signature,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> None:
    """Raise an `InputError` for the first argument that is not of its declared type."""
    with suppress(TypeError):  # arguments are missing: the error says so
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            parameter = signature.parameters[name]
            declared = _find_type(parameter, function)
            if parameter.kind not in _VARIABLE and not _is_of(value, declared):
                raise InputError(f"{spell(name, value)}: give {' or '.join(_describe(declared))}") from error


def _find_type(parameter: inspect.Parameter, function: Callable[..., Any]) -> Any:
    """Return the declared type of a parameter. Without a declaration, or if only type checkers know it, it is `Any`."""
    declared = parameter.annotation
    if isinstance(declared, str):
        try:
            declared = eval(declared, inspect.unwrap(function).__globals__)
        except NameError:
            return Any
    return Any if declared is parameter.empty else declared


def _is_of(value: Any, declared: Any) -> bool:
    origin, parts = get_origin(declared), get_args(declared)
    if origin in (Union, UnionType):
        return any(_is_of(value, part) for part in parts)
    if origin is Literal:
        return any(_is_of(value, type(choice)) for choice in parts)
    if declared is bool:
        return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")  # NumPy's
    if declared in (int, float):
        return isinstance(value, Real) and not isinstance(value, bool)

    kind = origin or declared
    if not _says_something(kind):
        return True
    if kind is Callable:
        return callable(value)
    if issubclass(kind, Mapping):
        return isinstance(value, Mapping) and (not parts or _has_pairs(value, *parts))
    if kind in _LIST_TYPES:
        is_list = isinstance(value, Iterable) and not isinstance(value, bytes | Mapping)
        return is_list and (not parts or _has_only(value, parts[0]))
    return isinstance(value, kind)


def _says_something(kind: Any) -> bool:
    """Return whether `isinstance` can check a type: not `Any`, a protocol or a typed dict."""
    if not isinstance(kind, type) or kind is Any:
        return False
    is_typed_dict = hasattr(kind, "__total__")
    return not is_typed_dict and not hasattr(kind, "_is_protocol")


def _has_pairs(value: Mapping[Any, Any], key_kind: Any, member_kind: Any) -> bool:
    return all(_is_of(key, key_kind) and _is_of(member, member_kind) for key, member in value.items())


def _has_only(value: Iterable[Any], member_kind: Any) -> bool:
    """Return whether all members are of a type. An iterator is not looked at, because that would use it up."""
    if not isinstance(value, Collection):
        return True
    return all(_is_of(member, member_kind) for member in value)


def _describe(declared: Any) -> list[str]:
    """Return what a declared type allows, in words without repetition."""
    origin, parts = get_origin(declared), get_args(declared)
    if origin in (Union, UnionType):
        words: list[str] = []
        for part in parts:
            words += _describe(part)
        return list(dict.fromkeys(words))  # int and float are both "a number"
    if origin is Literal:
        return [", ".join(map(repr, parts))]
    kind = origin or declared
    if kind in _WORD_OF_TYPE:
        return [_WORD_OF_TYPE[kind]]
    if parts and kind in _LIST_TYPES:
        member, *_ = _describe(parts[0])  # of several kinds of members, the first is named
        return [f"a list of {member.removeprefix('a ')}s"]
    return [getattr(kind, "__name__", str(kind))]
