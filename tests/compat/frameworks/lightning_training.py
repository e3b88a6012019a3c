"""A real Trainer of Lightning; run by test_real_frameworks.py. Prints its last step."""

import os
import sys
import time

import lightning
import torch

from runyard.report.lightning import RunyardCallback


class Line(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Linear(4, 1)

    def distance(self, batch):
        [x] = batch
        return ((self.weights(x).squeeze(-1) - x.sum(-1)) ** 2).mean()

    def training_step(self, batch, _index):
        time.sleep(float(os.environ["SECONDS_PER_STEP"]))
        loss = self.distance(batch)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _index):
        self.log("val_loss", self.distance(batch))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.05)


data = torch.utils.data.TensorDataset(torch.randn(64, 4))
loader = torch.utils.data.DataLoader(data, batch_size=8)
trainer = lightning.Trainer(
    max_epochs=3,
    min_epochs=2,  # a stop request must be stronger than this
    accelerator="cpu",
    log_every_n_steps=4,
    default_root_dir=sys.argv[1],
    callbacks=[RunyardCallback(progress_every_s=0)],
    logger=False,
)
trainer.fit(Line(), loader, loader)
print(trainer.global_step)
