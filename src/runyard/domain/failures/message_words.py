"""What the messages of errors tell that no signature knows."""

from __future__ import annotations

import re

from runyard.domain.failures.categories import Category as C


def _any_case(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(words), re.IGNORECASE)


# For any error. The first that is found counts.
MESSAGES: tuple[tuple[C, re.Pattern[str]], ...] = (
    (C.GPU_OOM, _any_case(
        r"(?:allocate|allocation)\b.{0,80}\b(?:cuda|gpu|vram)\b",
        r"metal\b.{0,80}insufficient memory",
        r"out of memory error on gpu",
        r"out of (?:gpu|device|cuda|video|vram) memory",
        (r"(?:gpu|cuda|device|vram|hbm|hip)\w{0,20}\b.{0,80}(?:out of memory"
         r"|memory exhausted|insufficient memory)"),
        r"out of memory.{0,60}\b(?:gpu|cuda|vram)\b",
    )),
    (C.HOST_OOM, _any_case(
        r"out of memory", r"heap space", r"heap limit", r"gc overhead limit",
        r"cannot allocate (?:vector|memory|\d)", r"not enough memory", r"insufficient memory",
        r"unable to allocate", r"failed to allocate",
        r"memory allocation (?:of \S{1,30} bytes )?failed", r"bad_alloc",
        r"memory (?:usage )?limit",
    )),
    (C.DISK_FULL, _any_case(
        r"no space left", r"disk (?:is )?full", r"disk quota",
        r"not enough (?:free )?(?:disk )?space", r"insufficient (?:disk |free )?space",
        r"volume is full",
    )),
    (C.PORT_IN_USE, _any_case(
        r"(?:address|port)\b.{0,60}\bin use", r"already bound",
        r"(?:could not|failed to|cannot) bind", r"bind failed",
    )),
    (C.RATE_LIMIT, _any_case(
        r"rate.?limit", r"too many requests", r"throttl", r"slow ?down",
        r"requests per (?:min|sec|day)",
    )),
    (C.NAN, _any_case(
        (r"(?:loss|grad\w{0,10}|norm|weights?|params?|outputs?|logits?|activations?"
         r"|scale)\b.{0,40}(?:\bnan\b|\binf\b|infinit|non-?finite|not finite|diverg"
         r"|explod)"),
        (r"(?:\bnan\b|\binfs?\b|infinite|non-?finite|diverg\w{0,6}"
         r"|explod\w{0,5}).{0,40}(?:\bloss|\bgrad|\bnorm\b|\bweight|\bparam|\blogits"
         r"|\bactivation)"),
    )),
    (C.CKPT_CORRUPT, _any_case(
        (r"(?:checkpoint|\bckpt|weights|tensor|gguf|safetensors|state_dict|ocdbt"
         r"|model (?:is|file)|restor).{0,120}(?:checksum|crc-?(?:32|check)|corrupt"
         r"|truncated|bad magic|invalid magic|incomplete|unexpected (?:eof|end)"
         r"|ended before the end|not within the file|damaged)"),
        (r"(?:checksum|crc-?(?:32|check)|corrupt|truncated|bad magic|invalid magic"
         r"|incomplete|unexpected (?:eof|end)|ended before the end|not within the file"
         r"|damaged).{0,120}(?:checkpoint|\bckpt|weights|tensor|gguf|safetensors"
         r"|state_dict|ocdbt|model (?:is|file)|restor)"),
    )),
    (C.CKPT_MISMATCH, _any_case(
        r"checkpoint.{0,80}\b(?:but|while)\b.{0,40}\bcurrent\b",
        r"(?:unexpected|missing) keys? .{0,60}(?:state|checkpoint)",
        r"state_?dict.{0,80}(?:match|mismatch|differ|incompat)",
        r"(?:mismatch|does not match|do not match|incompatible|differs?).{0,80}checkpoint",
        (r"checkpoint.{0,80}(?:mismatch|does not match|do not match|incompatible"
         r"|was saved with|different)"),
    )),
    (C.CKPT_MISSING, _any_case(
        (r"(?:checkpoint|ckpt|save_path|resume)\b.{0,120}(?:not found|does not exist"
         r"|doesn't exist|not exist|not a valid|no such|cannot be found"
         r"|could not be found)"),
        r"no (?:valid )?checkpoints? (?:was |were )?(?:found|in|at)",
        r"(?:cannot|could not|can't|couldn't) find .{0,40}checkpoint",
    )),
    (C.MODEL_FILES, _any_case(
        (r"(?:config|tokenizer|model|weights?) files? .{0,80}(?:not (?:a )?valid|missing"
         r"|not found)"),
    )),
    (C.AUTH, _any_case(
        r"token (?:has |is )?expired", r"expired ?token",
        r"unauthori[sz]ed", r"forbidden", r"access(?: is)? denied", r"not logged in",
        r"please log ?in", r"login (?:is )?required", r"credentials?\b", r"authenticat(?:ion|e)",
        r"invalid (?:api[ _-]?)?(?:key|token)", r"api[ _-]?key", r"access token",
        r"could not read (?:username|password)", r"host key verification", r"\(publickey",
        r"docker login", r"expired token", r"requires? authorization", r"no permission",
        r"not (?:have|authori[sz]ed).{0,20}(?:access|permission)",
    )),
    (C.IMPORT, _any_case(
        r"no module named", r"cannot import", r"no package called",
        r"package \S{1,80} not found", r"cannot find (?:module|package)",
        r"could not find (?:or load )?(?:main )?(?:class|module|package)", r"is not installed",
        r"not installed\b", r"no package metadata", r"pip install", r"install\.packages",
        r"importing .{1,60} failed", r"failed to import",
    )),
    (C.ENV, _any_case(
        r"library (?:is )?not found", r"not compatible with this version", r"unsatisfiable",
        r"resolving dependencies",
        r"compiled (?:with|by|using|against|for|to use)\b",
        r"\b(?:avx\d{0,3}|sse\d|fma|amx|neon|sve)\b.{0,60}(?:not|n't|requir|support)",
        r"(?:not|n't) (?:available|supported) on (?:your|this) (?:machine|cpu|processor|platform)",
        (r"(?:driver|runtime|library|toolkit|cudnn|cuda|glibc|python|numpy"
         r"|protobuf)\b.{0,40}version.{0,60}(?:mismatch|incompat|too old|too new"
         r"|required|not support|insufficient|expected|found)"),
        r"version.{0,40}(?:mismatch|conflict|incompatib)", r"incompatible.{0,30}version",
        r"unknown backend", r"platforms present",
        r"no (?:gpus?|cuda|accelerators?|tpus?)\b.{0,30}(?:found|available|detected|present)",
        r"not compiled with", r"library initialization", r"conda environment",
        r"could not find a version", r"no matching distribution", r"\bptxas\b", r"\bnvcc\b",
        r"protoc\b", r"shared (?:object|library|libraries)",
        r"\.so[.\d]{0,12}\b.{0,60}(?:not found|cannot|no such)", r"undefined reference",
        r"does not support (?:compute|this gpu|sm_)", r"compute capability",
        r"unsupported (?:gpu|architecture|instruction)",
    )),
    (C.PATH, _any_case(
        r"repository .{1,200} not found",
        (r"(?:roots?|dataset|images?|corpus|datadir|data_dir)\b.{0,60}"
         r"(?:does not|doesn't) exists?\b"),
        r"no such file", r"file not found", r"not a directory", r"is a directory",
        r"permission denied", r"operation not permitted",
        r"no files? (?:were |was )?(?:found|match)",
        (r"cannot (?:open|access|create|stat|find) (?:the )?(?:file|director|path|folder"
         r"|['\"/])"),
        (r"(?:can't|could not|couldn't|unable to|failed to) (?:open|read|access"
         r"|locate) (?:the )?(?:perl script|file|director|path|folder|['\"/])"),
        (r"(?:files?|director(?:y|ies)|paths?|folder|prefix)\b.{0,160}(?:does not exist"
         r"|do not exist|doesn't exist|not found|cannot be found|could not be found"
         r"|not exist|is missing)"),
        r"(?:missing|nonexistent|non-existent) (?:file|director|path)",
        '[\'\\"]/[^\'\\"]{1,300}[\'\\"] (?:does not exist|not found|is missing)',
    )),
    (C.DATA, _any_case(
        r"(?:could not|couldn\'t|cannot|can\'t|failed to|unable to) (?:parse|cast|decode)",
        r"column names don\'t match",
        r"literal for int", r"could not convert string", r"cannot be cast", r"malformed",
        r"inconsistent numbers? of samples", r"singular matrix", r"label must be",
        r"labels? (?:out of range|are invalid)", r"invalid labels?", r"bad value for",
        r"input (?:\w{1,20} )?contains", r"roles must alternate",
        r"corrupt(?:ed)? (?:record|file|image|data|jpeg|archive|video|audio|shard)",
        r"end-of-stream", r"unexpected end of (?:data|file|input|json)",
        r"invalid (?:utf-?8|jpeg|image|json|csv|record|byte)", r"for bbox", r"zero-?length",
        r"empty (?:dataset|dataframe|file)", r"dataset is empty",
        r"no (?:samples|examples|images|records|rows) (?:found|left|in)",
        r"decode (?:error|failed)", r"failed to decode", r"parse error", r"unparsable",
        (r"(?:row|line|record|sample|column) \d{1,12}\b.{0,80}(?:invalid|expected"
         r"|malformed|bad|missing|wrong)"),
        r"!_src\.empty",
    )),
    (C.CONFIG, _any_case(
        r"(?:should|must) be one of\b", r"pick one (?:of|among)", r"config name",
        r"not registered\b",
        r"registered as expected",
        r"\bavailable (?:\w{1,20} ){0,2}(?:are|is|:)",
        r"did you mean",
        r"(?:not|is) one of\b",
        r"choose from",
        r"`--[a-z]",
        r"config (?:ya?ml|json|file)",
        r"could not find experiment",
        r"no slot ",
        r"parameter null or not set",
        (r"(?:unknown|unrecogni[sz]ed|invalid|missing|unsupported|illegal|bad|ambiguous"
         r"|unexpected|no such|undefined) (?:command.?line |config(?:uration)? "
         r"|required |mandatory )?(?:options?|flags?|arguments?|parameters?|settings?"
         r"|config\w{0,10}|choice|switch|subcommand|command|environment variable"
         r"|hyper-?param\w{0,6})\b"),
        (r"(?:unknown|unrecogni[sz]ed|invalid|unsupported|undefined) (?:\w{1,30} )?(?:objective"
         r"|metric|loss|optimi[sz]er|scheduler|activation|backend|strategy|accelerator"
         r"|precision|model|architecture|backbone|dataset|split|task|sampler|trainer|algorithm"
         r"|criterion|solver|booster|tokenizer|template|mode|policy|layer type)"
         r"(?: (?:name|type|function|id))?\b(?!.{0,20}\bfile)"),
        r"config values?\b", r"\bTrainingArguments\b",
        r"\bmandatory\b", r"unbound variable", r"not set\b.{0,30}environment",
        r"environment variable", r"no rule to make target", r"divisible by",
        r"in (?:your|the) config\b", r"config\.(?:json|ya?ml|toml)", r"ds_?config",
        r"\w{1,40}Config`?\b", r"target modules", r"must have a value other than", r"flag --",
        r"option '?--",
        r"--[a-z][a-z0-9_-]{2,40}\b.{0,60}(?:must|required|invalid|requires|cannot|not)",
        r"(?:must|requires?|cannot|not).{0,60} --[a-z][a-z0-9_-]{2,40}\b", r"max_model_len",
        r"try --help", r"--help for",
    )),
)  # fmt: skip

