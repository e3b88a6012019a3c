"""A real fit of Keras; run by test_real_frameworks.py. Prints its last step."""

import os
import time

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy

from runyard.report.keras import RunyardCallback


class Slow(keras.callbacks.Callback):
    steps = 0

    def on_train_batch_end(self, batch, logs=None):  # noqa: ARG002
        Slow.steps += 1
        time.sleep(float(os.environ["SECONDS_PER_STEP"]))


model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse", metrics=["mae"])
x = numpy.random.default_rng(1).normal(size=(64, 4)).astype("float32")
callbacks = [Slow(), RunyardCallback(progress_every_s=0)]
model.fit(
    x, x.sum(-1), epochs=3, batch_size=8, validation_data=(x, x.sum(-1)), callbacks=callbacks
)
print(Slow.steps)
