"""A trained model in a notebook or a script, as `jaxenc.load(DIR)` returns it."""

import dataclasses
import functools
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax import Array

from jaxenc.data.batch import Batch
from jaxenc.data.tokenizers import Tokenizer
from jaxenc.errors import UserError
from jaxenc.families.count import parameter_count
from jaxenc.heads import BUILT_IN, Head
from jaxenc.inference import decode, inputs, predict
from jaxenc.inference.attentions import Attended, attention_weights
from jaxenc.inference.complete import DEFAULT_MAX_NEW, DEFAULT_SAMPLES, Completion, complete_texts
from jaxenc.inference.decode import Decoder
from jaxenc.inference.fill_mask import Guess, guesses, masked_ids
from jaxenc.inference.hidden import hidden_states, rows_at_once
from jaxenc.inference.network import Network, objective_of
from jaxenc.inference.predict import BATCH, Predictor
from jaxenc.inference.sampling import Sampling
from jaxenc.inference.save import write_run
from jaxenc.objectives.base import Objective
from jaxenc.tasks.prepare import framing_of
from jaxenc.tasks.task import Task
from jaxenc.tasks.tuning import FineTune
from jaxenc.training.run import Run
from jaxenc.tree import Tree


class Encoded(NamedTuple):
    """hidden: float32 [layers + 1, batch, length, width], the embedding output and every layer; mask, tokens: int32 [batch, length]."""

    hidden: np.ndarray
    mask: np.ndarray
    tokens: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A checkpoint on one device, which reads texts. It computes in float32 at the highest matmul precision, whatever it was trained in.

    config: the Run it was trained with; params: a plain dict tree of float32 arrays; tokenizer: None where the folder has none; heads:
    those that the config may name; tune: the settings of the fine-tuning that it is from, None for a pretrained model.
    """

    config: Run
    params: Tree
    tokenizer: Tokenizer | None
    heads: Mapping[str, Head] = dataclasses.field(default_factory=lambda: BUILT_IN)
    tune: FineTune | None = None

    def __repr__(self) -> str:
        """One line, with the number of parameters without padding."""
        model, (states, width) = self.config.model, self.shape
        count = parameter_count(self.params, model.vocab_size, self.objective.vocabulary)
        heads = ", ".join(self.objective.heads) or "no heads"
        size = f"{states - 1} layers of {width}, {model.pieces:,} tokens"
        return f"<jaxenc {type(self).__name__}: {model.kind}, {size}, {heads}, {count:,} parameters>"

    @functools.cached_property
    def _network(self) -> Network:
        return Network(self.config, objective_of(self.config, self.tokenizer, self.heads))

    @property
    def objective(self) -> Objective:
        """The objective of the config, with modules that compute in float32."""
        return self._network.objective

    @functools.cached_property
    def shape(self) -> tuple[int, int]:
        """(layers + 1, width) of `hidden` in `Objective.outputs`; for a pair, those of the network that is used."""
        return self._network.shape(self.params)

    def apply(self, params: Tree, batch: Mapping[str, Any]) -> dict[str, Array]:
        """The result of `Objective.outputs` for `batch`; pure, so `jax.jit(model.apply)` and `jax.grad` through it work.

        batch: `tokens` i32 [batch, length]; optional `types` (default 0), `segments` (0 = a masked key, default 1) and `positions`
        (default: as the family counts them), all i32 [batch, length]; `characters` uint16 [batch, length, 50] for a model that reads
        them, from `jaxenc.data.characters`; and the `inputs` of its heads, such as `context`. Nothing is checked: JAX clamps an id that is
        out of range.
        """
        return self._network.apply(params, batch)

    def compute(self, name: str, rows: Batch) -> Array:
        """The output `name` for `rows`, on the device; it does not wait for it. `rows` are padded so that few shapes are compiled: to a
        power of two of rows, of a `compiled_length`. name: one of `Objective.outputs`, `top`, the last layer of `hidden` alone, [1, batch,
        length, width], or `attentions`, those of `Objective.attentions`."""
        return self._network.compute(name, self.params, rows)

    def hidden(self, rows: Batch, at_once: int = 0) -> np.ndarray:
        """float32 [layers + 1, batch, length, width] of rows from `jaxenc.inference.inputs`, 0 at padding.

        at_once: rows that are computed together, 0 for `rows_at_once`.
        """
        return hidden_states(lambda some: self.compute("hidden", some), rows, *self.shape, at_once or rows_at_once(self.params))

    @property
    def task(self) -> Task | None:
        """The task that the model was fine-tuned on, with the names of its classes; None for a pretrained model."""
        return self.tune.task if self.tune else None

    def encode(
        self,
        texts: Iterable[str] | None = None,
        *,
        words: Iterable[Iterable[str]] | None = None,
        tokens: Any = None,
        mask: Any = None,
        types: Any = None,
    ) -> Encoded:
        """Hidden states of texts, of sentences that are split into words already (`words`), or of `tokens`.

        tokens, mask, types: lists or arrays [batch, length]; mask 0 marks padding, types default to 0. Rows of similar length are computed
        together; other rows and padding change the result of a row only by rounding, and at padding it is 0. Texts and sentences get
        the special tokens of the tokenizer and are padded at the end to the longest. For one vector a word, without special tokens and
        bitwise independent of other sentences, see `jaxenc.inference.words.vectors`. Raises UserError for texts without a tokenizer, for
        rows that are too long for the model (nothing is truncated), and for tokens, mask or types that are not such arrays.
        """
        given = [value is not None for value in (texts, words, tokens)]
        if sum(given) != 1 or (tokens is None and not (mask is None and types is None)):
            raise UserError("encode takes texts, words= or tokens=", fix="give one of the three, mask= and types= with tokens= alone")
        model = self.config.model
        if tokens is not None:
            rows = inputs.of_tokens(model, self.tokenizer, tokens, mask, types)
        elif words is not None:
            rows, _ = inputs.of_words(model, self.tokenizer, words)
        else:
            rows = inputs.of_texts(model, self.tokenizer, texts)
        return Encoded(self.hidden(rows), rows["segments"], rows["tokens"])

    def attentions(self, texts: Iterable[str]) -> Attended:
        """The attention weights of every head of every layer on `texts`, for analysis: as transformers returns with output_attentions=True.

        Each text is framed and padded as in `encode`; at padding the weights are 0. They take 4 bytes for each layer, head, query and key
        of a text: 151 MB for 512 tokens in a BERT-base. An XLNet's are of the content stream.
        Raises UserError as `encode`, for a model without attention, and for an empty list.
        """
        rows = inputs.of_texts(self.config.model, self.tokenizer, texts)
        if not len(rows["tokens"]):
            raise UserError("attentions takes a list of texts, and this one is empty", fix="give at least one text")
        weights = attention_weights(lambda some: self.compute("attentions", some), rows, rows_at_once(self.params))
        return Attended(weights, rows["segments"], rows["tokens"])

    def fill_mask(self, text: str, k: int = 5) -> list[list[Guess]]:
        """For each mask of `text`, such as [MASK], the `k` most probable tokens, most probable first.

        Raises UserError without a tokenizer, a masked-token head or a mask in the vocabulary or the text, for anything but one text, for a
        text that is too long and for a `k` above the size of the vocabulary.
        """
        if not isinstance(text, str):
            raise UserError("fill_mask takes one text", fix="call it for each of several")
        tokenizer = inputs.needed(self.config.model, self.tokenizer)
        if "mlm" not in self.params:
            raise UserError("this model has no masked-token head", fix="load one that was trained with it")
        ids = masked_ids(tokenizer, text, inputs.whole("k", k))
        logits = np.asarray(self.compute("mlm", inputs.of_tokens(self.config.model, tokenizer, [ids], what="the text")))[0, : len(ids)]
        return guesses(tokenizer, logits[np.array(ids) == tokenizer.vocabulary.mask], k)

    def predict(self, examples: Iterable[Any], truncation: str = "", batch: int = BATCH, details: bool = False) -> list[Any]:
        """The answer of a fine-tuned model to each of `examples`, in order: the name of a class, a score, or what its task answers.

        examples: texts; tuples of two texts, for a task of pairs; or dicts with the columns of the task. truncation: as in `predictor`.
        batch: as in `Predictor.answers`. details: return dicts, {"answer": answer, "probabilities": {class: number}} for classes, with what
        `jaxenc predict` writes for other tasks. Raises UserError for a pretrained model and for an example that the task does not read.
        """
        predictor = self.predictor(truncation)
        records = predict.of_values(predictor.task, examples)
        found = [pair for some in predictor.answers(records, batch) for pair in zip(some.answers, some.details, strict=True)]
        return [{"answer": answer, **more} if details else answer for answer, more in found]

    def predictor(self, truncation: str = "", text: Sequence[str] = ()) -> Predictor:
        """The object that answers the model's task.

        truncation: which text loses tokens where a row has no room, one of `tasks.framing.TRUNCATIONS`, '' for the task's own. text: other
        columns of the texts, () for the task's own. Raises UserError for a pretrained model."""
        if self.tune is None:
            raise UserError("it was not fine-tuned, so it has no task to predict", fix="fine-tune it first with `jaxenc finetune`")
        tune = self.tune
        if truncation and not tune.task.truncation:
            raise UserError(f"a task of the kind {tune.task.kind} shortens no text", f"truncation {truncation}", "leave it out")
        framing = framing_of(tune, inputs.needed(self.config.model, self.tokenizer), self.config)
        framing = dataclasses.replace(framing, truncation=truncation or framing.truncation)
        task = predict.with_columns(tune.task, text) if text else tune.task
        return Predictor(task, framing, self.objective.fields, functools.partial(self._network.predict, self.params))

    def save(self, out: str | pathlib.Path) -> None:
        """Writes a new run directory with this model, such as one with other parameters: `dataclasses.replace(model, params=params)`.

        Raises UserError for parameters that are not the config's or not finite, for a folder that is not empty and for a write that fails.
        """
        write_run(pathlib.Path(out), self.config, self.objective, self.params, self.tokenizer, self.tune)

    def complete(
        self,
        texts: Iterable[str],
        max_new: int = DEFAULT_MAX_NEW,
        temperature: float = Sampling.temperature,
        top_k: int = Sampling.top_k,
        seed: int = Sampling.seed,
        samples: int = DEFAULT_SAMPLES,
    ) -> list[Completion]:
        """Each of `texts` continued by a causal model, `samples` times, in order: the samples of the first text, those of the second, ...

        max_new: maximum number of new tokens of a text. temperature: 0 takes the most probable token; otherwise tokens are sampled from the
        softmax at this temperature. top_k: sample from the top_k most probable tokens only, 0 for all. A draw depends on the seed, the
        numbers of the text and of the sample, and the position of the token, not on the other texts. Special tokens in a text are read as
        plain text. Raises UserError for a model that does not predict the next token, without a tokenizer, for an empty text where the
        vocabulary has no token that starts one, for a text that leaves no position free, and for numbers out of range.
        """
        tokenizer = inputs.needed(self.config.model, self.tokenizer)
        rule = Sampling(inputs.real("temperature", temperature), inputs.whole("top_k", top_k), inputs.whole("seed", seed))
        sizes = inputs.whole("max_new", max_new), inputs.whole("samples", samples)
        return complete_texts(self._decoder, self.params, tokenizer, texts, sizes[0], rule, sizes[1])

    @functools.cached_property
    def _decoder(self) -> Decoder:
        return decode.of(self.objective, inputs.needed(self.config.model, self.tokenizer).vocabulary)
