"""Tiny data sets of tensorflow_datasets, which wants their code in a package."""

import numpy as np
import tensorflow_datasets as tfds

TEXTS = {"train": ["one é", "two\nlines", ""], "test": ["three"]}
ROWS = [("good film", "positive", 0.5, ["good"]), ("bad film", "negative", -0.5, []), ("no label", -1, 0.0, ["a", "b"])]


class TinyText(tfds.core.GeneratorBasedBuilder):
    """Texts with two configurations, one of which has capitals."""

    VERSION = tfds.core.Version("1.0.0")
    BUILDER_CONFIGS = (tfds.core.BuilderConfig(name="plain"), tfds.core.BuilderConfig(name="capitals"))

    def _info(self):
        features = tfds.features.FeaturesDict({"content": tfds.features.Text(), "meta": {"title": tfds.features.Text()}})
        return self.dataset_info_from_configs(features=features)

    def _split_generators(self, manager):
        return {split: self._generate_examples(split) for split in TEXTS}

    def _generate_examples(self, split):
        for i, text in enumerate(TEXTS[split]):
            yield i, {"content": text.upper() if self.builder_config.name == "capitals" else text, "meta": {"title": f"title {i}"}}


class TinyLabels(tfds.core.GeneratorBasedBuilder):
    """Texts with a class, a number and a list of words."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        features = {
            "text": tfds.features.Text(),
            "label": tfds.features.ClassLabel(names=["negative", "positive"]),
            "score": tfds.features.Scalar(np.float32),
            "words": tfds.features.Sequence(tfds.features.Text()),
        }
        return self.dataset_info_from_configs(features=tfds.features.FeaturesDict(features))

    def _split_generators(self, manager):
        return {"train": self._generate_examples()}

    def _generate_examples(self):
        for i, row in enumerate(ROWS):
            yield i, dict(zip(("text", "label", "score", "words"), row, strict=True))


class TinyLines(tfds.core.GeneratorBasedBuilder):
    """Eighty texts of two sentences, in the feature `text`."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        return self.dataset_info_from_configs(features=tfds.features.FeaturesDict({"text": tfds.features.Text()}))

    def _split_generators(self, manager):
        return {"train": self._generate_examples()}

    def _generate_examples(self):
        for i in range(80):
            yield i, {"text": f"Document number {i} is here. It is about the number {i}."}
