# SPDX-License-Identifier: BSD-3-Clause
"""A rod cools down: the heat equation by explicit steps, against its exact solution.

The temperature obeys u_t = u_xx for 0 < x < 1, with both ends kept at 0.  One that
begins as sin(pi x) is exp(-pi**2 t) sin(pi x) from then on.

The script is ordinary NumPy.  The remarks say what the memory's handler sees of it.
"""

import io
import math

import numpy as np

POINTS = 51
UNTIL = 0.1
RATIO = 1 / 6  # dt / dx**2: with this one the errors in t and in x cancel to fourth order


def exact(x, t):
    return np.exp(-np.pi**2 * t) * np.sin(np.pi * x)


def cool(x, dt, steps):
    """The temperatures after each step, a row for each."""
    history = np.zeros((1, len(x)))  # calloc
    history[0] = exact(x, 0.0)
    for step in range(1, steps + 1):
        if step == len(history):
            history.resize((2 * step, len(x)), refcheck=False)  # realloc
        u = history[step - 1]
        # Each operator makes a temporary: malloc and free, three times in a step.
        history[step, 1:-1] = u[1:-1] + RATIO * (u[:-2] - 2 * u[1:-1] + u[2:])
    history.resize((steps + 1, len(x)), refcheck=False)  # realloc, to less
    return history


def half_life(history, dt):
    """When the middle of the rod has lost half of its warmth."""
    middle = history[:, history.shape[1] // 2]
    # fromiter does not know how much will come, and grows its array: realloc.
    warm = np.fromiter((u for u in middle if u > middle[0] / 2), float)
    return len(warm) * dt


def through_text(row):
    """A row written out and read back, by both of NumPy's readers."""
    text = io.StringIO()
    np.savetxt(text, row, fmt="%.17g")
    text.seek(0)
    loaded = np.loadtxt(text)  # realloc, from NumPy 1.23 on
    parsed = np.fromstring(text.getvalue(), sep=" ")  # realloc, without the GIL
    return loaded, parsed


def main():
    x = np.linspace(0, 1, POINTS)
    dt = RATIO * (x[1] - x[0]) ** 2
    steps = round(UNTIL / dt)
    history = cool(x, dt, steps)

    times = dt * np.arange(steps + 1)
    error = np.abs(history - exact(x, times[:, np.newaxis])).max()
    half, true_half = half_life(history, dt), math.log(2) / math.pi**2
    print(f"A rod of {POINTS} points cooled for {steps} steps, until t = {times[-1]:.4g}")
    print(f"  largest error against the exact solution: {error:.2e}")
    print(f"  half-life of its middle: {half:.5f} (exactly {true_half:.5f})")

    # Columns are not contiguous, so sort needs a work buffer for them: malloc and free.
    colder = np.array_equal(np.sort(history, axis=0)[::-1], history)
    # NumPy frees a NULL with a size that is not 0 here, and has done so from the beginning.
    warmest = x[np.argsort(history[-1])[-1]]
    same = all(np.array_equal(history[-1], row) for row in through_text(history[-1]))
    print(f"  never warmer than before: {colder}; warmest at x = {warmest:.2f}")
    print(f"  the same after a way through text: {same}")

    # A reader that finds nothing shrinks its block and gives back another size than it asked for.
    np.fromstring("", sep=" ")

    if not (error < 1e-7 and abs(half - true_half) < dt and colder and warmest == 0.5 and same):
        raise SystemExit("the rod did not cool as it should")


if __name__ == "__main__":
    main()
