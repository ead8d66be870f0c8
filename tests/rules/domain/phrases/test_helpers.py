"""What the text helpers say of phrases that the worked cases do not hold, one for each alternative of the prose."""

import pytest

from rules.domain.phrases import (
    announces_action,
    asks_user,
    find_announces_action,
    find_asks_user,
    find_is_go_ahead,
    find_last_paragraph,
    find_lists_remaining_work,
    helper_results,
    is_go_ahead,
    last_paragraph,
    lists_remaining_work,
)

APPROVED = """
Yes!|yep|Sure, thanks|go for it!|please do|Please go ahead and do it|c’est bon|C'EST PARTI !|allons-y|on y va
Oui, merci
très bien, vas-y|Parfait, continuez s'il vous plaît|ça me va|tout à fait|feu vert|k|👍 yes|ok 👌🏽|«oui»|**ok**|ok…
(yes)
yes - go ahead|yes — go ahead|d´accord|d`accord|j'approuve|exécute-le|✔️ ok|o\u200bk|ok\u00ad|ＯＫ|oui\u202f!
ship it 🚀
"""
NOT_APPROVED = """
ok but|yes?|ok ？|no thanks|d'accord ?|non|pas encore|super|parfait|perfect, thanks|continue with the file|ok 1|1
yes sir
oui mais non|stop|go back|don't proceed|not approved|so|well|resume|...|?|!!|please now|y/n|merci beaucoup
"""
LEFT = """
The next step is to run the linter.|Next-steps: deploy|Follow-up tasks: docs|follow up work is listed
Outstanding issues: two.
There are leftover bugs in the parser.|A pending action item is the changelog.|Two issues still remain.
Three tasks remain.
What is left: docs|What's remaining: docs|What’s still missing: tests|Here is what still remains.
It remains to be tested.
**Remaining:** docs|### Remaining:|She still has to write docs.|Still to be done: docs|Still to come: docs
still to fix: x
A fix is still needed.|There is a lot left to implement.|It has not yet been implemented.|isn't yet finished|TODO
# TODO
It is yet to be written.|* [ ] printer|1. [ ] printer|Prochaine étape : déployer.|Étapes suivantes :
Le travail restant suit.
Il nous reste à déployer.|Il restera à écrire la doc.|Il resterait à écrire la doc.|Il ne reste plus qu'à les tester.
Il reste à l'écrire.|Il reste une tâche.|Il reste du travail.|Il ne reste que deux fichiers.|Il reste des cas limites.
Il nous reste :|Deux fichiers restent à migrer.|La doc reste à écrire.|Voici ce qu'il reste :
La doc n'est pas encore faite.
Les tests n'ont pas encore été migrés.|Encore à faire : la doc|- À faire : doc|A FAIRE :
I will fix the remaining issues.
I have not finished the remaining work.|No tests were skipped; two files left to migrate.|_Next steps_: deploy
Ｎｅｘｔ ｓｔｅｐｓ: x
"""
NOT_LEFT = """
There are no remaining tasks.|There aren't any remaining issues.|Nothing left to do.|There is nothing left to fix.
No work remains.|Zero remaining failures.|0 remaining issues.|I completed the remaining tasks.|It remains to be seen.
I've resolved all outstanding issues.|The remaining work is done.|Remaining issues have all been resolved.
Next steps: none
Outstanding issues: nothing|Tâches restantes : aucune.|Il reste : rien|I'll walk you through the next steps.
We will inform you of the next steps.|Let's proceed with the next steps.|Good luck with your next steps.
Nous vous informerons des prochaines étapes.|Je vous accompagne dans les prochaines étapes.|The next step is to submit.
The next step would be to conclude.|Il reste possible de tester.|Rien ne reste à faire.|Il n'y a plus rien à faire.
Il ne reste aucun test à écrire.|Il ne reste plus de tâches.|Tous les tests restants ont été corrigés.
Je reste à votre écoute.
Il reste à votre disposition.|Quelles sont les prochaines étapes ?|The file remains unchanged.|Il reste trois jours.
J'ai terminé les tâches restantes.|Le travail restant est terminé.|- [x] all done|The heading “Next steps” was removed.
Your order is still pending.|Remaining seats: 4|Is anything still missing?|``TODO: `x` `` was removed.
"""
ANNOUNCED = """
I shall restart it.|I am now going to fix it.|I'm about to push the change.|Let me now check.
I'll quickly grep the code.
I will start by reading the config.|I'll proceed to build the image.|I will finish the parser.|I will end the process.
Je vais d'abord lire le fichier.|Je vais le corriger.|Je vais en créer un.|Je vais vous envoyer le fichier.
Je m'apprête à modifier le fichier.|Laissez-moi vérifier.|Je suis sur le point d'envoyer le mail.
Je lance maintenant la suite.
Je commence par lire le fichier.|Je m'attaque au bug.|Je procède tout de suite aux tests.
Je vais tout simplement le supprimer.
I'll explain later. I'll run it now.|I will _carefully_ edit the file.|**I will fix it.**
I will not just fix it but test it.
I will be brief, and then I'll run the tests.|I’m going to ｆｉｘ it.|Je vais immédiatement corriger cela.
"""
NOT_ANNOUNCED = """
I'll no longer use it.|I will refrain from that.|I will avoid changing it.|I am not going to change it.
Je vais plus y toucher.
Je vais rien changer.|Let me summarise.|Let me summarize.|Let me put it this way.|I'll be glad to.
Let me walk you through it.
Let me break this down.|I'll give you an overview.|I will have to leave.|I'll keep it in mind.|I'll do my best.
I'll gladly do so.
I'll provide you with it.|I'll wrap up.|I'll end the session.|I'll stop here.|I'll finish up.
I will start by explaining it.
Je vais vous rappeler le contexte.|Je vais être bref.|Je vais avoir besoin de votre numéro.|Je vais très bien.
Je vais à Paris.
Je vais chez le médecin.|Je vais en France.|Je vais le laisser tel quel.|Laissez-moi vous expliquer.
Laisse-moi le temps.
Je commence par expliquer le contexte.|Je m'en occupe pas.|When you approve, I will deploy.
Unless you object, I will deploy.
Should you agree, I will deploy.|Please provide the ID and I'll cancel it.|With your permission, I will delete it.
Une fois votre accord reçu, je vais lancer.|Merci de confirmer, je vais ensuite lancer.|We will run it.|I fixed it.
I will now.
Je vérifie l'analyseur.|Il va corriger.
"""
ASKED = """
Which one (a or b)?|Ready? 😊|**Shall I go on?**|Please share the log.|Please reply with yes.
Let me know what you prefer.
Merci de fournir le numéro.|Veuillez me confirmer la date.|Dis-moi quoi faire.|Confirmez que c'est bon.
Should I proceed?!
Which one?\u20281. a\u20282. b|Please confirm the details below:\u2028- a\u2028- b
"""
NOT_ASKED = """
Done.|Anything else?|Do you need further assistance?|Any questions?|Feel free to ask!|Need help?|Autre chose ?
Besoin d'aide ?
N'hésite pas.|`Which one?`|> Which one?|He asked "which one?" twice.|Please note that it works.
Let me know if you need help.
"""


