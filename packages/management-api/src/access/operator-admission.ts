import type { Buffer } from 'node:buffer'

import { addressOf, Endpoint, hasRole } from '@signalbox/http-kit'
import type { ConnectionCaller, EndpointOptions, Role } from '@signalbox/http-kit'
import type { FastifyRequest, onRequestHookHandler } from 'fastify'

import type { AuditLog } from '../audit/audit-log.ts'
import { roleMissing } from '../errors.ts'
import type { ManagementError } from '../errors.ts'
import { ManagementExchange } from './management-exchange.ts'
import { Operator } from './operator.ts'

/**
 * Admits requests: first the endpoint's checks, then the role that the route requires. The body is
 * not read before that.
 */
export class OperatorAdmission {
  readonly #endpoint: Endpoint
  readonly #audit: AuditLog
  readonly #exchanges = new WeakMap<FastifyRequest, ManagementExchange>()

  constructor(options: EndpointOptions, audit: AuditLog) {
    this.#endpoint = new Endpoint(options)
    this.#audit = audit
  }

  /** @param what The route's action, for the audit log */
  hook(role: Role, what: string): onRequestHookHandler {
    return (request, reply, done) => {
      const exchange = new ManagementExchange(request.raw, reply.raw, undefined)
      this.#exchanges.set(request, exchange)
      exchange.onRefused = (error) => {
        if (error.code === 'UNAUTHENTICATED')
          this.#audit.authenticationFailed(addressOf(request.raw) ?? '', 'management')
        done(error)
      }
      this.#endpoint.admit(exchange, (admitted, caller) => {
        const refusal = this.#missingRole(caller, role, what)
        admitted.operator = new Operator({ ...caller.identity, account: caller.account }, caller.address ?? '')
        if (refusal === undefined) done()
        else done(refusal)
      })
    }
  }

  #missingRole({ identity, address }: ConnectionCaller, role: Role, what: string): ManagementError | undefined {
    if (hasRole(identity, role)) return undefined
    const { clientId: client } = identity
    this.#audit.record({ client, action: what, address: address ?? '', outcome: 'denied', code: 'ROLE_MISSING' })
    return roleMissing(role)
  }

  /** Returns the caller. Only for routes with the {@link hook}. */
  operator(request: FastifyRequest): Operator {
    const { operator } = this.exchange(request)
    if (operator === undefined) throw new TypeError('the request was not admitted')
    return operator
  }

  /** Returns the endpoint's view of the request. Only for routes with the {@link hook}. */
  exchange(request: FastifyRequest): ManagementExchange {
    const exchange = this.#exchanges.get(request)
    if (exchange === undefined) throw new TypeError('the route has no hook of the admission')
    return exchange
  }

  /** Reads the body, within the budgets of its caller and of the process. */
  readBody(request: FastifyRequest, limit: number, done: (error: ManagementError | null, body?: Buffer) => void): void {
    const exchange = this.exchange(request)
    exchange.onRefused = done
    this.#endpoint.readBody(exchange, limit, (_exchange, body) => done(null, body))
  }
}
