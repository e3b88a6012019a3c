"""What the checks before a start say."""

FINDINGS = {
    "checking": "checking that it can run",
    "failed": "not started: {what}",
    "cwd_missing": "there is no working directory {path}; make it, or choose another",
    "cwd_unusable": "the working directory {path} cannot be entered: {message}",
    "executable_missing": "there is no program '{name}' in its PATH; install it, or name its path",
    "not_executable": "{path} may not be executed; chmod +x makes it so",
    "interpreter_broken": "the interpreter {path} does not start: {said}",
    "interpreter_slow": "the interpreter {path} did not answer within {seconds} s",
    "script_missing": "there is no script {path}; look at the path and the working directory",
    "syntax_error": "syntax error in {where}: {message}",
    "module_missing": "{interpreter} has no module {names} (imported in {where}); install it "
    "there, or use another interpreter",
    "module_maybe_missing": "{interpreter} finds no module {names} (imported in {where}); its "
    "code may make it findable itself",
    "path_unwritable": "{path} cannot be written: {message}",
    "disk_full": "the disk below {path} has {free_bytes} free, {needed_bytes} are "
    "needed; make room",
    "disk_low": "the disk below {path} has only {free_bytes} free, {needed_bytes} would be safe",
    "port_in_use": "port {port} of service {service} is in use now; it must be free at the start",
    "shared_memory_small": "/dev/shm holds only {size_bytes}; loader processes may need more "
    "(docker run --shm-size)",
    "no_shared_memory": "there is no /dev/shm, which loader processes need",
    "no_gpu_driver": "there is no NVIDIA driver on this machine",
    "torch_without_cuda": "its torch was built without CUDA and will not see the GPU",
    "driver_too_old": "its torch was built for CUDA {torch_cuda}, the driver {driver} is older",
    "check_crashed": "a check could not be made: {error}",
}
