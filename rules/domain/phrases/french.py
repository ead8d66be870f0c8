"""Pieces of French grammar that several patterns need, folded."""

from typing import Final

# Not every word in -re is a verb ("votre", "heure"), so only the endings of verbs are listed.
INFINITIVE: Final = r"[a-z]*(?:[a-z]er|[a-z]ir|dre|ttre|aitre|oitre|etre|ire|ivre|mpre|clure|ncre)\b"
PRONOUN: Final = r"(?:(?:le|la|les|lui|leur|y|en|se|me|te|nous|vous|tout) |[lsmt]')"
NOT_A_VERB: Final = (
    r"\b(?:ordre|cadre|moindre|hier|hiver|dernier|premier|papier|atelier|quartier|histoire|memoire|affaire|avenir"
    r"|loisir"
    r"|plaisir|soir|noir|air|cher|fer|mer|ligne)\z"
)
