"""What a job does, in steps: each may be done twice, also at the same time by two workers, and leaves the same rows."""
