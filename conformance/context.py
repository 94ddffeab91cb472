# SPDX-License-Identifier: BSD-3-Clause
"""Which handler is in force where: threads, tasks, contexts."""

import _thread
import asyncio
import contextvars
import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import _conform
from conform_support import (DEFAULT_NAME, Filled, Handler, default_in_force, expect_ordinary,
                             handler_name, in_threads, same, threads_inherit)

SIZES = 1, 100, 5000


def expect_at_start(starter, when):
    """A thread begins with its starter's handler or with NumPy's own, as this Python says."""
    if threads_inherit():
        starter.in_force(when)
    else:
        default_in_force(when)


def make(handler):
    """Arrays of each size by what is in force, which is this handler."""
    made = [Filled(size, size) for size in SIZES]
    for filled in made:
        handler.owns(filled.array, "which is active")
    return made


def use_up(made, owner):
    """Resizes the arrays of a list, which are the owner's, and frees them."""
    while made:
        filled = made.pop()
        size = len(filled.array)
        filled.check("while another handler is active")
        filled.array.resize(2 * size, refcheck=False)
        owner.owns(filled.array, "resized while another is active")
        filled.check("after a resize while another handler is active", size)


# ---- threads


def thread_isolated():
    expect_ordinary()
    main, first, second = Handler("main"), Handler("first"), Handler("second")
    given = {}

    def body(handler, other):
        def run(meet):
            expect_at_start(main, "in a new thread")
            handler.install()
            meet()
            handler.in_force("after another thread chose its own")
            given[handler] = make(handler)
            meet()
            use_up(given[other], other)
            handler.in_force("after another thread's arrays were resized and freed")
            meet()
            given[handler] = make(handler)

        return run

    with main.installed():
        own = make(main)
        in_threads(body(first, second), body(second, first))
        main.in_force("in a thread whose children chose others")
        for handler in first, second:
            use_up(given[handler], handler)
        main.in_force("after arrays of ended threads were resized and freed")
        in_bare_thread()
    default_in_force("where main was active for a while")
    use_up(own, main)
    default_in_force("after arrays of main were resized and freed")
    for handler in main, first, second:
        handler.expect_settled()


def in_bare_thread():
    """A thread that the threading module did not start has no context to inherit."""
    found = []
    ended = threading.Lock()
    ended.acquire()

    def run():
        found.append(handler_name())
        ended.release()

    _thread.start_new_thread(run, ())
    ended.acquire()
    same(found, [DEFAULT_NAME], "the handler in a thread of the _thread module")


# ---- tasks


def task_isolated():
    expect_ordinary()
    main = Handler("main")
    with main.installed():
        asyncio.run(parent_task(main))
        main.in_force("after the event loop ended")
    default_in_force("where main was active for a while")
    main.expect_settled()


async def parent_task(main):
    first, second, third = Handler("first"), Handler("second"), Handler("third")
    given = {}

    async def child(handler, other):
        main.in_force("in a new task, which inherits it")
        handler.install()
        await asyncio.sleep(0)
        handler.in_force("after another task chose its own")
        given[handler] = make(handler)
        await asyncio.sleep(0)
        use_up(given[other], other)
        handler.in_force("after another task's arrays were resized and freed")
        asyncio.get_running_loop().call_soon(callback, handler)
        if hasattr(asyncio, "to_thread"):
            await asyncio.to_thread(handler.in_force, "in asyncio.to_thread, which brings it along")
        await asyncio.sleep(0)
        handler.in_force("after a callback chose another")
        given[handler] = make(handler)

    def callback(handler):
        handler.in_force("in a callback, which inherits it")
        third.install()

    main.in_force("in the first task of a loop, which inherits it")
    own = make(main)
    await asyncio.gather(child(first, second), child(second, first))
    main.in_force("in a task whose children chose others")
    for handler in first, second:
        use_up(given[handler], handler)
    main.in_force("after arrays of ended tasks were resized and freed")
    with third.installed():
        await asyncio.create_task(grandchild(third, own, main))
    main.in_force("after another was active for a while")
    for handler in first, second, third:
        handler.expect_settled()


async def grandchild(parents, made, owner):
    parents.in_force("in a task that began after its parent had chosen anew")
    use_up(made, owner)
    parents.in_force("after arrays of another handler were resized and freed")


# ---- contexts


def copy():
    expect_ordinary()
    outer, inner = Handler("outer"), Handler("inner")
    with outer.installed():
        given = make(outer)
        context = contextvars.copy_context()

    def choose():
        outer.in_force("in a context copied while it was")
        use_up(given, outer)
        inner.install()
        given.extend(make(inner))

    default_in_force("after a context was copied")
    context.run(choose)
    default_in_force("after another was chosen in a copied context")
    context.run(inner.in_force, "when the context is entered again")
    copied = context.copy()
    context.run(use_up, given, inner)
    context.run(inner.in_force, "after its arrays were resized and freed")
    context.run(outer.install)
    copied.run(inner.in_force, "in a copy of the context, after another was chosen in the first")
    context.run(outer.in_force, "in the first context")
    default_in_force("in the end")
    outer.expect_settled()
    inner.expect_settled()


