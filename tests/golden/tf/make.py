"""Makes a checkpoint that TensorFlow itself wrote, for the tests of the reader, which does without.

    python -m tests.golden.tf.make

needs tensorflow (2.21). The weights are those of tests/golden/hf/BertForPreTraining.npz by google-research/bert's names, with Adam's
slots and the step beside them.
"""

from pathlib import Path

import tensorflow.compat.v1 as tf

from tests.convert.tf1 import google_names
from tests.parity.cases import golden

FOLDER = Path(__file__).parent


def main() -> None:
    """Writes model.ckpt.index and model.ckpt.data-00000-of-00001."""
    tf.disable_eager_execution()
    with tf.Session() as session:
        for name, value in google_names(golden("BertForPreTraining", "weights/")).items():
            tf.get_variable(name, initializer=value)
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(FOLDER / "model.ckpt"), write_meta_graph=False, write_state=False)


if __name__ == "__main__":
    main()
