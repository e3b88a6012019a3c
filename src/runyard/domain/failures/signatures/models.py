"""Models and data that could not be fetched or are not what was asked for."""

from __future__ import annotations

import re

from runyard.domain.failures.categories import Category
from runyard.domain.failures.signature import Signature, advice

_AUTH, _ID, _FILES = Category.AUTH, Category.MODEL_ID, Category.MODEL_FILES
_NET = Category.NETWORK
OFFLINE = "offline"  # it was told not to look

# fmt: off
# One signature, one line, with its sample as long as it is: a table.
SIGNATURES = (
    Signature(_AUTH, "You are trying to access a gated repo", "OSError: You are trying to access a gated repo.", confidence=0.99),
    Signature(_AUTH, "GatedRepoError", "huggingface_hub.errors.GatedRepoError: 403 Client Error. (Request ID: Root=1-66a)", confidence=0.99),
    Signature(_AUTH, "401 Client Error", "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/org/private/resolve/main/config.json", confidence=0.96),
    Signature(_AUTH, "403 Client Error", "requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: https://huggingface.co/api/models/org/x", confidence=0.96),
    Signature(_AUTH, "Invalid credentials in Authorization header", "huggingface_hub.errors.HfHubHTTPError: Invalid credentials in Authorization header", confidence=0.98),
    Signature(_AUTH, "Token is required", "huggingface_hub.errors.LocalTokenNotFoundError: Token is required (`token=True`), but no token found.", confidence=0.96),
    Signature(_AUTH, "wandb: ERROR api_key not configured", "wandb: ERROR api_key not configured (no-tty). call wandb.login(key=[your_api_key])", confidence=0.96),
    Signature(_AUTH, "api_key not configured (no-tty)", "wandb.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=[your_api_key])", confidence=0.97),
    Signature(_AUTH, "Permission denied (publickey", "git@github.com: Permission denied (publickey).", confidence=0.97),
    Signature(_AUTH, "NoCredentialsError", "botocore.exceptions.NoCredentialsError: Unable to locate credentials", confidence=0.97),
    Signature(_AUTH, "(AccessDenied)", "botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling the GetObject operation: Access Denied", confidence=0.96),
    Signature(_AUTH, "(InvalidAccessKeyId)", "botocore.exceptions.ClientError: An error occurred (InvalidAccessKeyId) when calling the ListObjectsV2 operation", confidence=0.97),
    Signature(_ID, "is not a local folder and is not a valid model identifier", "OSError: bert-bsae-uncased is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'", confidence=0.97),
    Signature(_ID, "RepositoryNotFoundError", "huggingface_hub.errors.RepositoryNotFoundError: 401 Client Error. (Request ID: Root=1-65f)", confidence=0.98),
    Signature(_ID, "404 Client Error", "requests.exceptions.HTTPError: 404 Client Error: Not Found for url: https://huggingface.co/org/typo/resolve/main/config.json", confidence=0.93),
    Signature(_ID, "Repo id must", "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/models/llama'. Use `repo_type` argument if needed.", confidence=0.95),
    Signature(_ID, "RevisionNotFoundError", "huggingface_hub.errors.RevisionNotFoundError: 404 Client Error. Revision Not Found for url: https://huggingface.co/org/m/resolve/v9/config.json.", confidence=0.98),
    Signature(_ID, ("DatasetNotFoundError", "doesn't exist on the Hub"), "datasets.exceptions.DatasetNotFoundError: Dataset 'org/nothing' doesn't exist on the Hub or cannot be accessed.", confidence=0.98),
    Signature(_AUTH, "password authentication failed", "psycopg2.OperationalError: connection to server at \"db\", port 5432 failed: FATAL:  password authentication failed for user \"ml\"", confidence=0.97),
    Signature(Category.MODEL_FILES, "Can't find 'adapter_config.json' at", "ValueError: Can't find 'adapter_config.json' at 'out/last'", confidence=0.96),
    Signature(_ID, "is not a valid git identifier", "OSError: v9 is not a valid git identifier (branch name, tag name or commit id) that exists for this model name.", confidence=0.97),
    Signature(_ID, "model_not_found", "openai.NotFoundError: Error code: 404 - {'error': {'message': 'The model `gpt-9` does not exist', 'code': 'model_not_found'}}", confidence=0.96),
    Signature(_AUTH, "Could not find kaggle.json", "OSError: Could not find kaggle.json. Make sure it's located in /home/user/.config/kaggle. Or use the environment method.", confidence=0.96),
    Signature(_ID, "(NoSuchBucket)", "botocore.errorfactory.NoSuchBucket: An error occurred (NoSuchBucket) when calling the ListObjects operation: The specified bucket does not exist", confidence=0.97),
    Signature(Category.PATH, "(NoSuchKey)", "botocore.errorfactory.NoSuchKey: An error occurred (NoSuchKey) when calling the GetObject operation: The specified key does not exist.", confidence=0.96),
    Signature(_FILES, "does not appear to have a file named", "OSError: org/model does not appear to have a file named pytorch_model.bin, model.safetensors, tf_model.h5, model.ckpt or flax_model.msgpack.", confidence=0.97),
    Signature(_FILES, "Can't load tokenizer for", "OSError: Can't load tokenizer for 'org/model'. If you were trying to load it from 'https://huggingface.co/models', make sure you don't have a local directory with the same name.", confidence=0.96),
    Signature(_FILES, "Can't load the configuration of", "OSError: Can't load the configuration of './nothing'. If you were trying to load it from 'https://huggingface.co/models'", confidence=0.95),
    Signature(_FILES, "Unrecognized model in", "ValueError: Unrecognized model in ./model. Should have a `model_type` key in its config.json", confidence=0.96),
    Signature(_FILES, "Error no file named", "OSError: Error no file named pytorch_model.bin, model.safetensors found in directory ./out.", confidence=0.96),
    Signature(_FILES, ".EntryNotFoundError", "huggingface_hub.errors.EntryNotFoundError: 404 Client Error. Entry Not Found for url: https://huggingface.co/org/m/resolve/main/tokenizer.model.", confidence=0.94),
    Signature(_NET, ("We couldn't connect to '", "to load"), "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.", confidence=0.97),
    Signature(_NET, "LocalEntryNotFoundError", "huggingface_hub.errors.LocalEntryNotFoundError: An error happened while trying to locate the file on the Hub and we cannot find the requested files in the local cache.", confidence=0.9),
    Signature(Category.CONFIG, "offline mode is enabled", "huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach https://huggingface.co/org/m/resolve/main/config.json: offline mode is enabled. To disable it, please unset the `HF_HUB_OFFLINE` environment variable.", confidence=0.98, variant=OFFLINE),
    Signature(_NET, "Temporary failure in name resolution", "socket.gaierror: [Errno -3] Temporary failure in name resolution", confidence=0.93),
    Signature(_NET, "Name or service not known", "socket.gaierror: [Errno -2] Name or service not known", confidence=0.9),
    Signature(_NET, "NameResolutionError", "urllib3.exceptions.NameResolutionError: <urllib3.connection.HTTPSConnection object at 0x7f3>: Failed to resolve 'huggingface.co'", confidence=0.95),
    Signature(_NET, "Read timed out", "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='huggingface.co', port=443): Read timed out. (read timeout=10)", confidence=0.92),
    Signature(_NET, "Max retries exceeded with url", "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /org/m/resolve/main/config.json", confidence=0.93),
    Signature(_NET, "Connection refused", "ConnectionRefusedError: [Errno 111] Connection refused", confidence=0.85, loose=True),
    Signature(_NET, "Network is unreachable", "OSError: [Errno 101] Network is unreachable", confidence=0.93),
    Signature(_NET, "No route to host", "OSError: [Errno 113] No route to host", confidence=0.9),
    Signature(_NET, "ConnectTimeout", "httpx.ConnectTimeout: [Errno 110] Connection timed out", confidence=0.93, loose=True),
    Signature(_NET, "IncompleteRead(", "urllib3.exceptions.IncompleteRead: IncompleteRead(1048576 bytes read, 8388608 more expected)", confidence=0.93),
    Signature(_NET, "RemoteDisconnected", "http.client.RemoteDisconnected: Remote end closed connection without response", confidence=0.92),
    Signature(_NET, " Server Error:", "requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: https://huggingface.co/api/models/org/m", confidence=0.93, pattern=re.compile(r"\b5\d\d Server Error:")),
    Signature(_NET, "EndpointConnectionError", "botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL: \"https://data.s3.amazonaws.com/\"", confidence=0.95),
    Signature(_NET, "SSLError", "requests.exceptions.SSLError: HTTPSConnectionPool(host='huggingface.co', port=443): SSL: UNEXPECTED_EOF_WHILE_READING", confidence=0.88),
    Signature(_NET, "ssl.SSLEOFError", "ssl.SSLEOFError: [SSL: UNEXPECTED_EOF_WHILE_READING] EOF occurred in violation of protocol (_ssl.c:1007)", confidence=0.92),
    Signature(_NET, "aiohttp.client_exceptions.", "aiohttp.client_exceptions.ServerDisconnectedError: Server disconnected", confidence=0.88),
    Signature(_NET, "<urlopen error", "urllib.error.URLError: <urlopen error [Errno 110] Connection timed out>", confidence=0.93),
    Signature(_NET, "('Connection aborted.'", "requests.exceptions.ConnectionError: ('Connection aborted.', ConnectionResetError(104, 'Connection reset by peer'))", confidence=0.93),
    Signature(_AUTH, ("wandb.errors.", "CommError", "permission denied"), "wandb.errors.CommError: Error communicating with wandb backend: permission denied", confidence=0.96),
    Signature(_NET, ("wandb.errors.", "CommError"), "wandb.errors.CommError: Run initialization has timed out after 90.0 sec.", confidence=0.93),
    Signature(Category.RATE_LIMIT, "429 Client Error", "huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co/api/datasets/org/d", confidence=0.98),
    Signature(Category.RATE_LIMIT, "Too Many Requests", "urllib.error.HTTPError: HTTP Error 429: Too Many Requests", confidence=0.96),
    Signature(Category.RATE_LIMIT, "(SlowDown)", "botocore.exceptions.ClientError: An error occurred (SlowDown) when calling the GetObject operation: Please reduce your request rate.", confidence=0.97),
    Signature(Category.PARTIAL_DOWNLOAD, "Consistency check failed: file should be of size", "OSError: Consistency check failed: file should be of size 4976698672 but has size 1310720000 ((…)model-00001-of-00004.safetensors).", confidence=0.98),
    Signature(Category.PARTIAL_DOWNLOAD, "NonMatchingChecksumError", "datasets.utils.info_utils.NonMatchingChecksumError: Checksums didn't match for dataset source files:", confidence=0.93),
    Signature(Category.PARTIAL_DOWNLOAD, "invalid hash value (expected", "RuntimeError: invalid hash value (expected \"f37072fd\", got \"a1b2c3d4\")", confidence=0.95),
    Signature(Category.ENV, "requires the following packages that were not found in your environment", "ImportError: This modeling file requires the following packages that were not found in your environment: flash_attn. Run `pip install flash_attn`", confidence=0.98),
    Signature(Category.CONFIG, "trust_remote_code=True", "ValueError: Loading org/model requires you to execute the configuration file in that repo on your local machine. Make sure you have read the code there to avoid malicious use, then set the option `trust_remote_code=True` to remove this error.", confidence=0.95, pattern=re.compile("to remove this error")),
    advice("Retrying in", "Retrying in 1s [Retry 1/5].", 0.6),
    advice("A new version of the following files was downloaded", "A new version of the following files was downloaded from https://huggingface.co/org/m:", 0.6),
)
