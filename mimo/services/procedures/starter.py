"""The procedure to start from, as `mind procedure new` writes it."""

_TEXT = """\
---
name: {name}
version: 1.0
description: Greets somebody, and looks whether the greeting was meant
timeout_ms: 300000
max_retries: 3
context_schema:
  properties:
    who: {{type: string, minLength: 1}}
---
# {name}

A procedure is a state machine. It begins in `initial_state`, does the action of the state that it
is in, and goes where the event leads with which that action ends: `success`, `error`, or one that
the action names. A state without transitions is an end. The prose around the block is yours.

Try it: `mind procedure run {name} --context '{{"who": "Ada"}}'`. After a change, look at it with
`mind procedure check {name}` and `mind procedure show {name}`.

```yaml
initial_state: prepare

states:
  prepare:
    # Steps: log, validate, delay, conditional, set_context, http_request, ask.
    action:
      module: step
      function: set_context
      args: [{{values: {{greeting: "Hello"}}}}]
    transitions:
      - {{event: success, target: somebody}}

  somebody:
    # Ends with the event "true" or "false"; they need quotes.
    action:
      module: step
      function: conditional
      args: [{{field: who, operator: ne, value: null}}]
    transitions:
      - {{event: "true", target: greet}}
      - {{event: "false", target: nobody}}

  greet:
    # {{{{name}}}} is filled in from the context.
    action:
      module: step
      function: log
      args: [{{message: "{{{{greeting}}}}, {{{{who}}}}!"}}]
    transitions:
      - {{event: success, target: done}}

  nobody:
    action:
      module: step
      function: log
      args: [{{message: "{{{{greeting}}}}, whoever you are!"}}]
    transitions:
      - {{event: success, target: done}}

  # Any command of mind, by name (the result goes into the context, here under `found`):
  #   action:
  #     module: mind
  #     function: mind_search
  #     args: [{{query: "{{{{who}}}}"}}]
  #     result: found
  #
  # A program, by its words; it runs once a person has approved this text:
  #   action:
  #     module: shell
  #     function: run
  #     args: [git, status, --short]
  #     timeout: 5000

  done: {{}}
```
"""


def text(name: str) -> str:
    """Returns the Markdown of a procedure that completes as it stands."""
    return _TEXT.format(name=name)
