"""BUG: np.dot, inner and correlate look whether they have the canonical dtype

Where there was no memory for one, as records need it, NULL was taken for it.
"""
import numpy_source


def fix(tree):
    path = "numpy/_core/src/multiarray/multiarraymodule.c"
    with tree.file(path) as code:
        code.after(r"^    Py_SETREF\(typec, NPY_DT_CALL_ensure_canonical\(typec\)\);", """
            if (typec == NULL) {
                return NULL;
            }
            """, times=4)


if __name__ == "__main__":
    numpy_source.main(fix)
