"""The default rules in evaluation order (continuation.md section 12)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from rules.domain.context import Stage
from rules.domain.rule import ContinuationRule

Language = Literal["en", "fr"]


@dataclass(frozen=True, slots=True)
class RuleText:
    """A rule of the catalogue as it is written down: `expression` is the source of its predicate."""

    code: str
    title_en: str
    title_fr: str
    explanation_en: str
    explanation_fr: str
    stage: Stage
    max_nudges: int
    expression: str
    prompt_en: str
    prompt_fr: str

    def prompt(self, language: Language) -> str:
        return self.prompt_fr if language == "fr" else self.prompt_en


_RULES: Final[tuple[RuleText, ...]] = (
    RuleText(
        code="EAI-GOV-01",
        title_en="Truncated answer",
        title_fr="Réponse coupée",
        explanation_en="The answer was cut off by the length limit: every test of its text would be pointless.",
        explanation_fr="La réponse a été coupée par la limite de longueur : tout examen de son texte serait vain.",
        stage="final",
        max_nudges=2,
        expression='ctx.finish_reason == "length"',
        prompt_en=(
            "Your answer was cut off by the length limit. Go on from the exact point where it stopped, without "
            "repeating what is already there."
        ),
        prompt_fr=(
            "Votre réponse a été coupée par la limite de longueur. Reprenez exactement là où elle s'arrête, sans "
            "répéter ce qui précède."
        ),
    ),
    RuleText(
        code="EAI-GOV-02",
        title_en="Empty answer",
        title_fr="Réponse vide",
        explanation_en="The answer has no text, and neither the length limit nor a filter explains it.",
        explanation_fr="La réponse n'a pas de texte, sans que la limite de longueur ou un filtre l'explique.",
        stage="final",
        max_nudges=2,
        expression='ctx.final_text == "" && !(ctx.finish_reason in ["length", "tool_calls", "content_filter"])',
        prompt_en="Your last answer was empty. Answer the request, or say what keeps you from doing so.",
        prompt_fr="Votre dernière réponse était vide. Répondez à la demande, ou dites ce qui vous en empêche.",
    ),
    RuleText(
        code="EAI-GOV-03",
        title_en="Check failed",
        title_fr="Vérification en échec",
        explanation_en=(
            "Something was changed and the last check failed. Not said again to a model that declined to act."
        ),
        explanation_fr=(
            "Quelque chose a été modifié et la dernière vérification a échoué. N'est pas redit à un modèle qui "
            "n'a pas agi."
        ),
        stage="final",
        max_nudges=2,
        expression=(
            'ctx.tools_available && ctx.mutated && ctx.verify_failed && !(nudged("EAI-GOV-03") > 0 && '
            "ctx.tool_calls_since_user == 0)"
        ),
        prompt_en=(
            "The last check failed after your change. Fix the cause and run the check again; if you cannot, say "
            "plainly what still fails."
        ),
        prompt_fr=(
            "La dernière vérification a échoué après votre modification. Corrigez la cause et relancez-la ; "
            "sinon, dites clairement ce qui échoue encore."
        ),
    ),
    RuleText(
        code="EAI-GOV-04",
        title_en="Change not checked",
        title_fr="Modification non vérifiée",
        explanation_en="Something was changed and no check passed since, though a check was available.",
        explanation_fr=(
            "Quelque chose a été modifié et aucune vérification n'a réussi depuis, alors qu'une vérification "
            "était disponible."
        ),
        stage="final",
        max_nudges=2,
        expression=(
            "ctx.tools_available && ctx.mutated && !ctx.verified_after_mutation && !ctx.verify_failed && "
            '!(nudged("EAI-GOV-04") > 0 && ctx.tool_calls_since_user == 0)'
        ),
        prompt_en=(
            "You changed something and did not check it afterwards. Run the check that fits the change, then "
            "give your answer with its result."
        ),
        prompt_fr=(
            "Vous avez modifié quelque chose sans le vérifier ensuite. Lancez la vérification adaptée, puis "
            "répondez en donnant son résultat."
        ),
    ),
    RuleText(
        code="EAI-GOV-05",
        title_en="Delivery without action",
        title_fr="Livraison sans action",
        explanation_en="The task has to be carried out with tools, and no tool was called.",
        explanation_fr="La tâche doit être exécutée avec des outils, et aucun n'a été appelé.",
        stage="final",
        max_nudges=2,
        expression="ctx.require_delivery && ctx.tools_available && ctx.tool_calls_total == 0",
        prompt_en=(
            "This task must be carried out with the tools, not only described. Use the tool that does it now, or "
            "say why it cannot be done."
        ),
        prompt_fr=(
            "Cette tâche doit être exécutée avec les outils, pas seulement décrite. Utilisez maintenant l'outil "
            "qui convient, ou dites pourquoi c'est impossible."
        ),
    ),
    RuleText(
        code="EAI-GOV-06",
        title_en="Approval not acted on",
        title_fr="Accord non suivi d'effet",
        explanation_en="The user agreed, and the model answered without acting or asking.",
        explanation_fr="L'utilisateur a donné son accord, et le modèle a répondu sans agir ni poser de question.",
        stage="final",
        max_nudges=1,
        expression=(
            "ctx.tools_available && ctx.tool_calls_total == 0 && is_go_ahead(ctx.user_text) && "
            "!asks_user(ctx.final_text)"
        ),
        prompt_en=(
            "The user has agreed. Carry out what was agreed now, using the tools; if nothing is left to carry "
            "out, say so in one sentence."
        ),
        prompt_fr=(
            "L'utilisateur a donné son accord. Exécutez maintenant ce qui a été convenu, avec les outils ; s'il "
            "n'y a rien à exécuter, dites-le en une phrase."
        ),
    ),
    RuleText(
        code="EAI-GOV-07",
        title_en="Announced, not done",
        title_fr="Annoncé, pas fait",
        explanation_en="The last paragraph announces an action that did not follow.",
        explanation_fr="Le dernier paragraphe annonce une action qui n'a pas suivi.",
        stage="final",
        max_nudges=2,
        expression=(
            'ctx.tools_available && ctx.finish_reason != "tool_calls" && '
            "announces_action(last_paragraph(ctx.final_text)) && !asks_user(ctx.final_text) && "
            '!(nudged("EAI-GOV-07") > 0 && ctx.tool_calls_since_user == 0)'
        ),
        prompt_en=(
            "You said what you are about to do but did not do it. Do it now with a tool call, or correct the "
            "sentence if no action is needed."
        ),
        prompt_fr=(
            "Vous avez annoncé une action sans la faire. Faites-la maintenant par un appel d'outil, ou corrigez "
            "la phrase si aucune action n'est nécessaire."
        ),
    ),
    RuleText(
        code="EAI-GOV-08",
        title_en="Work left",
        title_fr="Travail restant",
        explanation_en="The answer of a working model lists work that is left. The weakest guess, so it comes last.",
        explanation_fr=(
            "La réponse d'un modèle qui travaillait liste du travail restant. L'indice le plus faible, donc en dernier."
        ),
        stage="final",
        max_nudges=2,
        expression=(
            "ctx.tools_available && ctx.tool_calls_since_user > 0 && !ctx.budget_low && "
            "lists_remaining_work(ctx.final_text) && !asks_user(ctx.final_text)"
        ),
        prompt_en=(
            "You listed work that is left. Go on with the parts the user asked for; if the rest is for the user "
            "to decide, say so and stop."
        ),
        prompt_fr=(
            "Vous avez listé du travail restant. Poursuivez ce que l'utilisateur a demandé ; si la suite dépend "
            "de lui, dites-le et arrêtez-vous."
        ),
    ),
    RuleText(
        code="EAI-GOV-09",
        title_en="No progress",
        title_fr="Aucun progrès",
        explanation_en="The same calls three times in a row: a loop wastes the steps that are left.",
        explanation_fr="Trois fois de suite les mêmes appels : une boucle gaspille les étapes restantes.",
        stage="round",
        max_nudges=2,
        expression="ctx.no_progress_rounds >= 2",
        prompt_en=(
            "You have made the same calls several times in a row. Use what you already have, or try a different "
            "way; do not repeat them."
        ),
        prompt_fr=(
            "Vous avez répété les mêmes appels plusieurs fois de suite. Servez-vous de ce que vous avez déjà ou "
            "essayez autrement, sans les répéter."
        ),
    ),
    RuleText(
        code="EAI-GOV-10",
        title_en="Step budget low",
        title_fr="Budget d'étapes presque épuisé",
        explanation_en="At most two steps of the budget are left.",
        explanation_fr="Il reste au plus deux étapes du budget.",
        stage="round",
        max_nudges=1,
        expression="ctx.budget_low",
        prompt_en=(
            "Only a few steps are left. Finish the most useful part, then answer with what is done and what is not."
        ),
        prompt_fr=(
            "Il ne reste que quelques étapes. Terminez le plus utile, puis répondez en disant ce qui est fait et "
            "ce qui ne l'est pas."
        ),
    ),
    RuleText(
        code="EAI-GOV-11",
        title_en="Long exploration",
        title_fr="Exploration prolongée",
        explanation_en="Several rounds in a row only read; an audit may read twice as long.",
        explanation_fr="Plusieurs tours de suite n'ont fait que lire ; un audit peut lire deux fois plus longtemps.",
        stage="round",
        max_nudges=1,
        expression="ctx.read_only_rounds >= (ctx.audit_mode ? 8 : 4)",
        prompt_en=(
            "You have been reading for several rounds. Say what you have found and act on it, or name the one "
            "thing you still need to read."
        ),
        prompt_fr=(
            "Vous lisez depuis plusieurs tours. Dites ce que vous avez trouvé et agissez, ou nommez la seule "
            "chose qu'il vous reste à lire."
        ),
    ),
)


def default_rule_texts() -> tuple[RuleText, ...]:
    """The catalogue as it is written down, in evaluation order."""
    return _RULES


def default_rules(language: Language = "en") -> list[ContinuationRule]:
    """The default rules in evaluation order, with their prompts in one language and their predicates compiled."""
    from rules.domain.language import check
    from rules.domain.scalar import compile_scalar

    rules = []
    for text in _RULES:
        tree = check(text.expression, stage=text.stage).tree
        if tree is None:
            raise ValueError(f"the predicate of {text.code} has an error")
        rules.append(
            ContinuationRule(text.code, text.max_nudges, compile_scalar(tree), text.prompt(language), text.stage)
        )
    return rules


def default_prompts() -> list[tuple[str, str]]:
    """Pairs of prompt and code in both languages, by which recorded nudges are recognised."""
    return [(prompt, text.code) for text in _RULES for prompt in (text.prompt_en, text.prompt_fr)]
