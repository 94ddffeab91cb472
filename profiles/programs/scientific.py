# SPDX-License-Identifier: BSD-3-Clause
"""SciPy: a sparse system, a filter, neighbours, a fit, and an orbit."""

import numpy as np
from scipy import fft, integrate, optimize, signal, sparse, spatial

random = np.random.default_rng(49)
side = 40
line = sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(side, side))
grid = sparse.kron(sparse.eye(side), line) + sparse.kron(line, sparse.eye(side))
solved = sparse.linalg.spsolve(grid.tocsc(), np.ones(side * side))

noisy = np.sin(np.linspace(0, 40, 20000)) + random.normal(scale=0.3, size=20000)
smooth = signal.sosfiltfilt(signal.butter(4, 0.02, output="sos"), noisy)
spectrum = np.abs(fft.rfft(smooth))

points = random.random((5000, 3))
distances, _ = spatial.cKDTree(points).query(points, k=5)

xs = np.linspace(0, 4, 400)
ys = 2.5 * np.exp(-1.3 * xs) + 0.5 + random.normal(scale=0.05, size=xs.size)
fitted, _ = optimize.curve_fit(lambda x, a, b, c: a * np.exp(-b * x) + c, xs, ys)

orbit = integrate.solve_ivp(
    lambda t, y: [*y[2:], *(-y[:2] / np.hypot(*y[:2]) ** 3)], (0, 20), [1, 0, 0, 1], rtol=1e-8)
print(solved.max(), spectrum.argmax(), distances.mean(), fitted, orbit.y[:, -1])
