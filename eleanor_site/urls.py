"""All addresses (product.md section 4)."""

from django.urls import include, path

from eleanor_site import health
from eleanor_site.api import api
from eleanor_site.tenants import views as people
from rules.views import overview

urlpatterns = [
    path("", people.start, name="start"),
    path("account/", include("eleanor_site.tenants.account_urls")),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
    path("api/v1/", api.urls),
    path("help/", overview.help_page, name="help"),
    path("t/<str:tenant>/", overview.overview, name="overview"),
    path("t/<str:tenant>/", include("eleanor_site.tenants.urls")),
    path("t/<str:tenant>/settings/webhooks/", include("eleanor_site.webhooks.urls")),
    path("t/<str:tenant>/changes/", include("eleanor_site.audit.urls")),
    path("t/<str:tenant>/", include("chats.urls")),
    path("t/<str:tenant>/", include("rules.urls")),
]

handler400 = "eleanor_site.errors.bad_request"
handler403 = "eleanor_site.errors.permission_denied"
handler404 = "eleanor_site.errors.page_not_found"
handler500 = "eleanor_site.errors.server_error"
