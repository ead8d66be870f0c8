"""What the conversation side tells whoever stands above it, without knowing them."""

from django.dispatch import Signal

# Sent inside the transaction that stored them. Arguments: tenant, versions (list of ChatVersion), records (their
# ChatRecords in the same order), job (the ImportJob, if there is one). What a receiver writes stands or falls with
# the chats.
versions_stored = Signal()

# Sent outside of any transaction when an import has read its file, or failed to. Arguments: tenant, job.
import_read = Signal()
