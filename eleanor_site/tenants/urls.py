from django.urls import path

from eleanor_site.tenants import key_pages, views

app_name = "tenants"
urlpatterns = [
    path("settings/", views.settings_page, name="settings"),
    path("settings/general", views.change_general, name="general"),
    path("settings/members", views.add_member, name="add_member"),
    path("settings/members/<int:member>", views.change_member, name="change_member"),
    path("settings/keys/", key_pages.keys_page, name="keys"),
    path("settings/keys/<int:key>/revoke", key_pages.revoke_key, name="revoke_key"),
]
