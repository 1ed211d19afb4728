"""Questions whose answers are spans of a text: SQuAD 1.1, or 2.0 after a colon, as in tasks/squad:2 (Rajpurkar et al. 2016, 2018).

    jaxenc finetune --config tasks/squad --config.data.path=SQUAD --init-from MODEL --workdir RUNS
    jaxenc predict --model RUNS --input questions.jsonl

data.path is a folder with train-v1.1.json and dev-v1.1.json, of 2.0 train-v2.0.json and dev-v2.0.json; data.train and data.dev name other
files. With --config.data.test=dev-v1.1.json too, submission/ has the files that SQuAD's own scripts take. questions.jsonl has a `question`
and a `context` a line. The hyper-parameters are those that the authors of the model's family published
(`jaxenc/families/*/hyperparameters.py`).
"""

from jaxenc.configs import recipe
from ml_collections import ConfigDict

from jaxenc.errors import UserError
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.span_qa import SpanQa
from jaxenc.tasks.tuning import FineTune

# {argument: (version, name of the published hyper-parameters)}
VERSIONS = {"1.1": ("1.1", "squad"), "2": ("2.0", "squad2")}


def get_config(argument: str = "1.1") -> ConfigDict:
    if argument not in VERSIONS:
        raise UserError(f"{argument} is not a version of SQuAD", "--config tasks/squad", "name tasks/squad or tasks/squad:2")
    version, published = VERSIONS[argument]
    files = FilesConfig(train=f"train-v{version}.json", dev=f"dev-v{version}.json")
    return recipe(FineTune(task=SpanQa(impossible=argument == "2"), data=files, published=published))