# What comes and goes: only for errors that are not raised by wrong code alone.
PASSING: tuple[tuple[C, re.Pattern[str]], ...] = (
    (C.STORAGE, _any_case(
        r"stale (?:nfs )?file", r"transport endpoint", r"input/output", r"\bi/o error",
        r"remote i/o", r"read-only file", r"database is locked", r"resource deadlock",
        r"lock(?:ed)? by another process",
    )),
    (C.FD_LIMIT, _any_case(
        r"too many open files", r"(?:inotify|thread|process|file) .{0,20}limit reached",
        r"can't start new thread",
    )),
    (C.RENDEZVOUS, _any_case(
        r"barrier timed out", r"rendezvous",
        r"waiting for (?:clients|workers|peers|all (?:ranks|tasks))",
    )),
    (C.COMM_HANG, _any_case(
        r"\b(?:rank|worker|collective)\w{0,3}\b.{0,60}\b(?:stalled|hung|timed out)",
        r"collective.{0,40}time",
    )),
    (C.COMM_NET, _any_case(
        r"another task died", r"(?:peer|rank|task|worker) (?:died|is gone|disconnected|lost)",
        r"coordination service",
    )),
    (C.NETWORK, _any_case(
        r"transport failure",
        r"broker",
        r"(?:connection|stream) unexpectedly closed", r"resolve host",
        r"timed out", r"time-?out\b",
        r"connection (?:was )?(?:refused|reset|aborted|closed|error|lost|failed)",
        r"(?:could not|couldn't|failed to|unable to|cannot) (?:connect|resolve|reach|establish)",
        r"unreachable", r"name resolution", r"service unavailable", r"bad gateway",
        r"server (?:closed|disconnected|error|unavailable)", r"\bunavailable:",
        r"deadline.?exceeded", r"network (?:error|is|issue|failure)", r"tls handshake",
        r"early eof", r"rpc (?:failed|error)", r"connection to server",
        r"curl: \((?:5|6|7|18|28|35|52|56|92)\)",
    )),
)  # fmt: skip

