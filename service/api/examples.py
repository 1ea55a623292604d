"""The examples of the OpenAPI document; a test sends every one of them to a real service and checks the answer."""

import base64
import hashlib
from typing import Any, Final

from ninfer_core.identity import canonical_digest

CONTENT: Final = "content of a first file\n"
_SHA256: Final = hashlib.sha256(CONTENT.encode())
CONTENT_DIGEST: Final = f"sha256:{_SHA256.hexdigest()}"
REPR_DIGEST: Final = f"sha-256=:{base64.b64encode(_SHA256.digest()).decode()}:"

CHECKPOINT_ID: Final = "019391a2b3c40000000000000000c0de"
JOB_ID: Final = "019391a2b3c500000000000000000001"  # a verification that waits
DONE_ID: Final = "019391a2b3c500000000000000000002"  # one that passed: its job and its run
CONVERSION_ID: Final = "019391a2b3c500000000000000000003"  # a conversion that is done, and its job
COMPARISON_ID: Final = "019391a2b3c500000000000000000004"  # a comparison that is done, and its job
SELFCHECK_ID: Final = "019391a2b3c500000000000000000005"  # a self-check that is done, and its job
SCHEME_CHECK_ID: Final = "019391a2b3c500000000000000000006"  # a check of a scheme that is done, and its job
IMPORT_ID: Final = "019391a2b3c500000000000000000009"  # an import that is done, and its job
UPLOAD_ID: Final = "019391a2b3c500000000000000000007"  # an upload of which nothing has come yet
OLD_UPLOAD_ID: Final = "019391a2b3c500000000000000000008"  # one that is to be given up
UPLOAD_CHECKSUM: Final = f"sha256 {base64.b64encode(_SHA256.digest()).decode()}"
UPLOAD_METADATA: Final = (
    f"filename {base64.b64encode(b'example.ninfer').decode()},"
    f"sha256 {base64.b64encode(_SHA256.hexdigest().encode()).decode()}"
)
TOKEN_ID: Final = "019391a2b3c60000000000000000a001"  # noqa: S105  what it is called by
TRUST_ID: Final = "019391a2b3c60000000000000000a002"
TOKEN: Final[dict[str, Any]] = {"name": "ci", "scopes": ["submit"], "expires_in_days": 90}
TRUST_GITHUB: Final[dict[str, Any]] = {
    "type": "github",
    "name": "releases of example",
    "audience": "https://gate.example",
    "repository": "example/example",
    "workflow_ref": "example/example/.github/workflows/release.yml@refs/heads/main",
    "environment": "release",
    "scopes": ["submit", "gate"],
}
TRUST_OIDC: Final[dict[str, Any]] = {
    "type": "oidc",
    "name": "pipelines of example",
    "issuer": "https://ci.example",
    "audience": "https://gate.example",
    "claims": {"project_path": "example/example", "ref": "main"},
    "scopes": ["submit"],
}
IDENTITY_SENT: Final[dict[str, Any]] = {"token": "eyJ...", "project": "default"}
CAMPAIGN_ID: Final = "019391a2b3c500000000000000000007"  # a campaign that runs

RECIPE: Final[dict[str, Any]] = {
    "schema": "ninfer-recipe/1",
    "identity": {"model_id": "example", "weights_id": "mixed"},
    "recipe_id": "example-mixed-v1",
    "sources": {
        "base": {
            "repository": "example/example",
            "revision": "1",
            "license": "Apache-2.0",
            "kind": "safetensors-file",
            "file": "model.safetensors",
        }
    },
    "rules": [
        {
            "object": "text/weight",
            "value": {"op": "tensor", "from": "base", "name": "weight", "shape": [6, 128], "dtype": "F32"},
            "format": "Q4G64_F16S",
            "encode": "MAXABS_F16_RECIP_RNE_V1",
        }
    ],
}
RECIPE_DIGEST: Final = canonical_digest(RECIPE)

TARGET: Final[dict[str, Any]] = {
    "schema": "ninfer-target/1",
    "identity": {"model_id": "example", "weights_id": "mixed"},
    "layouts": {"Q4G64_F16S": "row-split-k128-v1"},
    "objects": [{"tensor": "text/weight", "shape": [6, 128], "format": "Q4G64_F16S"}],
}
TARGET_DIGEST: Final = canonical_digest(TARGET)
IDENTITY: Final = f"sha256:{'1' * 64}"  # of the tensors that the run which is done has seen

FILES: Final = [{"name": "example.ninfer", "digest": CONTENT_DIGEST}]
ARTIFACT: Final[dict[str, Any]] = {"kind": "ninfer", "files": FILES}
CHECKPOINT: Final[dict[str, Any]] = {
    "files": [{"name": "model.safetensors", "digest": CONTENT_DIGEST}],
    "repository": "example/example",
    "revision": "main",
    "license": "Apache-2.0",
}
VERIFY: Final[dict[str, Any]] = {"type": "verify", "artifact": CONTENT_DIGEST, "checks": []}
VERIFY_PARITY: Final[dict[str, Any]] = {
    "type": "verify",
    "artifact": CONTENT_DIGEST,
    "checks": ["structure", "parity"],
    "checkpoints": {"base": CHECKPOINT_ID},
    "recipe": RECIPE_DIGEST,
}
CONVERT: Final[dict[str, Any]] = {
    "type": "convert",
    "checkpoints": {"base": CHECKPOINT_ID},
    "recipe": RECIPE,
    "output": {"revision": 3, "max_file_bytes": 4_000_000_000, "name": "example.ninfer"},
}
COMPARE: Final[dict[str, Any]] = {"type": "compare", "a": CONTENT_DIGEST, "b": CONTENT_DIGEST}
SELFCHECK: Final[dict[str, Any]] = {"type": "selfcheck", "device": "cpu", "level": "quick"}
IMPORT: Final[dict[str, Any]] = {"type": "import", "source": "/srv/imports/example.ninfer"}
PARTS: Final[dict[str, Any]] = {
    "bytes": len(CONTENT),
    "digest": CONTENT_DIGEST,
    "name": "example.ninfer",
}
SCHEME: Final[dict[str, Any]] = {
    "type": "scheme",
    "form": "gptq",
    "archive": {"digest": CONTENT_DIGEST, "prefix": "model.layers.0.mlp.up_proj."},
    "shape": [4096, 11008],
    "params": {"bits": 4, "group_size": 128},
}
CAMPAIGN: Final[dict[str, Any]] = {
    "name": "monthly",
    "query": {"format": "FP32", "not_verified_for_days": 30},
    "verify": {"checks": ["structure", "values"], "full": True},
}
CAMPAIGN_DRY_RUN: Final[dict[str, Any]] = {
    "name": "by an old tool",
    "query": {"kind": "ninfer", "older_than_days": 90},
    "dry_run": True,
}
STRUCT: Final[dict[str, Any]] = {
    "types": [
        {
            "array": {
                "element": {
                    "structure": [
                        {"name": "values", "type": {"array": {"element": "INT4", "dimension": 32}}},
                        {"name": "scale", "type": "FLOAT16"},
                    ]
                },
                "dimension": 10,
            }
        }
    ],
    "root": 0,
    "dims": [],
    "payload_bytes": 180,
}
