import type { Role } from '@signalbox/http-kit'
import type { FastifyRequest, onRequestAsyncHookHandler } from 'fastify'

import type { Guard } from './guard.ts'
import type { Operator } from './operator.ts'

/** The guard as a hook of routes: it runs before the body is read, and the route asks later who came in. */
export class Admission {
  readonly #guard: Guard
  readonly #operators = new WeakMap<FastifyRequest, Operator>()

  constructor(guard: Guard) {
    this.#guard = guard
  }

  /** @param what What the route does, for the audit log */
  hook(role: Role, what: string): onRequestAsyncHookHandler {
    return async (request) => {
      this.#operators.set(request, await this.#guard.admit(request, role, what))
    }
  }

  /** Who makes the request; only on routes with the {@link hook}. */
  operator(request: FastifyRequest): Operator {
    const operator = this.#operators.get(request)
    if (operator === undefined) throw new TypeError('the route has no guard')
    return operator
  }
}
