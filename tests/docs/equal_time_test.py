#!/usr/bin/env python3
"""scripts/equal_time.py gives both sides the same, goes on where it stopped, and the pages show its tables.

usage: equal_time_test.py SOURCE_FOLDER
"""
import collections
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(SOURCE / "scripts"))
sys.dont_write_bytecode = True
import equal_time_rows  # noqa: E402


class Rows(unittest.TestCase):
    def test_give_both_sides_the_same_number_of_runs(self):
        for row in equal_time_rows.ROWS:
            self.assertEqual(len({(side.trials(), len(side.last_runs())) for side in row.sides.values()}), 1, row.name)
            self.assertEqual(bool(row.steps), not row.seconds, row.name)


class Script(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.log = self.folder / "log"
        self.log.write_text("")
        for page in ("results.md", "equal-time.md"):
            (self.folder / page).write_text(
                "before\n<!-- begin of scripts/equal_time.py -->\n<!-- end of scripts/equal_time.py -->\nafter\n")

    def call(self, *arguments, row="gpt_equal_nonzeros"):
        before = len(self.log.read_text().splitlines())
        done = subprocess.run(
            [sys.executable, "-B", SOURCE / "scripts/equal_time.py", self.folder, "--row", row, "--lacuna",
             SOURCE / "tests/docs/stand_ins/trainer.py", "--measure-with", "", *arguments],
            env=dict(os.environ, LACUNA_TABLES_DIR=str(self.folder), LACUNA_RESULTS_DIR=str(self.folder / "runs"),
                     TRAINER_LOG=str(self.log)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, self.log.read_text().splitlines()[before:]

    def runs(self):
        lines = [line.split("\t") for line in (self.folder / "equal_time.tsv").read_text().splitlines()]
        return [dict(zip(lines[0], line)) for line in lines[1:]]

    def test_trains_trials_then_three_then_other_seeds(self):
        self.call()
        runs = self.runs()
        count = collections.Counter((run["side"], run["stage"], run["seed"]) for run in runs)
        for side in ("dense", "sparse"):
            self.assertEqual(count[side, "trial", "0"], 8)
            self.assertEqual(count[side, "full", "0"], 3)
            self.assertEqual((count[side, "full", "1"], count[side, "full", "2"]), (1, 1))
        self.assertEqual({run["steps"] for run in runs if run["stage"] == "trial"}, {"350"})
        self.assertEqual({run["steps"] for run in runs if run["stage"] == "full"}, {"3500"})
        # The stand-in's best rate is 0.003, which both sides have among their trials.
        self.assertTrue(all("lr=0.003" in run["settings"] for run in runs if run["seed"] == "1"))
        page, summary = ((self.folder / name).read_text() for name in ("equal-time.md", "results.md"))
        self.assertIn("Sparse is ahead by 0.100 nats**; the ranges are apart.", page)
        self.assertIn(" | 0.100 | ", summary)
        self.assertEqual(summary.count("| GPT on Tiny Shakespeare, equal nonzeros, 3,500 steps | "), 1)
        for text in (page, summary):
            self.assertTrue(text.startswith("before\n") and text.endswith("after\n"))
        self.assertIn("dense, 64", (self.folder / "equal_time.svg").read_text())

    def test_tries_the_last_values_for_the_whole_budget(self):
        self.call(row="mlp_60s")
        runs = [run for run in self.runs() if run["stage"] == "full"]
        for side in ("dense", "sparse"):
            last = equal_time_rows.ROWS[0].sides[side].last["decay"]
            own = [run for run in runs if run["side"] == side]
            networks = {run["network"] for run in own if f"decay={max(last)} " in run["settings"]}
            self.assertEqual(len(networks), 2)
            self.assertEqual(len(own), 3 + len(networks) * len(last) + 2)
            for value in last:
                self.assertEqual({run["network"] for run in own if f"decay={value} " in run["settings"]}, networks)
            # The stand-in's long runs gain by decay: the largest trains with the other seeds.
            self.assertEqual({run["seed"] for run in own if f"decay={max(last)} " in run["settings"]}, {"0", "1", "2"})

    def test_goes_on_where_it_stopped(self):
        self.call()
        whole = (self.folder / "equal_time.tsv").read_text()
        _, again = self.call()
        self.assertEqual(again, [])
        lines = whole.splitlines(keepends=True)
        (self.folder / "equal_time.tsv").write_text("".join(lines[:10]))
        self.call()
        self.assertEqual((self.folder / "equal_time.tsv").read_text(), whole)

    def test_no_run_begins_after_the_hours(self):
        _, commands = self.call("--hours", "0")
        self.assertEqual(commands, [])

    def test_dry_run_prints_the_trials_and_trains_nothing(self):
        printed, commands = self.call("--dry-run")
        self.assertEqual(commands, [])
        # What is tried after the first grid depends on its outcome.
        self.assertEqual(len(printed.splitlines()), 4 + 6)
        self.assertFalse((self.folder / "equal_time.tsv").exists())


class Page(unittest.TestCase):
    def test_shows_what_the_tables_have(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in (SOURCE / "docs/measurements").glob("equal_time*"):
                shutil.copy(path, folder)
            for page in ("results.md", "equal-time.md"):
                shutil.copy(SOURCE / "docs/measurements" / page, folder)
            code = "import equal_time_report, equal_time_rows; equal_time_report.write(equal_time_rows.ROWS)"
            subprocess.run([sys.executable, "-B", "-c", code], check=True,
                           env=dict(os.environ, PYTHONPATH=str(SOURCE / "scripts"), LACUNA_TABLES_DIR=folder))
            for name in ("results.md", "equal-time.md", "equal_time.svg"):
                if (SOURCE / "docs/measurements" / name).exists():
                    self.assertEqual(pathlib.Path(folder, name).read_text(),
                                     (SOURCE / "docs/measurements" / name).read_text(), name)


if __name__ == "__main__":
    unittest.main()
