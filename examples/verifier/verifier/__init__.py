"""A second reader of Kedge's record, written from docs/record.md and without a line of Kedge."""
