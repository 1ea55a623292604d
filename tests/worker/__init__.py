"""The worker: judged by what it leaves behind, whatever was done to it on its way."""
