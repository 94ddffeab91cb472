import shlex
import subprocess

from Cython.Build import cythonize
from setuptools import Extension, setup

flags = subprocess.run(["pkg-config", "--cflags", "nep49"], check=True, capture_output=True,
                       text=True).stdout
setup(name="mine", version="0.1",
      ext_modules=cythonize([Extension("mine", ["mine.pyx"], extra_compile_args=shlex.split(flags))]))
