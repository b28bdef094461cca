#!/usr/bin/env python3
"""Scripts refuse options that they do not have, and --help explains them: none runs because its options were ignored.

Each script runs alone with its siblings in a folder without sources, so that one that works on changes nothing here.

usage: script_options_test.py SOURCE_FOLDER
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1))
FOREIGN = ("numpy", "lacuna", "torch")  # modules that this machine may lack
WITHOUT_OPTIONS = ("docs.sh", "large.sh", "package.sh")


class Options(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.scripts = pathlib.Path(self.folder.name) / "scripts"
        self.scripts.mkdir()

    def tearDown(self):
        self.folder.cleanup()

    def end(self, command):
        return subprocess.run(command, cwd=self.folder.name, capture_output=True, text=True, timeout=60, check=False)

    def test_of_python_are_parsed(self):
        paths = sorted((SOURCE / "scripts").glob("*.py"))
        for path in paths:
            shutil.copy(path, self.scripts)
        programs = [path.name for path in paths if os.access(path, os.X_OK)]
        self.assertIn("room_includes.py", programs)
        for name in programs:
            for option, code in (("--help", 0), ("--no-such-option", 2)):
                ended = self.end([sys.executable, "-B", str(self.scripts / name), option])
                if any(f"No module named '{module}" in ended.stderr for module in FOREIGN):
                    continue
                self.assertEqual(ended.returncode, code, f"{name} {option}: {ended.stderr}")
                self.assertIn("usage: ", ended.stdout + ended.stderr, name)

    def test_of_shell_scripts_without_options_are_refused(self):
        for name in WITHOUT_OPTIONS:
            shutil.copy(SOURCE / "scripts" / name, self.scripts)
            for option in ("--help", "--no-such-option"):
                ended = self.end(["bash", str(self.scripts / name), option])
                self.assertEqual(ended.returncode, 2, f"{name} {option}: {ended.stderr}")
                self.assertIn(f"usage: scripts/{name}", ended.stderr)


if __name__ == "__main__":
    unittest.main()
