"""A real Trainer of transformers; run by test_real_frameworks.py. Prints its last step."""

import os
import sys
import time

import torch
from transformers import Trainer, TrainingArguments

from runyard.report.huggingface import RunyardCallback


class Line(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Linear(4, 1)

    def forward(self, x=None, labels=None):
        guess = self.weights(x).squeeze(-1)
        return {"loss": ((guess - labels) ** 2).mean(), "logits": guess}


class Sums(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, _index):
        time.sleep(float(os.environ["SECONDS_PER_STEP"]) / 8)
        x = torch.randn(4)
        return {"x": x, "labels": x.sum()}


arguments = TrainingArguments(
    output_dir=sys.argv[1],
    num_train_epochs=3,
    per_device_train_batch_size=8,
    logging_steps=5,
    save_steps=10,
    report_to=[],
    use_cpu=True,
    eval_strategy="epoch",
    remove_unused_columns=False,
)
callbacks = [RunyardCallback(progress_every_s=0)]
trainer = Trainer(Line(), arguments, None, Sums(), Sums(), callbacks=callbacks)
trainer.train()
print(trainer.state.global_step)
