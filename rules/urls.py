from django.urls import path

from rules.views import chats, editor, nudges, releases, replays, rule_effect, rule_tests, rules, tools

app_name = "rules"
urlpatterns = [
    path("rules/", rules.rule_list, name="list"),
    path("rules/new", editor.new_rule, name="new"),
    path("rules/order", rules.order, name="order"),
    path("rules/catalogue", rules.catalogue_page, name="catalogue"),
    path("rules/catalogue/install", rules.install, name="install"),
    path("rules/check/expression", editor.check_expression, name="check_expression"),
    path("rules/check/effect", rule_effect.effect_of_typed, name="effect_of_typed"),
    path("rules/check/code", editor.check_code, name="check_code"),
    path("rules/check/completions", editor.completions, name="completions"),
    path("rules/<str:code>/", rules.rule_page, name="rule"),
    path("rules/<str:code>/edit", editor.edit_rule, name="edit"),
    path("rules/<str:code>/effect", rule_effect.rule_effect, name="effect"),
    path("rules/<str:code>/tests", rule_tests.change_tests, name="tests"),
    path("rules/<str:code>/restore", editor.restore_revision, name="restore_revision"),
    path("rules/<str:code>/publish", releases.publish, name="publish"),
    path("rules/<str:code>/mode", rules.change_mode, name="mode"),
    path("rules/<str:code>/archive", rules.archive_rule, name="archive"),
    path("rules/<str:code>/discard", editor.discard_draft, name="discard"),
    path("releases/", releases.release_list, name="releases"),
    path("releases/<int:number>/", releases.release_page, name="release"),
    path("releases/<int:number>/roll-back", releases.roll_back, name="roll_back"),
    path("tools/", tools.tool_page, name="tools"),
    path("tools/save", tools.save_tool, name="save_tool"),
    path("replays/", replays.replay_list, name="replays"),
    path("replays/new", replays.new_replay, name="new_replay"),
    path("replays/<int:replay>/", replays.replay_page, name="replay"),
    path("replays/<int:replay>/stop", replays.stop_replay, name="stop_replay"),
    path("replays/<int:replay>/resume", replays.resume_replay, name="resume_replay"),
    path("chats/<int:chat>/", chats.chat_page, name="chat"),
    path("nudges/", nudges.nudge_list, name="nudges"),
    path("nudges/rules", nudges.nudge_statistics, name="nudge_statistics"),
    path("nudges/export", nudges.nudge_export, name="nudge_export"),
]
