from django.urls import path

app_name = "chats"
urlpatterns: list = []
