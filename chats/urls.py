from django.urls import path

from chats.views import chats, corpora, imports

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
]
