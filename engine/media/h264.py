"""Reads the headers of H.264 packets without decoding a picture.

They say whether decoding may start at a picture (IDR), whether others depend on it (reference), and
its position in display order.  Anything that this module cannot read with certainty raises
`Unsure`; the caller then decodes everything.

Format: ITU-T H.264 (08/2021), 7.3.1 (NAL units), 7.3.2.1 (sequence parameter sets), 7.3.2.3 (SEI),
7.3.3 (slice headers), 8.2.1 (picture order count); ISO/IEC 14496-15, 5.3.3 (avcC).

Boundary: bytes in, facts out; knows neither containers nor decoders.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

SLICE, IDR, SEI, SPS, PPS, DELIMITER, FILLER = 1, 5, 6, 7, 8, 9, 12
HEADER = 64  # bytes of a slice that are enough for the header fields read here
_KNOWN = (SLICE, IDR, SEI, SPS, PPS, DELIMITER, FILLER)
# Profiles whose parameter sets have the chroma fields (7.3.2.1.1).
_CHROMA_PROFILES = (100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135)
# Buffering, timing, user data and recovery points: nothing that rotates or changes a picture.
_HARMLESS_SEI = (0, 1, 4, 5, 6)


class Unsure(Exception):
    """The clip cannot be read with certainty."""


class Sequence(NamedTuple):
    """The fields of a sequence parameter set that are needed to read slice headers."""

    frame_bits: int
    order_bits: int  # 0 if display order equals decoding order


class SliceHeader(NamedTuple):
    """The header of a slice; all slices of a picture have the same."""

    idr: bool
    reference: bool
    frame: int
    order: int  # the lowest bits of the picture order count


@dataclass(frozen=True)
class CodedPicture:
    """One packet; `order` rises in display order between two IDR pictures."""

    idr: bool
    reference: bool
    order: int


class Reader:
    """Reads a clip's packets, which must come in decoding order and begin with an IDR."""

    def __init__(self, extradata: bytes) -> None:
        self._length, self._given = _configuration(extradata)
        self._sets: tuple[bytes, ...] | None = None
        self._sequence = Sequence(0, 0)
        self._frame = self._msb = self._lsb = self._number = 0

    def picture(self, packet: bytes) -> CodedPicture:
        """The one whole frame in a packet; Unsure for anything else."""
        units = list(_split(packet, self._length))
        self._check_sets(tuple(unit for unit in units if unit[0] & 31 in (SPS, PPS)), units)
        headers = {self._header(unit) for unit in units if unit[0] & 31 in (SLICE, IDR)}
        if len(headers) != 1:
            raise Unsure("not one picture in a packet")
        header = headers.pop()
        self._check_frame(header)
        return CodedPicture(header.idr, header.reference, self._order(header))

    def _check_sets(self, sets: tuple[bytes, ...], units: list[bytes]) -> None:
        """Parameter sets come with every IDR picture or with none, and never change."""
        idr = any(unit[0] & 31 == IDR for unit in units)
        if self._sets is None:
            if not idr:
                raise Unsure("the clip does not begin with an IDR picture")
            self._sets = sets
            self._sequence = _sequence(sets or self._given)
        elif sets != self._sets and (idr or sets):
            raise Unsure("parameter sets change")

    def _header(self, unit: bytes) -> SliceHeader:
        idr = unit[0] & 31 == IDR
        bits = Bits(unit[1:HEADER])
        bits.ue()  # first macroblock
        if bits.ue() > 9:
            raise Unsure("no such type of slice")
        bits.ue()  # picture parameter set
        frame = bits.take(self._sequence.frame_bits)
        if idr:
            bits.ue()  # number of the IDR picture
        order = bits.take(self._sequence.order_bits)
        return SliceHeader(idr, bool(unit[0] & 0x60), frame, order)

    def _check_frame(self, header: SliceHeader) -> None:
        """Each picture's number must follow that of the last reference (7.4.3)."""
        wanted = 0 if header.idr else (self._frame + 1) % (1 << self._sequence.frame_bits)
        if header.frame != wanted or (header.idr and not header.reference):
            raise Unsure("pictures are missing")
        if header.reference:
            self._frame = header.frame

    def _order(self, header: SliceHeader) -> int:
        """The picture order count (8.2.1.1, 8.2.1.3), up to a constant factor."""
        self._number += 1
        if not self._sequence.order_bits:
            return self._number
        if header.idr:
            self._msb = self._lsb = 0
        most, step = 1 << self._sequence.order_bits, header.order - self._lsb
        msb = self._msb + most * ((step <= -most // 2) - (step > most // 2))
        if header.reference:
            self._msb, self._lsb = msb, header.order
        return msb + header.order


class Bits:
    """Reads the bits of a NAL unit's payload in order; Unsure beyond the end."""

    def __init__(self, payload: bytes) -> None:
        plain = payload.replace(b"\0\0\3", b"\0\0")  # 7.4.1: bytes against false start codes
        self._value, self._left = int.from_bytes(plain, "big"), 8 * len(plain)

    def take(self, count: int) -> int:
        """The next `count` bits as a number."""
        self._left -= count
        if self._left < 0:
            raise Unsure("a header ends early")
        return (self._value >> self._left) & ((1 << count) - 1)

    def ue(self) -> int:
        """The next number in Exp-Golomb code (9.1)."""
        zeros = 0
        while not self.take(1):
            zeros += 1
        if zeros > 32:
            raise Unsure("a number is too long")
        return (1 << zeros) - 1 + self.take(zeros)


def _configuration(extradata: bytes) -> tuple[int, tuple[bytes, ...]]:
    """(bytes of the length before each unit, 0 for start codes; the parameter sets)."""
    if not extradata.startswith(b"\1"):
        return 0, tuple(_split(extradata, 0))
    if len(extradata) < 7:
        raise Unsure("the decoder's configuration ends early")
    sets, at = list[bytes](), 5
    for mask in (31, 255):  # sequence parameter sets, then picture parameter sets
        number, at = extradata[at] & mask, at + 1
        for _ in range(number):
            size = int.from_bytes(extradata[at : at + 2], "big")
            sets.append(extradata[at + 2 : at + 2 + size])
            at += 2 + size
        if at >= len(extradata) + (mask == 255):
            raise Unsure("the decoder's configuration ends early")
    return (extradata[4] & 3) + 1, tuple(sets)


def _split(data: bytes, length: int) -> Iterator[bytes]:
    """The NAL units of a packet; those between start codes lose trailing zeros."""
    units = _counted(data, length) if length else _between_start_codes(data)
    for unit in units:
        if not unit or unit[0] & 0x80 or unit[0] & 31 not in _KNOWN:
            raise Unsure("a unit of an unknown kind")
        if unit[0] & 31 == SEI:
            _check_sei(unit)
        yield unit


def _counted(data: bytes, length: int) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        begin = at + length
        at = begin + int.from_bytes(data[at:begin], "big")
        if at > len(data):
            raise Unsure("a unit is longer than its packet")
        yield data[begin:at]


def _between_start_codes(data: bytes) -> Iterator[bytes]:
    first, *units = data.split(b"\0\0\1")
    if first.strip(b"\0"):
        raise Unsure("a packet does not begin with a start code")
    for unit in units:
        yield unit.rstrip(b"\0")


def _check_sei(unit: bytes) -> None:
    """A message is a type and a size, each a run of 255 bytes and a last byte, and a payload."""
    payload, at = unit[1:].replace(b"\0\0\3", b"\0\0"), 0
    while len(payload) - at > 1:
        kind, at = _sei_number(payload, at)
        size, at = _sei_number(payload, at)
        if kind not in _HARMLESS_SEI:
            raise Unsure("a message that may change pictures")
        at += size


def _sei_number(payload: bytes, at: int) -> tuple[int, int]:
    total = 0
    while at < len(payload):
        total += payload[at]
        at += 1
        if payload[at - 1] != 255:
            return total, at
    raise Unsure("a message ends early")


def _sequence(sets: tuple[bytes, ...]) -> Sequence:
    """The only sequence parameter set; Unsure if it allows fields or gaps."""
    found = [unit for unit in sets if unit and unit[0] & 31 == SPS]
    if len(found) != 1:
        raise Unsure("not one sequence parameter set")
    bits = Bits(found[0][1:])
    profile = bits.take(24) >> 16
    bits.ue()  # its own number
    if profile in _CHROMA_PROFILES:
        _skip_chroma(bits)
    frame_bits = bits.ue() + 4
    kind = bits.ue()
    if kind not in (0, 2):
        raise Unsure("pictures ordered by rule 1")
    order_bits = bits.ue() + 4 if kind == 0 else 0
    bits.ue()  # number of references
    gaps = bits.take(1)
    bits.ue()  # width in macroblocks, less one
    bits.ue()  # height
    if gaps or not bits.take(1):
        raise Unsure("gaps or fields")
    return Sequence(frame_bits, order_bits)


def _skip_chroma(bits: Bits) -> None:
    if bits.ue() == 3:
        raise Unsure("colour planes that may be separate")
    bits.ue()  # depth of luma
    bits.ue()  # depth of chroma
    bits.take(1)
    if bits.take(1):
        raise Unsure("scaling matrices")