def phrases(table):
    return [phrase for line in table.strip().split("\n") for phrase in line.split("|")]


@pytest.mark.parametrize("text", phrases(APPROVED))
def test_an_approval(text):
    assert is_go_ahead(text)
    assert find_is_go_ahead(text)


@pytest.mark.parametrize("text", phrases(NOT_APPROVED))
def test_no_approval(text):
    assert not is_go_ahead(text)
    assert find_is_go_ahead(text) == []


@pytest.mark.parametrize("text", phrases(LEFT))
def test_work_is_left(text):
    assert lists_remaining_work(text)
    assert find_lists_remaining_work(text)


@pytest.mark.parametrize("text", phrases(NOT_LEFT))
def test_no_work_is_left(text):
    assert not lists_remaining_work(text)
    assert find_lists_remaining_work(text) == []


@pytest.mark.parametrize("text", phrases(ANNOUNCED))
def test_an_announcement(text):
    assert announces_action(text)
    assert find_announces_action(text)


@pytest.mark.parametrize("text", phrases(NOT_ANNOUNCED))
def test_no_announcement(text):
    assert not announces_action(text)
    assert find_announces_action(text) == []


@pytest.mark.parametrize("text", phrases(ASKED))
def test_a_request_to_the_user(text):
    assert asks_user(text)
    assert find_asks_user(text)


@pytest.mark.parametrize("text", phrases(NOT_ASKED))
def test_no_request_to_the_user(text):
    assert not asks_user(text)
    assert find_asks_user(text) == []


@pytest.mark.parametrize(
    "text", ["## Next steps\n\nNone.", "Remaining tasks:\n- none", "~~~\nTODO: x\n~~~\nok", "```\nTODO"]
)
def test_nothing_is_left_below_an_empty_heading_or_in_code(text):
    assert not lists_remaining_work(text)


@pytest.mark.parametrize(
    ("text", "paragraph"),
    [
        ("Fixed.\r\n\r\nI will deploy.\r\n", "I will deploy."),
        ("I will deploy.\n\nAny questions?\n\nFeel free to ask.", "I will deploy."),
        ("Any questions?\n\nFeel free to ask.", "Feel free to ask."),
        ("I will do this:\n\n```\na\n\nb\n```\n\nLet me know if you need anything else.", ""),
        ("I will do this:\n```\na\n\nb\n```\nDone.", "I will do this:\n```\na\n\nb\n```\nDone."),
        ("I will do this:\n~~~\nunclosed\n\nstill code", ""),
        (" \n\t\n", ""),
        (None, ""),
    ],
)
def test_last_paragraph(text, paragraph):
    assert last_paragraph(text) == paragraph


def test_places_are_those_of_the_text_as_it_was_given():
    text = "🙂 Fait. **Il re\u0301ste a\u0300 e\u0301crire** la doc."
    [(start, end)] = find_lists_remaining_work(text)
    assert text[start:end] == "Il re\u0301ste a\u0300 e\u0301crire"


def test_places_of_approvals_leave_fillers_out():
    text = "Merci, vas‑y et continue !"
    assert [text[start:end] for start, end in find_is_go_ahead(text)] == ["vas‑y", "continue"]


def test_places_of_announcements_and_requests():
    text = 'He said "I will". I’ll  now run it. Which branch? 🙂'
    assert [text[start:end] for start, end in find_announces_action(text)] == ["I’ll  now run"]
    assert [text[start:end] for start, end in find_asks_user(text)] == ["Which branch?"]


def test_place_of_the_last_paragraph():
    text = "A.\n\n  B.  \n\nAny questions?"
    assert find_last_paragraph(text) == (4, 8)


def test_all_helpers_at_once():
    found = helper_results("Next steps: docs.\n\nI will write them. Which format?")
    assert (found.is_go_ahead, found.lists_remaining_work, found.announces_action, found.asks_user) == (
        False,
        True,
        True,
        True,
    )
    assert found.last_paragraph == "I will write them. Which format?"
