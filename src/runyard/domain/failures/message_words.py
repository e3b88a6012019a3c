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
        r"\brestor(?:e|ing|ed)\b.{0,160}(?:do not|does not|don't|doesn't) match",
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
        r"invalid (?:api[ _-]?)?(?:key|token)", r"api[ _-]?(?:key|token)\b", r"access token",
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
        r"(?:compiled|built) (?:with|by|using|against|for|to use)\b",
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
        (r"(?:unknown|unsupported) model arch|architectures? .{0,80}(?:is|are) not supported"
         r"|need an? (?:gpu|accelerator)|cannot find any .{0,20}(?:gpu|accelerator)"),
        r"could not load (?:library )?lib\w", r"not (?:properly|correctly) installed",
        r"\blibdevice\b", r"requires? a different python",
        r"(?:seem|appear) to be a python package", r"unable to locate a modulefile",
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
        r"(?:missing|nonexistent|non-existent) (?:(?:the )?\S{1,60} ){0,3}(?:file|director|path)",
        r"cannot find (?:the )?(?:\w{1,20} ){1,2}(?:file|director|folder)",
        r"\bresource \S{1,80} not found", r"cannot be opened\b",
        r"(?:director(?:y|ies)|folder|file|path)\b.{0,120}\balready exists\b",
        r"\bnot found:? ['\"]?/",
        '[\'\\"]/[^\'\\"]{1,300}[\'\\"] (?:does not exist|not found|is missing)',
    )),
    (C.DATA, _any_case(
        (r"(?:could not|couldn\'t|cannot|can\'t|failed to|unable to) (?:parse|cast|decode)"
         r"(?! (?:the )?(?:parameter|option|argument|config|flag|setting|command))"),
        r"column names don\'t match",
        (r"\bcolumns?\b.{0,100}(?:\bnot (?:in|found)\b|\bmissing\b"
         r"|\b(?:do|does) ?n[o\']t (?:match|exist))"),
        r"\b(?:not|n\'t) (?:in|match|contain|have) (?:the )?(?:\w{1,20} )?columns?\b",
        r"(?:greater|less|larger|fewer|more) than the number of (?:samples|members|classes|rows)",
        r"(?:less|fewer) than \d{1,9} (?:\S{1,20} )?(?:rows|samples|examples|images)\b",
        r"column.{0,80} cannot be resolved", r"mismatched dtypes", r"class label\b",
        r"mismatch(?:ed|es)? between \S{0,120}/\S",
        r"same number of samples", r"feature[ _]names?\b.{0,60}(?:match|unseen|unique|support)",
        r"only one (?:class|label)\b", r"at least \d{1,6} classes", r"invalid (?:classes|columns)",
        r"unique values of", r"\bdtypes for data\b", r"text input must be", r"sampling[ _]rate",
        (r"\b(?:has|have|contains?|got|with|found) (?:0|no|zero) (?:samples|examples|lines|rows"
         r"|images|records|utterances|sequences|labels|tokens)\b"),
        r"\b0 (?:samples|examples|lines|rows|images|records|utterances) (?:in|found|left|after)\b",
        r"(?:dataset|split|dataloader)\b.{0,40}\b(?:is|are) empty",
        r"literal for int", r"could not convert string", r"cannot be cast", r"malformed",
        r"inconsistent numbers? of samples", r"singular matrix", r"label must be",
        r"labels? (?:out of range|are invalid)", r"invalid labels?", r"bad value for",
        r"input (?:\w{1,20} )?contains", r"roles must alternate",
        r"corrupt(?:ed)? (?:record|file|image|data|jpeg|archive|video|audio|shard)",
        r"end-of-stream", r"unexpected end of (?:data|file|input|json)",
        r"invalid (?:utf-?8|jpeg|image|json|csv|record|byte)", r"for bbox", r"zero-?length",
        r"empty (?:dataset|dataframe|file)", r"dataset is empty",
        (r"no (?:valid )?(?:samples|examples|images|records|rows|labels|annotations|sequences)"
         r" (?:found|left|in)\b"),
        r"(?:dataset|data|annotation|annotation file|file) format\b",
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
        (r"(?:unknown|unrecogni[sz]ed|invalid|unsupported|undefined|unhandled)"
         r" (?:\w{1,30} ){0,2}(?:objective|metric|loss|optimi[sz]er|scheduler|activation"
         r"|backend|strategy|accelerator|precision|model|architecture|backbone|dataset|split|task|sampler|trainer|algorithm"
         r"|criterion|solver|booster|tokenizer|template|mode|policy|layer type)"
         r"(?: (?:name|type|function|id))?\b(?!.{0,20}\bfile)"),
        r"config values?\b", r"\bTrainingArguments\b",
        r"(?:select|choose|pick|use|pass|expected|must be) (?:any |one |either )(?:of|from)\b",
        (r"\b(?:allowed|possible|supported|valid|permitted|example) (?:\w{1,20} )?"
         r"(?:values|choices|options|arguments|names)\b"),
        r"(?:unsupported|invalid|unknown|bad) \w{1,40}_\w{1,40} value\b",
        r"\bnot a valid (?:\S{1,30} )?(?:argument|option|choice|value|name|setting|parameter)",
        r"you (?:have )?(?:set|selected|specified|requested) [`\'\"-]",
        r"could not interpret (?:\w{1,30} ){1,2}identifier",
        (r"(?:parse|interpret|understand) (?:the )?(?:parameter|option|argument|config|flag"
         r"|setting)"),
        (r"(?:world.?size|number of (?:devices|gpus|processes|nodes|ranks|stages|workers))\b"
         r".{0,80}\b(?:must|should|not|but|greater|less|larger|smaller|exceed)"),
        (r"\b(?:template|optimi[sz]er|scheduler|backend|strategy|task|experiment|preset|profile)"
         r" \S{1,60} (?:does not exist|not found|is not (?:registered|available|defined))"),
        r"\bonly (?:compatible|supported|works|valid|available) (?:with|when|if|in)\b",
        r"\bbe used (?:together )?with\b", r"\bconflicts? with\b",
        r"`cfg`", r"\.cfg\b", r"config keys?\b", r"`\w{1,60}`.{0,40} must be a multiple of\b",
        r"\bthe `\w{1,40}` (?:value|parameter|argument|option)\b",
        r"requested .{0,40}\b(?:gpus?|cpus?|nodes)\b.{0,60}\b(?:but|only)\b",
        r"can never be scheduled", r"mesh_shape", r"\bis not set\b",
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
