"""What the names of errors tell: words of their classes, and the packages they come from."""

from __future__ import annotations

import re

from runyard.domain.failures.categories import Category as C


def _exactly(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(words))


def _packages(names: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{'|'.join(map(re.escape, names.split()))})\.")


# Parts of a class's own name; the first that is found counts.
CLASS_WORDS: tuple[tuple[C, re.Pattern[str]], ...] = (
    (C.RATE_LIMIT, _exactly(
        r"RateLimit", r"TooManyRequests", r"Throttl", r"SlowDown",
    )),
    (C.AUTH, _exactly(
        r"Unauthori[sz]ed", r"Forbidden", r"AccessDenied", r"PermissionDenied", r"Authenti",
        r"Authoriz", r"Credential", r"Invalid(?:Api|API)?(?:Key|Token)", r"TokenNotFound",
        r"LoginRequired", r"Unauthenticated", r"(?:Api|API)(?:Key|Token)",
    )),
    (C.IMPORT, _exactly(
        r"PackageNotFound", r"ModuleNotFound", r"ClassNotFound", r"NoClassDefFound",
        r"^ImportError",
    )),
    (C.ENV, _exactly(
        r"UnsupportedClassVersion", r"EnvironmentNameNotFound", r"UnsatisfiedLink",
        r"MissingDependenc", r"VersionConflict", r"VersionMismatch", r"DistributionNotFound",
        r"RequirementError", r"UnsatisfiableError", r"LibraryNotFound",
    )),
    (C.PATH, _exactly(
        r"FileNotFound", r"NoSuchFile", r"NoSuchKey", r"PathNotFound", r"NoSuchBucket",
        r"FileExists", r"NotADirectory", r"IsADirectory", r"AccessDeniedException",
        r"filesystem_error",
    )),
    (C.HOST_OOM, _exactly(
        r"OutOfMemory", r"MemoryError", r"bad_alloc",
    )),
    (C.DISK_FULL, _exactly(
        r"StorageFull", r"DiskFull", r"NoSpace", r"QuotaExceeded(?!.{0,60}Request)",
    )),
    (C.NETWORK, _exactly(
        r"Time(?:d)?[oO]ut", r"Connection", r"Connect(?:Error|Exception)", r"Disconnected",
        r"Unavailable", r"Network", r"Gateway", r"Socket", r"Endpoint", r"SSLError",
        r"ProxyError", r"NameResolution", r"UnknownHost", r"RemoteProtocol", r"ChunkedEncoding",
        r"IncompleteRead", r"RetryError", r"ProtocolError", r"ServerError", r"DeadlineExceeded",
    )),
    (C.CONFIG, _exactly(
        r"Config(?!ure)", r"Settings", r"Usage(?:Error|Exception)", r"Option(?:Error|Exception)",
        r"Flags?Error", r"MissingMandatory", r"Interpolation", r"Override", r"Validation",
        r"Argument(?:Parser|Type)Error", r"BadParameter", r"MissingParameter",
        r"InvalidParameter", r"CommandError", r"RegistryError", r"Instantiation",
    )),
    (C.DATA, _exactly(
        r"Decod", r"Decompress", r"Codec", r"Corrupt", r"Truncat", r"BadZip", r"BadGzip",
        r"Parser?Error", r"ParseException", r"Schema", r"Malformed", r"NumberFormat", r"LinAlg",
        r"DataError", r"Unidentified", r"EmptyData", r"InvalidImage", r"BadRecord",
        r"ColumnNotFound", r"FormatError", r"LibsndfileError", r"DataFormat", r"DatasetGeneration",
    )),
    (C.PATH, _exactly(
        r"(?<!Key)(?<!Token)(?<!Element)(?<!Method)(?<!Name)NotFound(?:Error|Exception|$)",
    )),
    (C.CODE, _exactly(
        (r"^(?:Type|Value|Key|Index|Attribute|Name|Assertion|Lookup|Arithmetic|Reference"
         r"|Range)Error"),
        r"Syntax", r"NotImplemented", r"Unimplemented", r"Unsupported", r"Shape", r"Dimension",
        r"Tracer", r"Concretization", r"NullPointer", r"NullReference", r"InvalidCast",
        r"KeyNotFound", r"ArgumentNull", r"ClassCast", r"IllegalArgument",
        r"IllegalState", r"OutOf(?:Bounds|Range)", r"UndefVar", r"UndefKeyword",
        r"^(?:Method|Bounds|Domain|Argument|Load)Error", r"InexactError", r"NotFitted",
        r"DivisionByZero", r"ZeroDivision", r"Recursion", r"StackOverflow",
        r"NoSuch(?:Method|Element|Field)", r"InputMismatch", r"ConcurrentModification",
        r"Unbound", r"Indentation", r"TabError", r"Einops", r"ScopeParam", r"Lowering",
        r"Compil(?:e|ation)", r"PanicException", r"InvalidOperation", r"invalid_argument",
        r"out_of_range", r"logic_error", r"length_error", r"domain_error", r"bad_variant",
        r"bad_optional", r"bad_cast", r"InvalidArgument", r"IncompatibleTypes", r"Mismatch",
        r"StopIteration", r"NotCallable", r"Precondition", r"Inconsisten",
    )),
)  # fmt: skip

# Whose class it is, where the class itself says too little.
PACKAGES: tuple[tuple[C, re.Pattern[str]], ...] = (
    (C.CONFIG, _packages(
        "yaml toml tomli tomllib omegaconf hydra absl.flags click typer argparse jsonargparse "
        "configparser draccus tyro fire gin"
    )),
    (C.DATA, _packages(
        "tarfile zipfile zlib gzip lzma bz2 PIL cv2 decord av csv pyarrow lxml xml json "
        "orjson nibabel pydicom rasterio soundfile librosa audioread h5py _catboost catboost "
        "lightgbm pysam rdkit webdataset sentencepiece ijson"
    )),
    (C.CODE, _packages(
        "torch._dynamo torch._inductor torch.fx torch.jit torch._subclasses jax.errors "
        "jax._src flax.errors einops equinox haiku triton.compiler sympy numba.core jaxtyping "
        "beartype typeguard pyo3_runtime java.lang kotlin scala"
    )),
)  # fmt: skip

# Classes that speak of the code alone, whatever their message names.
OF_CODE = _exactly(
    (r"^(?:Type|Attribute|Name|Syntax|Indentation|Tab|UnboundLocal|Recursion"
     r"|ZeroDivision|UndefVar|Method)Error$"),
)  # fmt: skip

# Classes of code that is wrong for its input: the same input raises them again.
DETERMINISTIC = _exactly(
    (r"^(?:builtins\.)?(?:Type|Value|Key|Index|Attribute|Name|Assertion|Lookup"
     r"|Syntax|Indentation|Tab|UnboundLocal|NotImplemented|ZeroDivision|Recursion"
     r"|Import|ModuleNotFound|FileNotFound|NotADirectory|IsADirectory"
     r"|Unicode\w{0,20}|Overflow|Arithmetic|Reference|Method|Bounds|UndefVar|Domain"
     r"|FloatingPoint)Error$"),
    r"^NullPointerException$", r"^StopIteration$",
)  # fmt: skip