def empty():
    expect_ordinary()
    outer, inner = Handler("outer"), Handler("inner")
    context = contextvars.Context()

    def choose():
        default_in_force("in an empty context")
        use_up(given, outer)
        default_in_force("in an empty context, after arrays of another were resized and freed")
        same(handler_name(Filled(10, 1).array), DEFAULT_NAME, "an array's handler there")
        inner.install()
        given.extend(make(inner))

    with outer.installed():
        given = make(outer)
        context.run(choose)
        outer.in_force("after another was chosen in an empty context")
        use_up(given, inner)
        outer.in_force("after arrays that were made there were resized and freed")
        context.run(inner.in_force, "when the context is entered again")
        contextvars.Context().run(default_in_force, "in the next empty context")
    default_in_force("in the end")
    outer.expect_settled()
    inner.expect_settled()


def executor():
    expect_ordinary()
    main, own = Handler("main"), Handler("own")

    def choose():
        expect_at_start(main, "in a new worker of an executor")
        own.install()
        return make(own)

    with main.installed():
        given = make(main)
        with ThreadPoolExecutor(1) as pool:
            made = pool.submit(choose).result()
            main.in_force("beside a worker that chose its own")
            use_up(made, own)
            main.in_force("after a worker's arrays were resized and freed")
            pool.submit(use_up, given, main).result()
            pool.submit(own.in_force, "in a later job of the same worker").result()
            bring = contextvars.copy_context().run
            pool.submit(bring, main.in_force, "in a job that brings its context").result()
            pool.submit(own.in_force, "after a job that brought its context").result()
        with ThreadPoolExecutor(1, initializer=own.install) as pool:
            use_up(pool.submit(make, own).result(), own)
        main.in_force("after the executors ended")
    default_in_force("where main was active for a while")
    main.expect_settled()
    own.expect_settled()


# ---- all at once


class Agent:
    """A task or a thread that has two handlers, one in force at a time.

    It makes arrays, and resizes and frees those that anybody made.
    """

    def __init__(self, name, pool, lock):
        self.random = random.Random(_conform.below(sys.maxsize))
        self.handlers = [Handler("%s %d" % (name, i)) for i in (1, 2)]
        self.pool = pool  # (Filled, its Handler) of all agents
        self.lock = lock

    def begin(self):
        self.handlers[0].install()

    def act(self):
        self.handlers[0].in_force("as its task or thread chose it")
        what = self.random.randrange(10)
        if what < 5:
            self.make()
        elif what < 9:
            self.take_one(and_free=what < 8)
        else:
            self.handlers.reverse()
            self.handlers[0].install()

    def make(self):
        filled = Filled(self.random.randrange(1, 3000), self.random.randrange(1 << 32))
        with self.lock:
            self.pool.append((filled, self.handlers[0]))

    def take_one(self, and_free):
        with self.lock:
            if not self.pool:
                return
            filled, owner = self.pool.pop(self.random.randrange(len(self.pool)))
        owner.owns(filled.array, "held by another agent")
        filled.check("held by another agent")
        if and_free:
            return
        size = self.random.randrange(1, 3000)
        filled.array.resize(size, refcheck=False)
        filled.contents = filled.contents[:size].ljust(size, b"\0")
        filled.check("after a resize by another agent")
        with self.lock:
            self.pool.append((filled, owner))


def interleaved():
    expect_ordinary()
    acts, tasks, threads = (40, 2, 1) if _conform.is_instrumented() else (120, 4, 3)
    pool, lock = [], threading.Lock()
    agents = [Agent("agent %d" % i, pool, lock) for i in range(tasks + threads)]

    async def task(agent):
        agent.begin()
        for _ in range(acts):
            agent.act()
            if agent.random.randrange(3) == 0:
                await asyncio.sleep(0)

    async def all_tasks():
        await asyncio.gather(*(task(agent) for agent in agents[:tasks]))

    def loop(meet):
        meet()
        asyncio.run(all_tasks())

    def thread(agent):
        def run(meet):
            agent.begin()
            meet()
            for _ in range(acts):
                agent.act()

        return run

    interval = sys.getswitchinterval()
    sys.setswitchinterval(2e-5)
    in_threads(loop, *(thread(agent) for agent in agents[tasks:]))
    sys.setswitchinterval(interval)
    default_in_force("beside all of them")
    while pool:
        agents[0].take_one(and_free=True)
    for agent in agents:
        for handler in agent.handlers:
            handler.expect_settled()
