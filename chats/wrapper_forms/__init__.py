"""The editor's form: flat names and texts, as a browser posts them, and what they stand for.

A settings value and its form say the same: `settings.encoded` of a value, posted by a browser, is read by
`settings.decoded` as an equal value. Nothing here touches the database.
"""
