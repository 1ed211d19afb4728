"""Classification of tokens: one dense layer on each (Devlin et al. 2018, section 5.3)."""

from jaxenc.heads.classifier import Classifier, loss_of
from jaxenc.heads.contract import Head, Label, likeliest

TAGS = Head(
    name="tags",
    role="tokens",
    site=37,
    module=lambda setting: Classifier(len(setting.labels), setting.initializer, setting.execution),
    labels=(Label("tags", axis="length", bound="classes"),),
    loss=loss_of("tags"),
    prediction=likeliest,
)
