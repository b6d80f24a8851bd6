import type { Buffer } from 'node:buffer'
import type { OutgoingHttpHeaders } from 'node:http'

import { hasRole, HttpExchange, Surface } from '@signalbox/http-kit'
import type {
  Call,
  ConnectionCaller,
  Identity,
  Refusal,
  Role,
  Route,
  SurfaceOptions,
  Unsettled,
} from '@signalbox/http-kit'
import { takeOver } from '@signalbox/http-kit/fastify'
import { addressOf, LONG_TEXT_BYTES, TextParts, wholeBody } from '@signalbox/http-kit/internal'
import type { FastifyReply, FastifyRequest } from 'fastify'

import type { AuditLog } from '../audit/audit-log.ts'
import { JSON_HEADERS, sendFailure, success } from '../envelope.ts'
import { ManagementError, roleMissing, toManagementError } from '../errors.ts'
import type { ManagementErrorCode } from '../errors.ts'

/** A route of operators. */
export interface OperatorRoute {
  /** The role that the route requires. */
  readonly role: Role
  /** The name of the route in the audit log: its path, or its action. */
  readonly action: string
  /** The most bytes of the body. @default the body is discarded */
  readonly maxBodyBytes?: number
  /** Answers the request. A call counts as running until the returned promise is settled. */
  run(call: OperatorCall): Promise<void>
}

/** An admitted request of an operator. */
export interface OperatorCall {
  readonly operator: Operator
  readonly exchange: ManagementExchange
  /** The body; undefined for a route that discards it. */
  readonly body: Buffer | undefined
  /** Aborted when the client has disconnected, or when the server shuts down. */
  readonly signal: AbortSignal
}

/**
 * The surface of the routes of operators. After the checks of every surface it requires the route's role, before the
 * body is read. During a shutdown it still answers: operators watch it. Fastify finds the routes.
 */
export class OperatorSurface {
  readonly #surface: Surface
  readonly #audit: AuditLog

  constructor(options: SurfaceOptions, audit: AuditLog) {
    this.#surface = new Surface(options)
    this.#audit = audit
  }

  get settlements(): Surface['settlements'] {
    return this.#surface.settlements
  }

  /** Reports a failure that no operator gets. Never throws. */
  get failed(): Surface['failed'] {
    return this.#surface.failed
  }

  serve(request: FastifyRequest, reply: FastifyReply, route: OperatorRoute): void {
    const served: Route<ManagementExchange, Buffer> = {
      endsAtShutdown: true,
      whileClosing: () => true,
      accept: ({ caller }) => {
        this.#assertRole(caller, route)
        return route.maxBodyBytes
      },
      read: wholeBody,
      run: (call, body) => route.run(operatorCall(call, body)),
    }
    this.#surface.serve(new ManagementExchange(request, reply, this.#audit), served)
  }

  /** @throws ManagementError ROLE_MISSING */
  #assertRole({ identity, address }: ConnectionCaller, { role, action }: OperatorRoute): void {
    if (hasRole(identity, role)) return
    const { clientId: client } = identity
    this.#audit.record({ client, action, address: address ?? '', outcome: 'denied', code: 'ROLE_MISSING' })
    throw roleMissing(role)
  }

  /** Ends running actions, and waits until they and the other calls are answered; see {@link Surface.close}. */
  close(graceMs: number): Promise<void> {
    return this.#surface.close(graceMs)
  }
}

function operatorCall(call: Call<ManagementExchange>, body: Buffer | undefined): OperatorCall {
  const { caller, exchange } = call
  return {
    operator: new Operator({ ...caller.identity, account: caller.account }, caller.address ?? ''),
    exchange,
    body,
    get signal() {
      return call.signal
    },
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

/** One request to the management listener, and its answer in the envelope. Fastify writes what is not long. */
export class ManagementExchange extends HttpExchange {
  readonly #reply: FastifyReply
  readonly #audit: AuditLog

  constructor(request: FastifyRequest, reply: FastifyReply, audit: AuditLog) {
    super(request.raw, reply.raw, undefined)
    this.#reply = reply
    this.#audit = audit
  }

  /** Answers with a text. */
  answer(headers: Readonly<Record<string, string>>, text: string): void {
    if (this.begin()) void this.#reply.code(200).headers(headers).send(text)
  }

  /** Answers with data in the envelope. */
  succeed(data: unknown): void {
    this.answer(JSON_HEADERS, JSON.stringify(success(data)))
  }

  /**
   * Answers with data that contains bodies of messages, in pieces if it is long, and then settles the messages. If the
   * caller or the process has too many bytes of answers, the messages go back to their queue.
   * @throws ManagementError TOO_MANY_REQUESTS
   */
  succeedInParts(data: unknown, unsettled?: Unsettled): void {
    const text = TextParts.json(success(data))
    if (text.heldBytes < LONG_TEXT_BYTES && unsettled === undefined) {
      this.answer(JSON_HEADERS, String(text))
      return
    }
    const refusal = this.chargeLong(text)
    if (refusal !== undefined) {
      unsettled?.settlements.settle(unsettled.settlement, 'rollback')
      throw managementRefusal(refusal)
    }
    this.sendLong(200, { ...this.takeOver(), ...JSON_HEADERS }, text, unsettled)
  }

  /** Begins an answer that other code writes, and returns the headers that hooks of the host have set. */
  takeOver(): OutgoingHttpHeaders {
    this.begin()
    return takeOver(this.#reply)
  }

  override refuse(refusal: Refusal): void {
    if (refusal.reason === 'unauthenticated') {
      this.#audit.authenticationFailed(addressOf(this.request) ?? '', 'management')
    }
    // An admitted request is refused for its body, the rest of which stays unread.
    if (this.hold !== undefined) this.#reply.header('connection', 'close')
    this.#fail(managementRefusal(refusal))
  }

  override answerThrown(error: unknown): void {
    const answer = toManagementError(error)
    if (answer.code === 'INTERNAL' && answer !== error) throw error
    this.#fail(answer)
  }

  override crash(cause: unknown): void {
    this.#fail(new ManagementError('INTERNAL', 'internal error', {}, { cause }))
  }

  #fail(error: ManagementError): void {
    if (this.begin()) void sendFailure(this.#reply, error)
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
