"""Two real ranks of torch.distributed; only the second hears of the stop. Each prints its step."""

import os
import sys
import time

import torch.distributed

from runyard.report.agreement import StopAgreement

torch.distributed.init_process_group(
    "gloo",
    init_method=f"file://{sys.argv[1]}",
    rank=int(os.environ["RANK"]),
    world_size=int(os.environ["WORLD_SIZE"]),
)
agreement = StopAgreement()
for step in range(1, 2000):
    time.sleep(0.01)
    if step == 20 and torch.distributed.get_rank() == 1:
        open(os.environ["RUNYARD_STOP_FILE"], "w").close()
    if agreement.ask(step):
        print(step)
        break
torch.distributed.destroy_process_group()
