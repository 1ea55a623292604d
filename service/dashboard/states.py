"""The states of jobs and runs as a page shows them: a word, a colour class and a shape of its own each."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class State:
    """`tone` is the class that colours it; `shape` names the drawing, so that colour is never alone."""

    word: str
    tone: str
    shape: str
    says: str


STATES: Final = {
    "passed": State(
        "passed", "passed", "disc", "Everything that was asked was checked, and nothing wrong was found."
    ),
    "passed_sampled": State(
        "passed on a sample", "incomplete", "ring", "Nothing wrong was found, but only a sample was compared."
    ),
    "passed_reused": State(
        "passed, reused",
        "running",
        "ring",
        "Nothing wrong is known; results were taken over from earlier runs.",
    ),
    "sampled": State(
        "sampled", "incomplete", "ring", "It passed, but of some objects only a sample was read."
    ),
    "reused": State(
        "reused", "running", "ring", "It passed in earlier runs; nothing of it was read by this one."
    ),
    "failed": State("failed", "failed", "octagon", "Something is wrong with it."),
    "incomplete": State(
        "incomplete", "incomplete", "half", "Not everything that was asked could be checked."
    ),
    "error": State("error", "error", "triangle", "No check could run."),
    "cancelled": State("cancelled", "quiet", "slashed", "It was stopped before it was done."),
    "queued": State("queued", "quiet", "dots", "It waits for a worker."),
    "running": State("running", "running", "arc", "A worker is at it."),
    "not_checked": State("not checked", "incomplete", "half", "It could not be checked, or not wholly."),
    "partly": State("partly", "incomplete", "half", "Some of it was checked."),
    "not_asked": State("not asked", "quiet", "dash", "Nobody asked for it."),
    "asked": State("asked for", "quiet", "dots", "Its answer comes with the verdict."),
    "never": State("never verified", "quiet", "dash", "No run has looked at it."),
    "written": State("written", "passed", "disc", "The artifact was written."),
    "identical": State("identical", "passed", "disc", "The content of both is the same."),
    "different": State("different", "incomplete", "half", "The content of the two differs."),
    "kernel_error": State("no answer", "error", "triangle", "The kernel broke instead of answering."),
    "expired": State("no longer current", "quiet", "dash", "Kernels or the device have changed since."),
    "receiving": State("receiving", "running", "arc", "Its bytes are coming in."),
    "storing": State("storing", "running", "arc", "All its bytes are here and are being put in place."),
    "stored": State("stored", "passed", "disc", "It is content of the project."),
    "alive": State("alive", "passed", "disc", "It was heard of just now."),
    "draining": State("draining", "incomplete", "half", "It begins nothing any more and ends soon."),
    "silent": State(
        "silent", "failed", "octagon", "Nothing was heard of it for long: its work is handed on."
    ),
    "done": State("done", "passed", "disc", "Every artifact that was found had its turn."),
    "refused": State("refused", "failed", "octagon", "Nothing was written."),
}
