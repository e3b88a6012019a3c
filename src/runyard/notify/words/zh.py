"""Chinese."""

from __future__ import annotations

TITLES = {
    "completed": "任务 {name} 已完成",
    "failed": "任务 {name} 失败",
    "cancelled": "任务 {name} 已取消",
    "repaired": "任务 {name} 已修复并完成",
    "alert": "告警 ({level}): {what}",
    "alert_of_job": "任务 {name} 的告警 ({level}): {what}",
    "test": "Runyard 可以通知到您",
}

LINES = {
    "job": "任务编号: {job_id}",
    "owner": "提交者: {owner}",
    "reason": "原因: {reason}",
    "exit_code": "退出码: {exit_code}",
    "took": "运行时间: {took}",
    "node": "节点: {node_id}",
    "params": "详情: {params}",
    "url": "更多: {url}",
    "test": "这是 {asked_by} 发起的测试, 没有发生任何事情.",
}

# 未列出的代码原样显示, 并附上参数.
REASONS = {
    "exit_code": "退出码为 {code}",
    "signal": "被 {name} 结束",
    "crashed": "因 {name} 崩溃",
    "killed_externally": "被他人用 {name} 杀死",
    "oom": "内存不足, 被内核杀死",
    "oom_child": "内存不足, 内核杀死了它的一个进程",
    "oom_soft": "已用内存 {used_mb} MiB, 超过上限 {limit_mb} MiB",
    "timed_out": "运行超过 {limit_s}",
    "user_cancelled": "由 {by} 取消",
    "shutdown": "服务器已关闭",
    "lease_lost": "客户端已离开",
    "dependency_failed": "所依赖的 {job} 状态为 {status}",
    "exec_failed": "无法启动: {path}: {message}",
    "cwd_missing": "工作目录 {path} 不存在",
    "service_failed": "它的服务 {service} 失败",
    "rank_lagged": "第一个 rank 结束后 {limit_s} 内 rank {rank} 仍未结束",
    "supervisor_lost": "监管进程被杀, 结束方式未知",
    "host_restarted": "机器重启了",
    "retries_used_up": "{max_retries} 次重试也失败了, 最后一次: {last}",
}

ALERTS = {
    "service_unhealthy": "服务 {service} 不再响应",
    "cannot_be_killed": "有进程无法结束, 任务占用的资源仍被保留",
    "cancel_stale": "已取消 {seconds} 仍未结束",
    "gpu_memory_held": "任务结束后显存未释放",
    "stalled_training": "{seconds} 没有进展",
    "memory_leak": "{kind} 内存每小时增长 {mb_per_hour} MB",
    "completed_with_nan": "已完成, 但损失自第 {bad_step} 步起为 NaN",
    "not_finite": "{metric} 在第 {step} 步为 {value}",
    "loss_spike": "{metric} 突增到 {value}",
    "loss_divergence": "{metric} 持续上升: {value}",
    "loss_plateau": "{metric} 已有 {seconds} 未下降",
    "idle_gpu": "GPU 未被使用",
    "slow_down": "比之前慢",
    "disk_full": "磁盘剩余 {free_gb} GB",
    "gpu_trouble": "GPU {gpu}: {kind}",
    "rule": "规则 {rule}: {expression}",
}
