"""Forms of the deciding side: what people type, checked before a service sees it."""
