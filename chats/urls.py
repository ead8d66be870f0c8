from django.urls import path

from chats.views import chats, imports

app_name = "chats"
urlpatterns = [
    path("chats/", chats.chat_list, name="list"),
    path("chats/import", imports.import_page, name="import"),
    path("chats/import/<int:job>/", imports.import_job, name="import_job"),
    path("chats/import/<int:job>/retry", imports.retry_import, name="retry_import"),
]
