// Errors, as the page shows them.

/** An error that the server reports, or that it does not answer, with its advice. */
export class Failure extends Error {
  constructor(message, hint, status) {
    super(message);
    this.hint = hint;
    this.status = status;
  }
}

/** Returns the message of an error and its advice; other errors are faults of the page itself. */
export function described(error) {
  if (error instanceof Failure) return [error.message, error.hint];
  console.error(error);
  return ["The page has failed", `Reload it. The fault: ${error.message}`];
}

/** Returns an error as a short text. */
export function sentence(error) {
  return described(error).filter(Boolean).join(": ");
}
