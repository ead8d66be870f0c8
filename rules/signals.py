"""What others may want to hear about rules. Sent inside the transaction of the change; act on commit."""

from django.dispatch import Signal

# Arguments: tenant, release.
release_published = Signal()
# Arguments: tenant, rule, gates (those that failed; rules.queries.gates.Gate). Sent outside of any change.
gate_failed = Signal()
