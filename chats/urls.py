from django.urls import path

from chats.views import chats, corpora, imports, previews, removal, wrapper_editor, wrapper_versions, wrappers

app_name = "chats"
urlpatterns = [
    path("chats/", chats.chat_list, name="list"),
    path("chats/export", chats.export, name="export"),
    path("chats/searches/", chats.search_list, name="searches"),
    path("chats/searches/save", chats.keep_search, name="save_search"),
    path("chats/searches/<int:search>/delete", chats.drop_search, name="delete_search"),
    path("chats/corpora/", corpora.corpus_list, name="corpora"),
    path("chats/corpora/freeze", corpora.freeze_corpus, name="freeze"),
    path("chats/corpora/<int:corpus>/", corpora.corpus_page, name="corpus"),
    path("chats/corpora/<int:corpus>/export", corpora.corpus_export, name="export_corpus"),
    path("chats/import", imports.import_page, name="import"),
    path("chats/import/<int:job>/", imports.import_job, name="import_job"),
    path("chats/import/<int:job>/retry", imports.retry_import, name="retry_import"),
    path("chats/import/<int:job>/delete", removal.delete_import_page, name="delete_import"),
    path("chats/<int:chat>/delete", removal.delete_chat_page, name="delete_chat"),
    path("settings/retention", removal.retention_page, name="retention"),
    path("wrappers/", wrappers.wrapper_list, name="wrappers"),
    path("wrappers/new", wrappers.new_wrapper, name="new_wrapper"),
    path("wrappers/which", wrappers.which, name="which_wrapper"),
    path("wrappers/preview", previews.wrapper_previews, name="wrapper_previews"),
    path("wrappers/<str:slug>/", wrappers.wrapper_page, name="wrapper"),
    path("wrappers/<str:slug>/edit", wrapper_editor.edit_wrapper, name="edit_wrapper"),
    path("wrappers/<str:slug>/check", wrapper_editor.check_wrapper, name="check_wrapper"),
    path("wrappers/<str:slug>/lint", wrapper_editor.lint_wrapper, name="lint_wrapper"),
    path("wrappers/<str:slug>/archive", wrappers.archive_wrapper, name="archive_wrapper"),
    path("wrappers/<str:slug>/discard", wrappers.discard_wrapper_draft, name="discard_wrapper"),
    path("wrappers/<str:slug>/versions/", wrapper_versions.wrapper_versions, name="wrapper_versions"),
    path("wrappers/<str:slug>/versions/make", wrapper_versions.make_wrapper_version, name="make_wrapper_version"),
    path("wrappers/<str:slug>/versions/compare", wrapper_versions.compare_wrapper_versions, name="compare_wrapper"),
    path("wrappers/<str:slug>/versions/<int:number>/", wrapper_versions.wrapper_version, name="wrapper_version"),
    path(
        "wrappers/<str:slug>/versions/<int:number>/roll-back",
        wrapper_versions.roll_back_wrapper,
        name="roll_back_wrapper",
    ),
]
