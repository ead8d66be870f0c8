"""What the conversation side tells whoever stands above it, without knowing them."""

from django.dispatch import Signal

# Sent inside the transaction that stored them. Arguments: tenant, versions (list of ChatVersion), records (their
# ChatRecords in the same order). What a receiver writes stands or falls with the chats.
versions_stored = Signal()
