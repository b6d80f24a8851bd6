import type { Buffer } from 'node:buffer'
import type { OutgoingHttpHeaders } from 'node:http'

import { hasRole, HttpExchange } from '@signalbox/http-kit'
import { addressOf, Endpoint } from '@signalbox/http-kit/internal'
import type { ConnectionCaller, Identity, Refusal, Role, Unsettled } from '@signalbox/http-kit'
import type { EndpointOptions, TextParts } from '@signalbox/http-kit/internal'
import type { FastifyRequest, onRequestHookHandler } from 'fastify'

import type { AuditLog } from '../audit/audit-log.ts'
import { ManagementError, roleMissing } from '../errors.ts'
import type { ManagementErrorCode } from '../errors.ts'

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

const CODES: Readonly<Record<Refusal['reason'], ManagementErrorCode>> = {
  origin: 'ORIGIN_REFUSED',
  host: 'ORIGIN_REFUSED',
  cross_site: 'ORIGIN_REFUSED',
  unauthenticated: 'UNAUTHENTICATED',
  starting: 'NOT_READY',
  shutting_down: 'NOT_READY',
  limit: 'TOO_MANY_REQUESTS',
  body_too_large: 'BODY_TOO_LARGE',
}

/** Returns the error that reports a refusal to the operator. */
export function managementRefusal({ cause, limit, maxBodyBytes, message, reason, retryAfterSeconds }: Refusal) {
  const details = { limit: limit ?? maxBodyBytes, retry_after_seconds: retryAfterSeconds }
  return new ManagementError(CODES[reason], message, details, { cause })
}

/** A request to the management listener. Fastify answers it: refusals go to Fastify's error handler. */
export class ManagementExchange extends HttpExchange {
  /** The caller; undefined until the request is admitted. */
  operator: Operator | undefined
  /** Called with the error that ends the request early. */
  onRefused: (error: ManagementError) => void = () => {}

  override refuse(refusal: Refusal): void {
    this.onRefused(managementRefusal(refusal))
  }

  /** Answers with a text in pieces, after Fastify handed over the response. */
  answerParts(headers: OutgoingHttpHeaders, text: TextParts, unsettled: Unsettled | undefined): void {
    this.begin()
    this.sendLong(200, headers, text, unsettled)
  }

  override crash(cause: unknown): void {
    this.onRefused(new ManagementError('INTERNAL', 'internal error', {}, { cause }))
  }
}

/**
 * A verified caller of the management listener. A class, so that observers of the Broker can
 * recognize operators.
 */
export class Operator implements Identity {
  readonly clientId: string
  readonly roles: readonly Role[]
  readonly expiresAt?: number
  readonly account?: string
  /** The address of the request; empty if it is not known any more. */
  readonly address: string

  constructor({ account, clientId, roles = [], expiresAt }: Identity, address: string) {
    this.clientId = clientId
    this.roles = roles
    if (account !== undefined) this.account = account
    if (expiresAt !== undefined) this.expiresAt = expiresAt
    this.address = address
  }
}
