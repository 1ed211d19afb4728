"""ELMo in NumPy float64, one row, one step, one filter at a time; written from the paper and the facts, not from jaxenc."""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def clip(x, limit):
    return np.minimum(np.maximum(x, -limit), limit) if limit else x


def lstm_row(p, spec, x, real, cell, hidden):
    """One row of one LSTM: x [length, in], real [length]; ([length, width], cell [cells], hidden [width])."""
    out = []
    n = spec.cells
    for vector, here in zip(x, real, strict=True):
        if not here:
            out.append(np.zeros(spec.width))
            continue
        gates = vector @ p["input"] + hidden @ p["recurrent"] + p["bias"]
        i, j, f, o = gates[:n], gates[n : 2 * n], gates[2 * n : 3 * n], gates[3 * n :]
        cell = clip(sigmoid(f + spec.forget_bias) * cell + sigmoid(i) * np.tanh(j), spec.cell_clip)
        hidden = clip((sigmoid(o) * np.tanh(cell)) @ p["projection"], spec.projection_clip)
        out.append(hidden)
    return np.stack(out), cell, hidden


def word(p, spec, ids):
    """The vector [width] of one word, character ids [50]."""
    x = p["characters"]["table"][ids]
    found = []
    for number, width in enumerate(spec.filter_widths):
        dense = p[f"convolution_{number:02d}"]
        kernel = dense["kernel"].reshape(width, spec.character_width, -1)
        places = [np.einsum("wc,wcf->f", x[at : at + width], kernel) for at in range(len(x) - width + 1)]
        found.append(np.max(places, axis=0) + dense["bias"])
    x = np.concatenate(found)
    x = np.maximum(x, 0) if spec.activation == "relu" else np.tanh(x)
    for number in range(spec.highways):
        layer = p[f"highway_{number:02d}"]
        carry = sigmoid(x @ layer["carry"]["kernel"] + layer["carry"]["bias"])
        x = carry * np.maximum(x @ layer["transform"]["kernel"] + layer["transform"]["bias"], 0) + (1 - carry) * x
    return x @ p["projection"]["kernel"] + p["projection"]["bias"]


def direction_row(p, config, x, real, cells, hiddens):
    """[layers + 1, length, width] of one direction and row, the words' vectors x first; cells, hiddens: one a layer, changed in place."""
    states = [x]
    for number in range(config.layers):
        y, cells[number], hiddens[number] = lstm_row(
            p[f"layer_{number:02d}"], config.lstm, states[-1], real, cells[number], hiddens[number]
        )
        states.append(y + states[-1] if config.residual and number else y)
    return np.stack(states)
