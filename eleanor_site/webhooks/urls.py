from django.urls import path

from eleanor_site.webhooks import views

app_name = "webhooks"
urlpatterns = [
    path("", views.webhook_list, name="list"),
    path("<int:webhook>/", views.webhook_page, name="webhook"),
    path("<int:webhook>/action", views.webhook_action, name="action"),
    path("deliveries/<int:delivery>/again", views.send_again, name="again"),
]
