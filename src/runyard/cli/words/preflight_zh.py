"""What the checks before a start say, in Chinese."""

FINDINGS = {
    "checking": "正在检查能否运行",
    "failed": "未启动: {what}",
    "cwd_missing": "工作目录 {path} 不存在; 请创建或另选",
    "cwd_unusable": "无法进入工作目录 {path}: {message}",
    "executable_missing": "PATH 中没有程序 '{name}'; 请安装或写出完整路径",
    "not_executable": "{path} 不可执行; 可用 chmod +x",
    "interpreter_broken": "解释器 {path} 无法启动: {said}",
    "interpreter_slow": "解释器 {path} 在 {seconds} 秒内没有响应",
    "script_missing": "脚本 {path} 不存在; 请检查路径和工作目录",
    "syntax_error": "{where} 有语法错误: {message}",
    "module_missing": "{interpreter} 没有模块 {names} (由 {where} 导入); "
    "请在其中安装, 或换用其他解释器",
    "module_maybe_missing": "{interpreter} 找不到模块 {names} (由 {where} 导入); 代码可能自行处理",
    "path_unwritable": "{path} 不可写: {message}",
    "disk_full": "{path} 所在磁盘剩余 {free_bytes}, 需要 {needed_bytes}; 请腾出空间",
    "disk_low": "{path} 所在磁盘仅剩 {free_bytes}, 建议至少 {needed_bytes}",
    "port_in_use": "服务 {service} 的端口 {port} 正被占用; 启动时必须空闲",
    "shared_memory_small": "/dev/shm 仅有 {size_bytes}; 数据加载进程可能不够用 "
    "(docker run --shm-size)",
    "no_shared_memory": "没有 /dev/shm, 数据加载进程需要它",
    "no_gpu_driver": "本机没有 NVIDIA 驱动",
    "torch_without_cuda": "其 torch 不含 CUDA, 无法使用 GPU",
    "driver_too_old": "其 torch 需要 CUDA {torch_cuda}, 驱动 {driver} 过旧",
    "check_crashed": "有一项检查未能进行: {error}",
}
