import type { IncomingMessage } from 'node:http'

import type { Authenticator, Identity } from './authenticator.ts'
import { readBody, REFUSED_BODY_BYTES } from './body.ts'
import { readRequestId } from './json-rpc/message.ts'

/**
 * Asks the authenticator, and goes on at once where it answers at once. `refused` gets what it threw or rejected with: an
 * AuthenticationError, or a failure of its own.
 */
export function authenticate(
  authenticator: Authenticator,
  request: IncomingMessage,
  verified: (identity: Identity) => void,
  refused: (cause: unknown) => void,
): void {
  let identity: Identity | Promise<Identity>
  try {
    identity = authenticator.authenticate(request)
  } catch (error) {
    refused(error)
    return
  }
  if (identity instanceof Promise) identity.then(verified, refused)
  else verified(identity)
}

/**
 * Reads the body of a refused caller's JSON-RPC request, up to {@link REFUSED_BODY_BYTES}, only to echo its id (S5).
 * `bodyRead` is false when the body, or the rest of it, is still to come; there is no id then.
 */
export function readRefusedId(
  request: IncomingMessage,
  done: (id: string | undefined, bodyRead: boolean) => void,
): void {
  if (request.method !== 'POST' || request.headers['content-encoding'] !== undefined) {
    done(undefined, false)
    return
  }
  readBody(request, REFUSED_BODY_BYTES, (tooLarge, body) => {
    if (tooLarge) done(undefined, false)
    else done(readRequestId(body), true)
  })
}
