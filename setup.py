"""Builds the module lacuna._lacuna with CMake, to which CMAKE_ARGS adds options; everything else is in
pyproject.toml."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent


class BuildWithCMake(build_ext):
    def build_extension(self, extension):
        build = Path(self.build_temp).resolve() / "lacuna"
        parts = ["TESTS", "BENCHMARKS", "EXAMPLES"]
        subprocess.run(
            ["cmake", "-S", ROOT, "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DLACUNA_PYTHON=ON"]
            + ["-DPython_EXECUTABLE=" + sys.executable]
            + [f"-DLACUNA_BUILD_{part}=OFF" for part in parts]
            + (["-G", "Ninja"] if shutil.which("ninja") else [])
            + shlex.split(os.environ.get("CMAKE_ARGS", "")),
            check=True,
        )
        jobs = str(self.parallel or os.cpu_count() or 1)
        subprocess.run(
            ["cmake", "--build", build, "--target", "lacuna_python", "--parallel", jobs], check=True
        )
        (module,) = (build / "python" / "lacuna").glob("_lacuna*.so")
        target = Path(self.get_ext_fullpath(extension.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(module, target)


version = re.search(r"project\(lacuna VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
setup(
    version=version.group(1),
    ext_modules=[Extension("lacuna._lacuna", sources=[])],
    cmdclass={"build_ext": BuildWithCMake},
)
