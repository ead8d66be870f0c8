"""The worker pool: same texts as in process, and nothing that a template does reaches beyond its worker."""

import os
import signal
import threading

import pytest

from chats.domain.chat_templates import CACHED_TEMPLATES, Rendered, RenderRequest, TemplateFailure, render, variables
from chats.domain.chat_templates.lint import lint
from chats.template_pool import Limits, TemplatePool, shared_pool
from chats.template_pool.worker import CpuBound
from tests.golden.templates import cases, difference
from tests.shared_data import SHARED, needs_shared

LIST = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
HELLO = [{"role": "user", "content": "Hello"}]
ENDLESS = "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}"
# Short, so that the tests of limits are; CPU time doesn't run while other programs do.
QUICK = Limits(cpu_seconds=0.2, wall_seconds=1.0)


@pytest.fixture(scope="module")
def pool():
    with TemplatePool(limits=QUICK) as made:
        yield made


def limit_of(outcome):
    assert isinstance(outcome, TemplateFailure), outcome
    return outcome.limit


@needs_shared
@pytest.mark.parametrize("profile", ["current", "classic"])
def test_recorded_results_pass_through_the_pool(profile):
    with TemplatePool() as patient:
        # Every eleventh: all templates, and other chats with each. The whole is `-m tests.golden templates`.
        for name, request, expected in list(cases(SHARED / "peers" / "chat-templates", profile))[::11]:
            assert difference(patient.render_request(request), expected) is None, name


def test_everything_of_a_result_comes_back(pool):
    request = RenderRequest(
        LIST + "{% generation %}x{% endgeneration %}{{ tools }}{{ bos_token }}",
        [{"role": "user", "content": "\ud83d\ude00 \ud800 \x00"}],
        tools=[],
        tokens={"bos_token": "<s>"},
        provenance=True,
    )
    assert pool.render_request(request) == render(request)


def test_failures_come_back_whole(pool):
    failure = pool.render(template="a\n{{ messages[0].x.y }}", messages=HELLO)
    assert (failure.kind, failure.error_class, failure.line) == ("error", "UndefinedError", 2)
    assert pool.check("{% if %}").kind == "syntax"
    assert pool.check(LIST) is None


def test_variables_and_lint_come_back_as_in_process(pool):
    template = "{% if enable_thinking %}{% endif %}" + LIST
    assert pool.variables(template) == variables(template)
    assert pool.variables("{% if %}").kind == "syntax"
    assert pool.lint(template, {"bos_token": "<s>"}, ["typo"]) == lint(template, {"bos_token": "<s>"}, ["typo"])


@pytest.mark.parametrize(
    ("template", "limit"),
    [
        (ENDLESS, "time"),
        ("{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}", "time"),
        ("{{ strftime_now('%c' * 10000000) }}", "time"),
        ("{{ 'a' * 10**10 }}", "memory"),
        ("{{ ('a' * 1000000)|replace('a', 'b' * 100000) }}", "memory"),
        ("{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(0) }}", "depth"),
        ("{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}", "depth"),
        ("{% for i in range(100000) %}{{ 'x' * 100000 }}{% endfor %}", "output"),
        ("{% for i in range(99999) %}{% generation %}{% endgeneration %}{% endfor %}", "output"),
        ("x" * 10_000_000, "template_size"),
    ],
)
def test_limits_are_named_and_the_next_render_works(pool, template, limit):
    assert limit_of(pool.render(template=template, messages=HELLO)) == limit
    assert pool.render(template=LIST, messages=HELLO) == Rendered("user: Hello\n")


def test_compiling_is_bounded_too(pool):
    assert limit_of(pool.check("{{ x }}" * 18_000)) == "time"


def test_large_and_deep_requests_are_refused(pool):
    assert (
        limit_of(pool.render(template=LIST, messages=[{"role": "user", "content": "x" * 5_000_000}])) == "request_size"
    )
    deep = []
    for _ in range(600):
        deep = [deep]
    own = "{# sent with a request that can't be read #}" + LIST
    assert limit_of(pool.render(template=own, messages=[{"role": "user", "content": deep}])) == "depth"
    assert pool.render(template=own, messages=HELLO) == Rendered("user: Hello\n")


