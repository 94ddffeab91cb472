# SPDX-License-Identifier: BSD-3-Clause
"""Everything that conform makes from its JSON reports: pages, comparisons, bundles and others."""
