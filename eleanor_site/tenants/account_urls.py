from django.urls import path

from eleanor_site.tenants import views

app_name = "account"
urlpatterns = [
    path("", views.account, name="account"),
    path("sign-in", views.sign_in, name="sign_in"),
    path("sign-out", views.sign_out, name="sign_out"),
    path("language", views.language, name="language"),
    path("theme", views.theme, name="theme"),
]
