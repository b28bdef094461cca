"""Runs the Python that prepares images in docs/guides/interop.md and onnx.md, and holds it against `lacuna predict`; and
the script of docs/guides/sounds.md with its training, on tones that rise, fall or stay. Needs NumPy and PIL; torchvision's
lines are run where it is installed.

usage: images_and_sounds_test.py LACUNA SOURCE FOLDER
"""
import csv
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import unittest
import warnings
import wave

import numpy as np
from PIL import Image

LACUNA, SOURCE, FOLDER = sys.argv[1:4]
del sys.argv[1:4]


def blocks(guide, language):
    with open(f"{SOURCE}/docs/guides/{guide}.md", encoding="utf-8") as file:
        return re.findall(rf"^```{language}\n(.*?)^```", file.read(), re.DOTALL | re.MULTILINE)


def lacuna(*arguments, place=FOLDER):
    ended = subprocess.run([LACUNA, *arguments], cwd=place, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr + ended.stdout
    return ended.stdout


def fresh(name):
    place = os.path.join(FOLDER, name)
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place)
    return place


class Images(unittest.TestCase):
    """A layer of random weights answers for pixels: one of 255 in one of them moves a probability by 1e-5 and more."""

    SAME, NEARLY = 1e-5, 0.01

    @classmethod
    def setUpClass(cls):
        rng = np.random.default_rng(1)
        cls.folder = fresh("images")
        for kind in "ab":
            os.makedirs(f"{cls.folder}/train/{kind}")
        # Larger and smaller than the examples, wide and high; smooth and noise; grey, palette, with alpha, turned.
        for i, (height, width) in enumerate(((40, 60), (61, 33), (20, 50), (7, 9), (200, 120), (32, 32))):
            noise = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
            smooth = np.add.outer(np.arange(height) * 3, np.arange(width) * 2)[..., None] + np.array([0, 40, 90])
            for j, image in enumerate((Image.fromarray(noise), Image.fromarray((smooth % 256).astype(np.uint8)))):
                name = f"{cls.folder}/train/{'ab'[(i + j) % 2]}/{i}{j}"
                image.save(name + ".png")
                exif = Image.Exif()
                exif[0x0112] = 1 + (i + 3 * j) % 8
                image.save(name + ".jpg", quality=90, exif=exif)
                image.convert("L").save(name + "g.png")
                image.quantize(16).save(name + "p.png")
                image.convert("RGBA").save(name + "t.png")

    def probabilities(self, size, channels, more=""):
        """Of each image, as lacuna predicts it; and the layer's weights."""
        place = fresh(f"run_{size[0]}_{size[1]}_{channels}")
        with open(f"{place}/c.yaml", "w", encoding="utf-8") as file:
            file.write(f"data: {{type: image_folder, dir: ../images, size: [{size[0]}, {size[1]}], channels: {channels}"
                       f"{more}}}\nmodel: [flatten, {{type: linear, name: fc, init: {{type: normal, std: 0.1}}}}]\n"
                       "optimizer: {type: sgd, lr: 0.0}\ntrain: {steps: 1, batch_size: 4}\n")
        lacuna("train", "c.yaml", "--run-dir", "run", "--quiet", place=place)
        lacuna("export", "run", "--format", "npz", "--out", "w.npz", place=place)
        lacuna("predict", "run", "../images/train", "--out", "p.csv", place=place)
        with open(f"{place}/p.csv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        return rows, np.load(f"{place}/w.npz"), place

    def differences(self, code, size, channels, mean=0.0, std=1.0, more=""):
        rows, weights, place = self.probabilities(size, channels, more)
        self.assertGreater(len(rows), 50)
        if channels == 1:
            code = code.replace('convert("RGB")', 'convert("L")')
        worst = 0.0
        for row in rows:
            path = next(value for value in row.values() if value.endswith((".png", ".jpg")))
            if not os.path.exists(path):
                path = os.path.join(place, path)
            names = {"np": np, "path": path, "rows": size[0], "columns": size[1], "mean": mean, "std": std}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec("from PIL import Image, ImageOps\n" + code, names)
            logits = weights["fc.weight"] @ np.asarray(names["inputs"], np.float64).ravel() + weights["fc.bias"]
            expected = 1 / (1 + np.exp(logits[0] - logits[1]))
            found = [float(value) for key, value in row.items() if key.startswith("p")][-1]
            worst = max(worst, abs(found - expected))
        return worst

    def test_pil_gives_the_same_pixels(self):
        for guide in ("interop", "onnx"):
            code = [block for block in blocks(guide, "python") if "np.asarray(image" in block]
            self.assertEqual(len(code), 1, guide)
            for channels in (3, 1):
                self.assertLess(self.differences(code[0], (32, 32), channels), self.SAME)
            mean, std = [0.5, 0.4, 0.3], [0.2, 0.25, 0.3]
            self.assertLess(self.differences(code[0], (16, 16), 3, mean, std,
                                             f", normalize: {{mean: {mean}, std: {std}}}"), self.SAME)

    def test_sizes_that_are_not_square_differ_by_one_of_255_in_some_pixels(self):
        code = [block for block in blocks("interop", "python") if "np.asarray(image" in block][0]
        self.assertLess(self.differences(code, (24, 40), 3), self.NEARLY)
        self.assertLess(self.differences(code, (37, 19), 3), self.NEARLY)

    def test_other_ways_differ(self):
        code = [block for block in blocks("interop", "python") if "np.asarray(image" in block][0]
        for other in ("image.resize((columns, rows), Image.BILINEAR)",
                      "ImageOps.fit(image, (columns, rows), Image.BICUBIC)"):
            guess = code.replace("ImageOps.fit(image, (columns, rows), Image.BILINEAR)", other)
            self.assertNotEqual(guess, code)
            self.assertGreater(self.differences(guess, (32, 32), 3), 5 * self.NEARLY)

    def test_torchvision_gives_the_same_pixels(self):
        if importlib.util.find_spec("torchvision") is None:
            self.skipTest("torchvision is not installed")
        code = [block for block in blocks("interop", "python") if "torchvision" in block]
        self.assertEqual(len(code), 1)
        self.assertLess(self.differences(code[0], (32, 32), 3, [0.5, 0.4, 0.3], [0.2, 0.25, 0.3],
                                         ", normalize: {mean: [0.5, 0.4, 0.3], std: [0.2, 0.25, 0.3]}"), self.SAME)


class Sounds(unittest.TestCase):
    def test_tones_are_told_apart(self):
        place = fresh("sounds")
        script = [block for block in blocks("sounds", "python") if "def spectrogram" in block]
        config = [block for block in blocks("sounds", "yml") if "image_folder" in block]
        self.assertEqual((len(script), len(config)), (1, 1))
        with open(f"{place}/spectrograms.py", "w", encoding="utf-8") as file:
            file.write(script[0])
        with open(f"{place}/sounds.yaml", "w", encoding="utf-8") as file:
            file.write(config[0])
        rng = np.random.default_rng(3)
        for split, count in (("train", 40), ("test", 12), ("new", 2)):
            for kind, slope in (("rising", 900.0), ("falling", -900.0), ("steady", 0.0)):
                for i in range(count):
                    self.write_tone(f"{place}/sounds/{split}/{kind}/{i}.wav", slope, rng)
        shutil.move(f"{place}/sounds/new", f"{place}/new")
        before, after = blocks("sounds", "sh")
        self.shell(before, place)
        with Image.open(f"{place}/images/train/steady/0.png") as image:
            self.assertEqual((image.size, image.mode), ((61, 64), "L"))
        lacuna("train", "sounds.yaml", "--run-dir", "runs/sounds", "--quiet", place=place)
        with open(f"{place}/runs/sounds/summary.json", encoding="utf-8") as file:
            accuracy = float(re.search(r'"test_accuracy": ([0-9.e-]+)', file.read())[1])
        self.assertGreater(accuracy, 0.9)
        self.shell(after, place)
        with open(f"{place}/sounds.csv", encoding="utf-8") as file:
            self.assertEqual(len(list(csv.DictReader(file))), 6)

    @staticmethod
    def shell(block, place):
        """Runs a block of the guide with this interpreter and this program."""
        os.makedirs(f"{place}/bin", exist_ok=True)
        for name, target in (("python3", sys.executable), ("lacuna", LACUNA)):
            with open(f"{place}/bin/{name}", "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\nexec "{target}" "$@"\n')
            os.chmod(f"{place}/bin/{name}", 0o755)
        environment = {**os.environ, "PATH": f"{place}/bin:{os.environ['PATH']}"}
        subprocess.run(["bash", "-e", "-c", block], cwd=place, env=environment, check=True)

    @staticmethod
    def write_tone(path, slope, rng):
        """A tone in noise, of 8, 16 or 32 bits, mono or stereo, of 0.8 to 1.2 seconds."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        rate, width, channels = 16000, int(rng.choice([1, 2, 4])), int(rng.choice([1, 2]))
        time = np.arange(int(rate * rng.uniform(0.8, 1.2))) / rate
        pitch = rng.uniform(1200, 1600)
        tone = rng.uniform(0.2, 0.6) * np.sin(2 * np.pi * (pitch * time + slope / 2 * time ** 2))
        tone = np.clip(tone + 0.02 * rng.standard_normal(len(time)), -1, 1)
        scale = {1: 127, 2: 2 ** 15 - 1, 4: 2 ** 31 - 1}[width]
        values = (tone * scale + (128 if width == 1 else 0)).astype({1: np.uint8, 2: "<i2", 4: "<i4"}[width])
        with wave.open(path, "wb") as file:
            file.setnchannels(channels)
            file.setsampwidth(width)
            file.setframerate(rate)
            file.writeframes(np.repeat(values, channels).tobytes())


if __name__ == "__main__":
    unittest.main()
