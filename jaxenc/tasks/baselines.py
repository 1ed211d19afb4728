"""What a classifier scores without an encoder."""

import collections

from jaxenc.tasks import scores
from jaxenc.tasks.classify import Classified, Classify


def baselines(task: Classify, train: list[Classified], dev: list[Classified]) -> dict[str, float]:
    """{baseline: its `task.metric` on `dev`} of two baselines: the most frequent class of `train`, and logistic regression on counts of
    words and of pairs of neighbouring words (scikit-learn's defaults). The texts of a pair are joined. Raises UserError if scikit-learn is
    not installed."""
    scores.require()
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    most = collections.Counter(example.label for example in train).most_common(1)[0][0]
    words = make_pipeline(CountVectorizer(ngram_range=(1, 2)), LogisticRegression(max_iter=1000))
    words.fit([" ".join(example.texts) for example in train], [example.label for example in train])
    answers = {"majority class": [most] * len(dev), "bag of words": list(words.predict([" ".join(example.texts) for example in dev]))}
    return {name: task.score(given, dev)[task.metric] for name, given in answers.items()}
