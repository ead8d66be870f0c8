"""What the conversation side tells whoever stands above it, without knowing them."""

from django.dispatch import Signal

# Sent inside the transaction that stored them. Arguments: tenant, versions (list of ChatVersion), records (their
# ChatRecords in the same order), job (the ImportJob, if there is one). What a receiver writes stands or falls with
# the chats.
versions_stored = Signal()

# Sent inside the transaction that deletes them, before it does. Arguments: tenant, versions and chats (frozensets of
# ids; chats are those that go whole), successors (the version that takes the place of a redacted one, by id),
# keep_counts (what is counted stays, without saying which chat it was).
versions_removing = Signal()

# Sent outside of any transaction when an import has read its file, or failed to. Arguments: tenant, job.
import_read = Signal()
