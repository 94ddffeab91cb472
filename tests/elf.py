# SPDX-License-Identifier: BSD-3-Clause
"""Strings that a shared object exports, read from the file: nothing of it is run."""

import struct

SHT_DYNSYM = 11

# By the bits of the file: e_shoff, e_shentsize and e_shnum of its header; sh_type, sh_addr,
# sh_offset, sh_size, sh_link and sh_entsize of a section's.
LAYOUTS = {1: ("32xI10xHH2x", "4xI4xIIII8xI"), 2: ("40xQ10xHH2x", "4xI8xQQQI12xQ")}


class Object:
    """The dynamic symbols of an ELF file."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.bits = self.data[4]
        if self.data[:4] != b"\x7fELF" or self.bits not in LAYOUTS:
            raise ValueError("%s: not an ELF file" % path)
        self.order = "<" if self.data[5] == 1 else ">"
        header, section = LAYOUTS[self.bits]
        at, size, count = self._unpack(header, 0)
        self.sections = [self._unpack(section, at + i * size) for i in range(count)]
        self.symbols = dict(self._symbols())

    def _unpack(self, layout, offset):
        return struct.unpack_from(self.order + layout, self.data, offset)

    def _string(self, offset):
        end = self.data.index(b"\0", offset)
        return self.data[offset:end].decode()

    def _symbol(self, at):
        """Name, section and address."""
        if self.bits == 1:
            name, address, section = self._unpack("II6xH", at)
            return name, section, address
        return self._unpack("I2xHQ8x", at)

    def _symbols(self):
        """Name and address of each symbol that is defined."""
        for kind, _, offset, size, link, entry in self.sections:
            if kind != SHT_DYNSYM:
                continue
            names = self.sections[link][2]
            for at in range(offset, offset + size, entry):
                name, section, address = self._symbol(at)
                if section != 0:
                    yield self._string(names + name), address

    def text(self, symbol):
        """The string that stands at a symbol."""
        address = self.symbols[symbol]
        for _, begin, offset, size, _, _ in self.sections:
            if begin != 0 and begin <= address < begin + size:
                return self._string(offset + address - begin)
        raise ValueError("%s lies in no section" % symbol)
