"""What can be done: each verb checks, writes and records in one transaction."""
