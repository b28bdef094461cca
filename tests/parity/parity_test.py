"""Trainings from given weights have the losses that PyTorch has, and augmented images the pixels of the rules in
docs/reference/data-order.md. scripts/parity makes the data and the weights; figures.json holds PyTorch's figures, which
`scripts/parity --record` writes.

usage: parity_test.py LACUNA SOURCE_FOLDER FOLDER
"""
import shutil
import sys
import unittest

import numpy as np

LACUNA, SOURCE, FOLDER = sys.argv[1:4]
del sys.argv[1:4]
sys.path.insert(0, SOURCE + "/scripts/parity")
sys.dont_write_bytecode = True
import data_order  # noqa: E402
import figures  # noqa: E402
import lacuna_runs  # noqa: E402
import made_data  # noqa: E402
import pixels  # noqa: E402
from cases import CASES  # noqa: E402

# lacuna sums in float32 and in another order under each instruction set: 50 steps make 3e-6 of that at most.
# Another batch, mask or rule changes losses by 1e-3 and more.
MOST_OF_A_LOSS = 2e-5
# One epoch with fixed weights: no error grows. 1e-7 was measured, for values up to 2.
MOST_OF_A_MOMENT = 2e-6


class Parity(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(FOLDER, ignore_errors=True)
        cls.data = {kind: (made_data.make(kind, f"{FOLDER}/data_{kind}"), f"{FOLDER}/data_{kind}")
                    for kind in made_data.MAKERS}
        cls.stored = figures.read(SOURCE + "/tests/parity/figures.json")

    def test_all_cases_have_figures(self):
        self.assertEqual(sorted(self.stored), sorted(figures.STORED))

    def test_losses_and_moments_are_those_of_pytorch(self):
        for name, expected in self.stored.items():
            with self.subTest(name):
                case = CASES[name]
                splits, data_folder = self.data[case.kind]
                found = lacuna_runs.train(LACUNA, case, data_folder, f"{FOLDER}/{name}", *case.initial(splits))
                np.testing.assert_allclose(found.losses, expected["losses"], rtol=0, atol=MOST_OF_A_LOSS)
                if "test_loss" in expected:
                    self.assertAlmostEqual(found.test_loss, expected["test_loss"], delta=MOST_OF_A_LOSS)
                if name == "moments":
                    self.assertEqual(len(expected["moments"]), 4)
                    for key, moments in expected["moments"].items():
                        np.testing.assert_allclose(found.values[key], moments, rtol=0, atol=MOST_OF_A_MOMENT)

    def test_pixels_are_those_of_the_rules(self):
        for kind in ("mnist", "cifar10"):
            with self.subTest(kind):
                splits, data_folder = self.data[kind]
                images = splits["train"][0]
                found = pixels.read_by_lacuna(LACUNA, kind, data_folder, f"{FOLDER}/pixels_{kind}",
                                              images.shape[1:])
                expected = pixels.by_the_rules(images)
                np.testing.assert_array_equal(found, expected)
                orders = [data_order.permutation(pixels.IMAGES, pixels.SEED, "loader", epoch)
                          for epoch in range(pixels.STEPS // pixels.IMAGES)]
                plain = images[np.concatenate(orders)]
                self.assertTrue((expected != plain).any())


class Order(unittest.TestCase):
    def test_an_epoch_has_each_example_once(self):
        for size, batch, lengths in ((7, 3, None), (130, 1, None), (257, 2, np.arange(257) % 9), (5, 8, [1] * 5)):
            drawn = np.concatenate(data_order.epoch_batches(size, batch, 1, 2, lengths))
            self.assertEqual(sorted(drawn.tolist()), list(range(size)))
        self.assertEqual(sorted(data_order.scattered(np.arange(300), 300, 1, "loader")), list(range(300)))

    def test_a_balanced_epoch_has_each_class_equally_often(self):
        labels = np.array([0] * 20 + [3] * 5 + [1] * 2 + [data_order.IGNORED])
        drawn = np.concatenate(data_order.epoch_batches(28, 6, 1, 2, labels=labels))
        self.assertEqual(sorted(np.unique(labels[drawn], return_counts=True)[1].tolist()), [9, 9, 10])
        self.assertTrue((np.bincount(drawn[labels[drawn] == 0], minlength=20) <= 1).all())

    def test_the_example_of_the_document(self):
        with open(SOURCE + "/docs/reference/data-order.md", encoding="utf-8") as file:
            document = file.read()
        rng = data_order.CounterRng(0, "loader", 1)
        for text in (", ".join(f"{int(word):08x}" for word in rng.block(0)),
                     ", ".join(map(str, data_order.permutation(10, 0, "loader", 0))),
                     ", ".join(map(str, data_order.permutation(10, 0, "loader", 1)))):
            self.assertIn(text, document)


if __name__ == "__main__":
    unittest.main()
