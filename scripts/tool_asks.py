"""Asks that one tool of the default list answers, as agents and users put them.

They were written before anything was measured, and without the words of the descriptions in mind.
"""

ASKS: dict[str, str] = {
    "save_decision": """
        we agreed on Postgres over MySQL because of its JSON columns, write that down
        record that we go with a monorepo, and why
        note for the team: authentication uses JWT since sessions need a store
        the architecture is fixed now: event sourcing for orders, keep the rationale
        we picked Tailwind instead of CSS modules after weighing both
    """,
    "save_checkpoint": """
        I have to stop for today, remember where we are
        the context window is nearly full, store the state before it is compacted
        park this task, we do something else first
        keep a list of the open files and what is left to do
        let's wrap up this session
    """,
    "save_insight": """
        remember that Safari drops cookies without SameSite
        we found out that the API allows 50 requests a second at most, note it
        TIL: pytest caches fixtures per module here
        the cause of the flaky test was the time zone, keep this lesson
        write down this workaround for the proxy bug
    """,
    "load_checkpoint": """
        where did we stop yesterday?
        continue from last time
        I am back, what was I doing?
        pick up the work of the previous session
        which files did I have open and what were the next steps?
    """,
    "load_context": """
        show me the whole decision about authentication with everything around it
        give me the full reasons behind decision k3v7mq
        I am going to change the cache, load what was decided on it and what it replaced
        all details and links of the decision that this search found
    """,
    "mind_search": """
        is there anything in memory about rate limits?
        look up what we know about Safari cookies in all projects
        find issues with CORS
        what did the notes of version 1.2 say on retries?
        any learnings about Docker builds from last month?
    """,
    "search_by_topic": """
        how did our choice of auth_strategy change over time?
        list every decision made under the topic cache, in order
        which decision replaced which for deployment?
        the history of the topic database
    """,
    "search_by_context": """
        why did we drop Redis?
        how did we handle pagination before?
        I am about to choose a queue, what was tried or decided around that?
        what else is related to the payment flow?
        what do earlier decisions mean for this new upload feature?
    """,
    "search_recent": """
        what happened in the last week?
        show me the latest entries
        what did the others write down since Monday?
        anything new since yesterday?
        the ten newest memories, please
    """,
    "evolve_outcome": """
        the Redis cache worked out well in production, mark it
        that decision was a failure: tokens could not be revoked
        our rollout plan only half worked, record this result
        tell the memory that choosing GraphQL succeeded
        the decision on uploads broke on mobile
    """,
    "evolve_supersede": """
        we no longer use JWT, from now on it is sessions: replace the old decision
        change decision k3v7mq to RabbitMQ, the old reasons do not hold any more
        throw out our decision on REST and put gRPC in its place
        the earlier choice of MySQL is obsolete, Postgres takes over
    """,
    "memory": """
        how many memories are there of each category?
        delete the memory k3v7mq
        store this fact: the office closes at six
        which memories will soon be forgotten?
        page through all stored facts, sorted by importance
        which entries have a low decay score?
    """,
    "ingest": """
        read docs/api.md into the memory
        add all Markdown files of the docs folder
        import this text file in pieces
        split the handbook into chunks and store them
        load the specification file so that it can be searched
    """,
    "run_procedure": """
        start the release procedure
        execute the nightly workflow with branch main
        kick off the onboarding state machine in the background
        run the deploy routine
    """,
    "procedure_status": """
        is the release run finished yet?
        how far is execution k3v7mq?
        check on the workflow that runs in the background
        which state is the run in now?
    """,
    "cancel_procedure": """
        stop the running deployment procedure
        abort run k3v7mq, it is the wrong branch
        kill the workflow that I started
        halt the release run
    """,
    "send_event": """
        tell the waiting run that the user approved
        answer yes to the procedure that asks
        the run waits for `approved`, deliver it
        signal `done` to the workflow
    """,
    "resume_procedure": """
        the run was interrupted, go on with it from its last state
        continue the halted execution k3v7mq
        pick the interrupted workflow up again
        restart the release run where it broke off
    """,
    "list_procedures": """
        which procedures do we have?
        show every available workflow
        what state machines are registered here?
        names and versions of all routines
    """,
    "recall_procedure": """
        show the steps of the release procedure
        what does the deploy workflow do in each state?
        print the definition of procedure greet version 1.2
        how is the onboarding routine defined?
    """,
    "register_procedure": """
        make a new workflow from these steps
        add this Markdown state machine to the project
        define a procedure that tests, asks and releases
        install this routine as version 2.0.0
    """,
    "listMemory": """
        which keys are in the namespace agent.build?
        list the keys that begin with last_ in session.work
        next page of keys of this namespace
        enumerate the entries under public.config
    """,
    "getMemory": """
        read the value of agent.build last_run
        what is stored under the key step in session.work?
        fetch the JSON saved as retries in agent.ci
        get the value for this key
    """,
    "putMemory": """
        set agent.build last_run to {"ok": true}
        store this JSON under the key step for ten minutes
        keep the number 3 as session.work attempt
        write a value with a time to live of an hour
    """,
    "getContext": """
        what is my session id?
        which agent and task am I?
        how many tokens has this session used?
        which tools were called in this session so far?
    """,
    "mind_status": """
        is the daemon running?
        the memory seems stale, is it healthy?
        how many projects are registered?
        when was the index last updated?
    """,
    "mind_edges": """
        I am about to write token generation with crypto on Vercel Edge, any pitfalls?
        check this code for known gotchas
        what can break if I add OAuth middleware here?
        before I touch the migrations: known traps?
    """,
    "mind_add_global_edge": """
        warn every project: Vercel Edge has no Node crypto
        add a pitfall for all my projects about Safari storage limits
        this platform gotcha concerns everybody who uses Supabase, keep it for all projects
        remember across projects that Lambda cuts responses at 6 MB
    """,
    "recall_memory": """
        summarize what we talked about regarding billing
        remind me in a few sentences of our earlier conversations on caching
        a short recap of past interactions about the login page
        what did we discuss about invoices, in brief?
    """,
}


def asks() -> list[tuple[str, str]]:
    """Returns each ask with the name of its tool."""
    return [
        (line.strip(), tool) for tool, text in ASKS.items() for line in text.strip().splitlines()
    ]