def test_a_template_is_named_by_number_only_while_the_worker_has_it():
    with TemplatePool(size=1) as pool:
        for _ in range(2):
            for i in range(CACHED_TEMPLATES + 6):
                assert pool.render(template=f"{i} {LIST}", messages=HELLO) == Rendered(f"{i} user: Hello\n")
        (worker,) = pool._idle
        worker._templates["current", "not there"] = 10**6
        assert pool.render(template="not there", messages=HELLO) == Rendered("not there")


def test_every_request_has_its_whole_cpu_time(pool):
    work = "{% for i in range(300) %}{% for j in range(300) %}{% endfor %}{% endfor %}x"
    # Together they take more than one may.
    assert {pool.render(template=work, messages=HELLO) for _ in range(80)} == {Rendered("x")}


def test_what_the_timer_says_after_the_answer_is_ignored():
    bound = CpuBound()
    bound.stop()
    bound.out_of_time(signal.SIGPROF, None)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system can't place a process")
def test_what_takes_long_is_confined_to_no_processor():
    with TemplatePool(size=1, limits=QUICK) as pool:
        assert limit_of(pool.render(template=ENDLESS, messages=HELLO)) == "time"
        (worker,) = pool._idle
        assert os.sched_getaffinity(worker._process.pid) == os.sched_getaffinity(0)


def test_other_renders_go_on_beside_an_endless_one(pool):
    outcomes = []
    endless = threading.Thread(target=lambda: outcomes.append(pool.render(template=ENDLESS, messages=HELLO)))
    endless.start()
    texts = []
    while endless.is_alive():
        texts.append(pool.render(template=LIST, messages=HELLO))
    endless.join()
    assert set(texts) == {Rendered("user: Hello\n")}
    assert limit_of(outcomes[0]) == "time"


def test_many_threads_get_their_own_texts(pool):
    wrong = []

    def ask(name):
        for i in range(20):
            content = f"{name} {i}"
            outcome = pool.render(template=LIST, messages=[{"role": "user", "content": content}])
            if outcome != Rendered(f"user: {content}\n"):
                wrong.append(outcome)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_worker_that_dies_is_replaced_unseen():
    with TemplatePool(size=1) as pool:
        assert pool.render(template=LIST, messages=HELLO) == Rendered("user: Hello\n")
        for worker in list(pool._all):
            os.kill(worker._process.pid, signal.SIGKILL)
        assert pool.render(template=LIST, messages=HELLO) == Rendered("user: Hello\n")


def test_a_waiting_thread_is_told_when_all_workers_stay_busy():
    with TemplatePool(size=1, limits=Limits(waiting_seconds=0.05)) as pool:
        worker = pool._take(("current", LIST))
        assert limit_of(pool.render(template=LIST, messages=HELLO)) == "busy"
        pool._give_back(worker, True)
        assert pool.render(template=LIST, messages=HELLO) == Rendered("user: Hello\n")


def test_closing_ends_the_processes():
    pool = TemplatePool()
    pool.render(template=LIST, messages=HELLO)
    pids = [worker._process.pid for worker in pool._all]
    assert len(pids) == 2  # one in use, one ready
    pool.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert limit_of(pool.render(template=LIST, messages=HELLO)) == "stopped"


def test_a_forked_child_starts_workers_of_its_own():
    with TemplatePool() as pool:
        assert pool.render(template=LIST, messages=HELLO) == Rendered("user: Hello\n")
        before = {worker._process.pid for worker in pool._all}
        child = os.fork()
        if child == 0:
            status = 1
            try:
                own = pool.render(template=LIST, messages=HELLO) == Rendered("user: Hello\n")
                apart = not before & {worker._process.pid for worker in pool._all}
                pool.close()
                status = 0 if own and apart else 1
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert {worker._process.pid for worker in pool._all} == before
        assert pool.render(template=LIST, messages=HELLO) == Rendered("user: Hello\n")


def test_the_worker_has_neither_django_nor_environment_nor_files(pool):
    pool.render(template=LIST, messages=HELLO)
    for worker in pool._all:
        files = os.listdir(f"/proc/{worker._process.pid}/fd")
        assert sorted(files) == ["0", "1", "2"]
        with open(f"/proc/{worker._process.pid}/environ", "rb") as file:
            assert b"PATH" not in file.read()
        with open(f"/proc/{worker._process.pid}/maps") as file:
            assert "pydantic" not in file.read()


def test_the_pool_of_a_process_is_one():
    assert shared_pool() is shared_pool()
