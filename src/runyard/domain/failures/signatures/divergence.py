"""Losses and gradients that are no longer numbers."""

from __future__ import annotations

import re

from runyard.domain.failures.categories import Category
from runyard.domain.failures.signature import Signature, advice

_NAN = Category.NAN
SCALE_AT_MINIMUM = "loss_scale_at_minimum"
_NO_NUMBER = ("nan", "NaN", "NAN", "inf", "Inf", "INF", "finite")
METRIC_LINE = "metric_line"  # the training itself may not have noticed

# fmt: off
# One signature, one line, with its sample as long as it is: a table.
SIGNATURES = (
    Signature(_NAN, ("returned nan values in its", "th output"), "RuntimeError: Function 'LogSoftmaxBackward0' returned nan values in its 0th output.", confidence=0.98),
    Signature(_NAN, "Loss became infinite or NaN at iteration", "FloatingPointError: Loss became infinite or NaN at iteration=1203!", confidence=0.99),
    Signature(_NAN, "found NaN in", "AssertionError: Rank 5: found NaN in local forward loss calculation. Device: 5, node: gpu05", confidence=0.97),
    Signature(_NAN, ("Unexpected result", "nan"), "RuntimeError: Rank 0, node gpu1, device 0, iteration 77: Unexpected result nan (message='found NaN in local forward loss calculation')", confidence=0.95),
    Signature(_NAN, "Current loss scale already at minimum - cannot decrease scale anymore", "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.", confidence=0.99, variant=SCALE_AT_MINIMUM),
    Signature(_NAN, ("Minimum loss scale reached", "Your loss is probably exploding"), "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding. Try lowering the learning rate, using gradient clipping or increasing the batch size.", confidence=0.99, variant=SCALE_AT_MINIMUM),
    Signature(_NAN, ("Batch", "Invalid loss, terminating training"), "Batch 301: Invalid loss, terminating training", confidence=0.98),
    Signature(_NAN, "oss is", "Loss is nan, stopping training", confidence=0.97, pattern=re.compile(r"\b[Ll]oss is (?:NaN|nan|inf|Inf|-inf)\S{0,8}[,.;:!]? {0,2}(?:[Ss]topping|[Aa]bort|[Ee]xit|at )")),
    Signature(_NAN, ("Monitored metric", "is not finite"), "Monitored metric val_loss = nan is not finite. Previous best value was 0.482. Signaling Trainer to stop.", confidence=0.98),
    Signature(_NAN, "oss", "{'loss': nan, 'grad_norm': nan, 'learning_rate': 4.5e-05, 'epoch': 0.62}", confidence=0.8, pattern=re.compile(r"(?i)(?<!best )(?<!min )(?<!best_)(?<!prev )['\"]?\b(?:train[_/ ])?loss['\"]?\s{0,3}[:=]\s{0,3}[\"']?(?:nan|[-+]?inf(?:inity)?)\b"), variant=METRIC_LINE, one_of=_NO_NUMBER),
    Signature(_NAN, "probability tensor contains either `inf`, `nan` or element < 0", "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0", confidence=0.93),
    Signature(_NAN, ("to satisfy the constraint", "but found invalid values"), "ValueError: Expected parameter logits (Tensor of shape (64, 6)) of distribution Categorical(logits: torch.Size([64, 6])) to satisfy the constraint IndependentConstraint(Real(), 1), but found invalid values: tensor([[nan, nan, nan]])", confidence=0.97),
    Signature(_NAN, "oss", "ValueError: NaN loss encountered at step 4200", confidence=0.95, pattern=re.compile(r"(?i)\b(?:nan|non-?finite|infinite|inf)\b[^.]{0,20}\bloss(?:es)?\b[^.]{0,30}\b(?:detected|encountered|found|at step|at iter|at epoch|in batch)"), one_of=_NO_NUMBER),
    Signature(_NAN, "oss", "AssertionError: loss is NaN", confidence=0.95, pattern=re.compile(r"^(?:\w{1,40}\.){0,6}\w{0,40}(?:Error|Exception|Exit): .{0,80}\b[Ll]oss(?:es)?\b.{0,20}\b(?:[Nn]a[Nn]|not finite|non-?finite|[Ii]nf(?:inite)?)\b"), one_of=_NO_NUMBER),
    Signature(_NAN, ":", "ValueError:Network outputs is NAN! Stop Training", confidence=0.93, pattern=re.compile(r"(?i)^(?:\w{1,40}\.){0,6}\w{0,40}(?:error|exception|exit): ?.{0,60}\b(?:outputs?|gradients?|grads?|weights?|logits|parameters?|activations?) (?:is|are|became|contains?|has|have) {1,3}(?:nan|inf)"), one_of=_NO_NUMBER),
    Signature(_NAN, "Found nan in", "RuntimeError: Found nan in gradients of parameter encoder.layers.3.weight at step 77", confidence=0.9, pattern=re.compile(r"(?i)grad|param|weight|output|loss")),
    Signature(_NAN, "FloatingPointError: invalid value (nan) encountered in", "FloatingPointError: invalid value (nan) encountered in jit(train_step)", confidence=0.98),
    Signature(_NAN, "InvalidArgumentError", "tensorflow.python.framework.errors_impl.InvalidArgumentError: Tensor had NaN values [Op:CheckNumerics]", confidence=0.97, pattern=re.compile(r"Tensor had (?:NaN|Inf)")),
    Signature(_NAN, "The loss returned in `training_step` is", "ValueError: The loss returned in `training_step` is nan.", confidence=0.98),
    Signature(_NAN, "Detected nan and/or inf values in", "ValueError: Detected nan and/or inf values in `layer3.0.conv1.weight`. Check your forward pass for numerically unstable operations.", confidence=0.98),
    Signature(_NAN, "Model diverged with loss = NaN", "ERROR:tensorflow:Model diverged with loss = NaN.", confidence=0.98),
    Signature(_NAN, "NaN loss during training", "tensorflow.python.training.basic_session_run_hooks.NanLossDuringTrainingError: NaN loss during training.", confidence=0.98),
    advice(("OVERFLOW!", "Skipping step. Attempted loss scale"), "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768"),
    advice("Gradient overflow.  Skipping step, loss scaler", "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 16384.0"),
    advice("lr_scheduler.step()` before `optimizer.step()", "UserWarning: Detected call of `lr_scheduler.step()` before `optimizer.step()`."),
)