# An error that says one of these fails the same way again, whatever else it names.
SURELY_WRONG = _any_case(
    r"\bexpected\b.{1,120}\bbut\b", r"\bexpects\b", r"\binconsistent\b", r"out of bounds",
    r"invalid (?:value|argument|option|type|shape|dim|size|key|index|use|combination)",
    r"(?:operator|function|attribute|column|table|field|symbol|op)\b.{0,80}does not exist",
    r"no such (?:column|table|function|option|operator|attribute|method|field)",
    r"(?:not|un)(?: |-)?(?:supported|implemented|declared|defined)\b",
    r"(?:size|shape|type|dtype|dimension)s? mismatch",
    r"must (?:be|have|match|contain|not)\b", r"should (?:be|have|not)\b", r"nil (?:map|pointer)",
    r"got an? unexpected", r"cannot be (?:negative|zero|empty|none|multiplied|broadcast)",
)  # fmt: skip
# An unknown error that says one of these fails the same way again ...
WRONG = _any_case(
    r"\bexpected\b", r"\bgot\b", r"\bmust\b", r"\bshould(?:n't)?\b", r"\bcannot\b", r"can't",
    r"\binvalid\b", r"\bmismatch", r"\bincompatible", r"not supported", r"unsupported",
    r"not implemented", r"undefined", r"not defined", r"no method", r"\bnull\b", r"\bnil\b",
    r"`?None`?", r"out of (?:bounds|range)", r"\bshapes?\b", r"\bsizes?\b",
    r"\bdim(?:ension)?s?\b", r"\bdtypes?\b", r"\btypes?\b", r"\barguments?\b", r"\bindex\b",
    r"attempted", r"\brequired\b", r"check failed", r"unwrap", r"not valid", r"not fitted",
    r"\billegal\b", r"\bunknown\b", r"not allowed", r"forgot", r"attempt to", r"incorrect",
    r"please",
    r"syntax error", r"not found", r"dereference", r"duplicate", r"empty", r"larger than",
    r"greater than", r"less than", r"exceeds", r"too (?:large|long|small|short|many)",
    r"no attribute", r"object .{1,60} not", r"more than one", r"at least", r"at most",
    r"wrong (?:type|shape|size|number|value|key|format)",
    r"unable to (?:infer|determine|broadcast|create)",
)  # fmt: skip

# ... unless it may be somebody else's fault.
MAYBE_PASSING = _any_case(
    r"connect", r"time.?out", r"timed", r"temporar", r"unavailable", r"\bserver", r"network",
    r"socket", r"\blost\b", r"\bdied\b", r"\bkilled\b", r"\bhung\b", r"memory", r"\bcuda\b",
    r"\bnccl\b", r"cudnn", r"cublas", r"\bgpu\b", r"\bdriver\b", r"retry", r"\bbusy\b",
    r"\block(?:ed)?\b", r"\bhost\b", r"remote", r"response", r"\bI/O\b", r"\bdisk\b", r"signal",
    r"crashed", r"terminated", r"interrupted", r"unexpectedly", r"try again", r"heartbeat",
    r"\brpc\b", r"internal error",
)  # fmt: skip

# A file that is not whole.
BROKEN = _any_case(
    r"checksum", r"crc-?(?:32|check)", r"corrupt", r"truncated", r"bad magic", r"invalid magic",
    r"incomplete", r"unexpected (?:eof|end)", r"ended before the end", r"not within the file",
    r"damaged",
)  # fmt: skip
