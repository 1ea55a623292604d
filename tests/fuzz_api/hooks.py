"""What schemathesis has to be told; it loads this file into the environment of its own."""

import schemathesis

schemathesis.serializer.alias(
    "application/offset+octet-stream", "application/octet-stream"
)  # the bodies of tus
