"""Mutate bytes, texts and nests of values, as accidents and mischief would."""

import datetime
import math
import struct

NUMBERS = (0, 1, -1, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63)
ODD_NUMBERS = (0.0, -0.0, 1e-320, 0.5, 1.0, 1e6, 1e308, math.inf, -math.inf, math.nan)
LETTERS = "aZ09 ._-/\\:'\"[]{}=,#\n\t\0éß漢🙂\u202e\ufeff"


def mutated_bytes(random, data):
    """Change, cut, repeat, remove or insert some of the bytes."""
    for _ in range(random.randint(1, 4)):
        data = random.choice(CHANGES)(random, data)
    return data


def _flip(random, data):
    if not data:
        return data
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def _cut(random, data):
    return data[: random.randint(0, len(data))]


def _number(random, data):
    """Write a whole number where there may have been another."""
    number, size = random.choice(NUMBERS), random.choice("BHIQ")
    wide = struct.calcsize(size)
    spelt = struct.pack(random.choice("<>") + size, number % 256**wide)
    at = random.randint(0, max(0, len(data) - wide))
    return data[:at] + spelt + data[at + wide :]


def _remove(random, data):
    start, end = _stretch(random, data)
    return data[:start] + data[end:]


def _repeat(random, data):
    start, end = _stretch(random, data)
    return data[:end] + data[start:end] * random.randint(1, 3) + data[end:]


def _insert(random, data):
    at = random.randint(0, len(data))
    return data[:at] + random.randbytes(random.randint(1, 12)) + data[at:]


def _move(random, data):
    start, end = _stretch(random, data)
    at = random.randint(0, len(data))
    return data[:at] + data[start:end] + data[at + end - start :]


def _stretch(random, data):
    start = random.randint(0, len(data))
    return start, min(len(data), start + random.choice((1, 2, 4, 16, 64, 512)))


# Flips are what happens most, and what most checks are for.
CHANGES = (_flip, _flip, _flip, _cut, _number, _number, _remove, _repeat, _insert, _move)


def mutated_text(random, text, pieces=()):
    """Put pieces into a text, in the place of others."""
    for _ in range(random.randint(1, 3)):
        start = random.randint(0, len(text))
        end = min(len(text), start + random.randint(0, 12))
        piece = random.choice(pieces) if pieces and random.random() < 0.5 else word(random)
        text = text[:start] + piece + text[end:]
    return text


def mutated_nest(random, nest, value):
    """Delete, replace, rename, add and swap what lies in tables and lists, in place."""
    for _ in range(random.randint(1, 4)):
        known = list(places(nest))
        if not known:
            return nest
        path = random.choice(known)
        at = holder(nest, path)
        act = random.choice(("delete", "replace", "rename", "add", "swap"))
        if act == "delete":
            del at[path[-1]]
        elif act == "rename" and isinstance(at, dict):
            at[value.key(random)] = at.pop(path[-1])
        elif act == "add" and isinstance(at, dict):
            at[value.key(random)] = value(random)
        elif act == "swap":
            other = random.choice(known)
            at[path[-1]] = copied(holder(nest, other)[other[-1]])
        else:
            at[path[-1]] = value(random)
    return nest


def places(value, below=()):
    """List the path of everything in a table."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in inner:
        yield (*below, key)
        if isinstance(item, dict | list):
            yield from places(item, (*below, key))


def holder(nest, path):
    for key in path[:-1]:
        nest = nest[key]
    return nest


def copied(nest):
    """Copy tables and lists; what lies in them is never changed."""
    if isinstance(nest, dict):
        return {key: copied(item) for key, item in nest.items()}
    return [copied(item) for item in nest] if isinstance(nest, list) else nest


class Values:
    """Values of any kind, with some words more often than others."""

    def __init__(self, words, keys, dates=False):
        self.words, self.keys = words, keys
        self.scalars = [self._boolean, self._small, self._large, self._odd, self._word]
        if dates:
            self.scalars.append(self._date)

    def __call__(self, random, depth=2):
        choice = random.random()
        if depth and choice < 0.1:
            return [self(random, depth - 1) for _ in range(random.randint(0, 4))]
        if depth and choice < 0.2:
            count = random.randint(0, 4)
            return {self.key(random): self(random, depth - 1) for _ in range(count)}
        return random.choice(self.scalars)(random)

    def key(self, random):
        return random.choice(self.keys) if random.random() < 0.5 else word(random, 5)

    def _word(self, random):
        return random.choice(self.words) if random.random() < 0.5 else word(random)

    def _boolean(self, random):
        return random.random() < 0.5

    def _small(self, random):
        return random.randint(-3, 40)

    def _large(self, random):
        return random.randint(-(2**70), 2**70)

    def _odd(self, random):
        return random.choice((*ODD_NUMBERS, random.uniform(-10, 10)))

    def _date(self, random):
        at = datetime.datetime(random.randint(1, 9999), 1, 2, 3, 4, 5, random.randrange(10**6))
        zone = datetime.timezone(datetime.timedelta(minutes=random.randint(-1000, 1000)))
        return random.choice((at, at.replace(tzinfo=zone), at.date(), at.time()))


def word(random, most=20):
    """Return letters of all kinds in a row."""
    return "".join(_letter(random) for _ in range(random.randint(0, most)))


def _letter(random):
    if random.random() < 0.7:
        return random.choice(LETTERS)
    number = random.randrange(0x110000 - 0x800)
    # Surrogates are no letters, and no text has them.
    return chr(number if number < 0xD800 else number + 0x800)
