# SPDX-License-Identifier: BSD-3-Clause
"""A badge in SVG that shows the worst standing of the reports."""

from . import model

LABEL, LETTER, MARGIN = 54, 7, 7  # pixels
SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img" \
aria-label="NEP 49: {words}">
<title>NEP 49: {words}</title>
<clipPath id="r"><rect width="{whole}" height="20" rx="3"/></clipPath>
<g clip-path="url(#r)"><rect width="{whole}" height="20" fill="#444"/>\
<rect x="54" width="{part}" height="20" fill="{color}"/></g>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">\
<text x="7" y="14" textLength="40">NEP 49</text>\
<text x="61" y="14" textLength="{width}">{words}</text></g>
</svg>
"""


def render(reports):
    words, _, color = max(map(model.standing, reports), key=model.STANDINGS.index)
    width = LETTER * len(words)
    part = width + 2 * MARGIN
    return SVG.format(words=words, color=color, width=width, part=part, whole=LABEL + part)
