#!/usr/bin/env python3
"""docs/development/scaling.md shows what its scripts print, and the simulation agrees with what can be computed by
hand.

usage: scaling_test.py SOURCE_FOLDER
"""
import subprocess
import sys
import unittest

SOURCE = sys.argv.pop(1)
sys.path.insert(0, SOURCE + "/scripts")
sys.dont_write_bytecode = True
import scaling  # noqa: E402
import scaling_rows  # noqa: E402

NO_TIME = (0.0, 0.0, float("inf"))


def stack(layers=5, tokens=1024, machines=4):
    return scaling_rows.Stack(2048, 0.1, layers, tokens, machines, 1e11)


class Tables(unittest.TestCase):
    def test_are_what_the_scripts_print(self):
        with open(SOURCE + "/docs/development/scaling.md", encoding="utf-8") as file:
            document = file.read().splitlines()
        for script in ("scaling.py", "scaling_rows.py"):
            printed = subprocess.run([sys.executable, "-B", f"{SOURCE}/scripts/{script}"],
                                     stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout
            tables = [line for line in printed.splitlines() if line.startswith("|")]
            self.assertGreater(len(tables), 10, script)
            self.assertEqual([line for line in tables if line not in document], [], script)


class Model(unittest.TestCase):
    def test_one_machine_waits_for_nobody(self):
        self.assertEqual(scaling.step(1, 2.0, 0.6, 1e6, 10, 4, 1e3, 1e-3, 1e-4, 1.0, 1e9), (2.0, 0.0, 1.0))

    def test_numbers_are_joined_by_doubling(self):
        for machines, rounds in ((2, 1), (3, 2), (4, 2), (512, 9)):
            self.assertEqual(scaling.rounds_of(machines), rounds)
            self.assertAlmostEqual(scaling.gathered(machines, 3, 5e5, 1e-3, 0.0, 8e-3),
                                   rounds * (3e-3 + 0.5))


class Simulation(unittest.TestCase):
    def test_without_a_networks_time_is_what_is_computed(self):
        s = stack()
        for seconds in (scaling_rows.data_step(s, NO_TIME), scaling_rows.rows_step(s, NO_TIME, 1),
                        scaling_rows.rows_step(s, NO_TIME, 8)):
            self.assertAlmostEqual(seconds, 3 * s.layers * s.forward)

    def test_one_chunk_waits_for_each_exchange(self):
        s = stack()
        exchange = scaling_rows.messages(s.machines, 4 * s.tokens * s.width * 0.75, 1e-4, 1e-5, 25.0)
        self.assertAlmostEqual(scaling_rows.rows_step(s, (1e-4, 1e-5, 25.0), 1),
                               3 * s.layers * s.forward + (2 * s.layers - 1) * exchange)

    def test_of_data_parallel_the_last_exchange_alone_is_left_where_computing_is_slower(self):
        s = stack(tokens=65536)
        exchange = 2 * scaling_rows.messages(s.machines, 4 * s.nonzeros * 0.75, 1e-4, 1e-5, 25.0)
        self.assertLess(exchange, 2 * s.forward)
        self.assertAlmostEqual(scaling_rows.data_step(s, (1e-4, 1e-5, 25.0)),
                               3 * s.layers * s.forward + exchange)

    def test_a_slow_network_is_what_chunks_wait_for(self):
        s = stack()
        slow = (0.0, 0.0, 1e-3)
        exchange = scaling_rows.messages(s.machines, 4 * s.tokens * s.width * 0.75, *slow)
        chunk = s.forward / 8
        # The network has nothing to do until the first chunk is computed, and while the last one is.
        self.assertAlmostEqual(scaling_rows.rows_step(s, slow, 8),
                               chunk + (2 * s.layers - 1) * exchange + 2 * chunk)

    def test_rows_hold_less_from_some_width_on(self):
        for tokens, rows_hold_less in ((24 * 0.1 * 2048 / 4 * 0.99, True), (24 * 0.1 * 2048 / 4 * 1.01, False)):
            s = stack(tokens=tokens)
            self.assertEqual(s.rows_memory(24) < s.data_memory(24), rows_hold_less)


if __name__ == "__main__":
    unittest.main()
