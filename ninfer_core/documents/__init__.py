"""What recipes and targets share: closed JSON objects read with every fault named, templates, the canonical form."""
