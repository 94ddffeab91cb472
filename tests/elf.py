# SPDX-License-Identifier: BSD-3-Clause
"""Strings that a shared object exports, read from the file: nothing of it is run."""

import struct

SHT_DYNSYM = 11


class Object:
    """The dynamic symbols of a 64-bit ELF file."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        if self.data[:5] != b"\x7fELF\x02":
            raise ValueError("%s: not a 64-bit ELF file" % path)
        self.order = "<" if self.data[5] == 1 else ">"
        at, size, count = self._unpack("40xQ10xHH2x", 0)  # e_shoff, e_shentsize, e_shnum
        self.sections = [self._unpack("4xI8xQQQI4x8xQ", at + i * size) for i in range(count)]
        self.symbols = dict(self._symbols())

    def _unpack(self, layout, offset):
        return struct.unpack_from(self.order + layout, self.data, offset)

    def _string(self, offset):
        end = self.data.index(b"\0", offset)
        return self.data[offset:end].decode()

    def _symbols(self):
        """Name and address of each symbol that is defined."""
        for kind, _, offset, size, link, entry in self.sections:
            if kind != SHT_DYNSYM:
                continue
            names = self.sections[link][2]
            for at in range(offset, offset + size, entry):
                name, section, address = self._unpack("I2xHQ8x", at)
                if section != 0:
                    yield self._string(names + name), address

    def text(self, symbol):
        """The string that stands at a symbol."""
        address = self.symbols[symbol]
        for _, begin, offset, size, _, _ in self.sections:
            if begin != 0 and begin <= address < begin + size:
                return self._string(offset + address - begin)
        raise ValueError("%s lies in no section" % symbol)
