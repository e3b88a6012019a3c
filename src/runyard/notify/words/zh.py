"""Chinese."""

from __future__ import annotations

TITLES = {
    "completed": "任务 {name} 已完成",
    "failed": "任务 {name} 失败",
    "cancelled": "任务 {name} 已取消",
    "repaired": "任务 {name} 已修复并继续运行",
    "alert": "告警 ({level}): {code}",
    "alert_of_job": "任务 {name} 的告警 ({level}): {code}",
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
