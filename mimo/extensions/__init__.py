"""Extensions: features apart from the core, which use it through `mimo.api` alone."""
