"""French as printers set it: a narrow no-break space between thousands."""

DATETIME_FORMAT = "j F Y à H:i"
THOUSAND_SEPARATOR = "\u202f"
