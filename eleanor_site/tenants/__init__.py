"""People, tenants, roles and keys."""
