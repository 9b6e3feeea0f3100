"""A run over its steps."""

import pandas as pd
from matplotlib.figure import Figure

from foreshard_analysis.figures.style import PALETTE, one_axes, plain


def step_times_figure(step_times: pd.DataFrame) -> Figure:
    """`step_times` as `summary.load_step_times` gives them."""
    figure, axes = one_axes(8, 3)
    axes.plot(step_times["step"], 1e3 * step_times["step_time"], ".-", color=PALETTE[0])
    axes.set(xlabel="step", ylabel="step time, ms", title="Step time, the mean over ranks")
    axes.set_ylim(bottom=0)
    plain(axes)
    return figure


def loss_figure(metrics: pd.DataFrame, validations: pd.DataFrame) -> Figure:
    """Loss of training, and of validation where there was any."""
    figure, axes = one_axes(8, 3)
    axes.plot(metrics["step"], metrics["loss"], "-", color=PALETTE[0], label="training")
    if len(validations):
        axes.plot(validations["step"], validations["val_loss"], "o-", color=PALETTE[1], label="validation")
    axes.set(xlabel="step", ylabel="loss, nats a token", title="Loss")
    plain(axes)
    axes.legend(frameon=False)
    return figure
