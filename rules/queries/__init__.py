"""Reading for pages, the API and commands. Nothing here writes."""
