"""Builds the module lacuna._lacuna with CMake; everything else is in pyproject.toml.

CMAKE_ARGS adds options of CMake. LACUNA_BUILD_DIR is where to build, if not in a folder of its own.
"""

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
        default = Path(self.build_temp).resolve() / "lacuna"
        build = Path(os.environ.get("LACUNA_BUILD_DIR", default))
        options = ["-DLACUNA_PYTHON=ON", f"-DPython_EXECUTABLE={sys.executable}"]
        if not (build / "CMakeCache.txt").exists():
            parts = ["TESTS", "BENCHMARKS", "EXAMPLES"]
            options += ["-DCMAKE_BUILD_TYPE=Release"]
            options += [f"-DLACUNA_BUILD_{part}=OFF" for part in parts]
            options += ["-G", "Ninja"] if shutil.which("ninja") else []
        options += shlex.split(os.environ.get("CMAKE_ARGS", ""))
        subprocess.run(["cmake", "-S", ROOT, "-B", build, *options], check=True)
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
