"""GLUE's nine tasks and its diagnostic set AX (Wang et al. 2018): columns, classes in order, metric, files.

A task reads the files of gluebenchmark.com, those of the original corpora, tfds:glue/NAME, and datasets saved by `datasets` of Hugging
Face: `A|B` is whichever of the two exists. Set data.path to the folder or to the dataset.
"""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

from jaxenc.errors import UserError
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.regress import Regress
from jaxenc.tasks.task import Task

ID = "index|id|idx"
# The last alternative of `test` is '': a folder without that file has no test split.
FILES = FilesConfig(train="train.tsv|train", dev="dev.tsv|validation", test="test.tsv|test|")
INCOMPLETE = dataclasses.replace(FILES, broken_rows=100)
MNLI = "test_matched.tsv,test_mismatched.tsv"
# Names only, never numbers: 0 is entailment for Hugging Face and contradiction in google-research/bert (run_classifier.py, get_labels).
NLI = ("entailment", "neutral", "contradiction")
RTE = ("entailment", "not_entailment")


def _pair(labels: tuple[str, ...], submits: str, text: tuple[str, str] = ("sentence1", "sentence2"), label: str = "label") -> Classify:
    return Classify(text=text, label=label, id=ID, labels=labels, submits=(submits,))


# {name: (task, files)}. The metric quoted first is that of the GLUE paper, or accuracy where the paper has accuracy and F1, of which papers
# quote one or the other; the scores have both.
GLUE: Mapping[str, tuple[Task, FilesConfig]] = MappingProxyType(
    {
        # train.tsv and dev.tsv have no header; test.tsv has one. The two dev files of the corpus are GLUE's dev.tsv.
        "cola": (
            Classify(
                text=("sentence|4",),
                label="label|2",
                id=ID,
                labels=("unacceptable|0", "acceptable|1"),
                metric="matthews",
                submits=("CoLA.tsv",),
            ),
            FilesConfig(
                train="train.tsv|in_domain_train.tsv|train",
                dev="dev.tsv|in_domain_dev.tsv,out_of_domain_dev.tsv|validation",
                test=FILES.test,
            ),
        ),
        "sst2": (Classify(text=("sentence",), id=ID, labels=("negative|0", "positive|1"), submits=("SST-2.tsv",)), FILES),
        "mrpc": (
            _pair(("not_equivalent|0", "equivalent|1"), "MRPC.tsv", ("#1 String|sentence1", "#2 String|sentence2"), "Quality|label"),
            FilesConfig(train="train.tsv|msr_paraphrase_train.txt|train", dev=FILES.dev, test="test.tsv|msr_paraphrase_test.txt|test|"),
        ),
        "stsb": (
            Regress(
                text=("sentence1|6", "sentence2|7"),
                label="score|label|5",
                id=ID,
                bounds=(0.0, 5.0),
                metric="spearman",
                submits=("STS-B.tsv",),
            ),
            FilesConfig(
                train="train.tsv|sts-train.csv|train",
                dev="dev.tsv|sts-dev.csv|validation",
                test="test.tsv|sts-test.csv|test|",
                ragged=True,
            ),
        ),
        # train.tsv has incomplete rows; google-research/electra skips them too (classification_tasks.py, _load_glue).
        "qqp": (
            _pair(("not_duplicate|0", "duplicate|1"), "QQP.tsv", ("question1", "question2"), "is_duplicate|label"),
            INCOMPLETE,
        ),
        # Two dev sets, each with its own score; if diagnostic.tsv is in the same folder, it is answered as AX.
        "mnli": (
            Classify(
                text=("sentence1|premise", "sentence2|hypothesis"),
                label="gold_label|label",
                id=ID,
                labels=NLI,
                submits=("test_matched=MNLI-m.tsv", "test_mismatched=MNLI-mm.tsv", "diagnostic=AX.tsv"),
            ),
            FilesConfig(
                train=FILES.train,
                dev="dev_matched.tsv,dev_mismatched.tsv|validation_matched,validation_mismatched",
                test=f"{MNLI},diagnostic.tsv|{MNLI}|test_matched,test_mismatched|",
            ),
        ),
        # As QQP (zihangdai/xlnet run_classifier.py: "there are some incomplete lines in QNLI").
        "qnli": (_pair(RTE, "QNLI.tsv", ("question", "sentence")), INCOMPLETE),
        "rte": (_pair(RTE, "RTE.tsv"), FILES),
        "wnli": (_pair(("not_entailment|0", "entailment|1"), "WNLI.tsv"), FILES),
        # A test set only, for a model of MNLI.
        "ax": (
            Classify(
                text=("sentence1|premise|Premise", "sentence2|hypothesis|Hypothesis"),
                label="label|Label",
                id=ID,
                labels=NLI,
                metric="matthews",
                submits=("AX.tsv",),
            ),
            FilesConfig(test="diagnostic.tsv|diagnostic-full.tsv|test"),
        ),
    }
)


def task(name: str) -> tuple[Task, FilesConfig]:
    """A task of GLUE, and its files below a `data.path` that is still to be set. Raises UserError for another name."""
    if name not in GLUE:
        raise UserError(f"{name} is not a task of GLUE", fix=f"use {', '.join(GLUE)}")
    return GLUE[name]
