from django.urls import path

from eleanor_site.audit import views

app_name = "audit"
urlpatterns = [
    path("", views.changes, name="changes"),
    path("export", views.export, name="export"),
    path("<int:number>/", views.change, name="change"),
]
