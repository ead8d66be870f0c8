"""The change log: who changed what, append only and chained."""
