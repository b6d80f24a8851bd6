import type { ChannelType } from '@signalbox/broker-core'
import { argument } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

/** The channel of the audit log. Every engine stores, replicates and retains it. */
export const AUDIT_CHANNEL = '_AGENTS_.audit'

const OUTCOMES = ['success', 'failure', 'denied'] as const

export type AuditOutcome = (typeof OUTCOMES)[number]

/**
 * One event of the audit log: caller, action, target, address and outcome. Never contains a body or
 * a token.
 */
export interface AuditEvent {
  /** The verified client; empty if no client was verified. */
  readonly client: string
  /**
   * The name of a management action, such as `purge_queue`, or of another event, such as
   * `authentication_failed`.
   */
  readonly action: string
  readonly outcome: AuditOutcome
  readonly type?: ChannelType | undefined
  readonly channel?: string | undefined
  readonly agent?: string | undefined
  /** The address of the caller. */
  readonly address?: string | undefined
  /** The code of the error, if it failed. */
  readonly code?: string | undefined
  /** A short text for people. */
  readonly detail?: string | undefined
  /** The number of events, if one entry represents several. @default 1 */
  readonly count?: number | undefined
}

export const outcomeSchema = Type.Unsafe<AuditOutcome>({ type: 'string', enum: [...OUTCOMES] })

const text = (description: string) => Type.String({ description })

/** An entry as it is stored, and shown. */
export const auditEntrySchema = Type.Object({
  time: text('The time of the event, ISO 8601.'),
  node: text('The node of the event.'),
  client: text('The verified client; empty if no client was verified.'),
  action: text('The action that was done or attempted.'),
  outcome: outcomeSchema,
  type: Type.Optional(argument.channelType('The type of the channel.')),
  channel: Type.Optional(text('The target channel.')),
  agent: Type.Optional(text('The target agent.')),
  address: Type.Optional(text('The address of the caller.')),
  code: Type.Optional(text('The code of the error, if it failed.')),
  detail: Type.Optional(text('A short text for people.')),
  count: Type.Optional(
    Type.Integer({ minimum: 1, description: 'The number of events, if one entry represents several.' }),
  ),
})

export interface AuditEntry extends AuditEvent {
  /** ISO 8601. */
  readonly time: string
  readonly node: string
}

/** The most characters of a text that a caller chose. */
const MAX_TEXT = 512

export function auditEntry(event: AuditEvent, time: number, node: string): AuditEntry {
  const entry: { -readonly [Key in keyof AuditEntry]: AuditEntry[Key] } = {
    time: new Date(time).toISOString(),
    node,
    ...event,
  }
  for (const key of ['client', 'action', 'channel', 'agent', 'address', 'code', 'detail'] as const) {
    const value = entry[key]
    if (value !== undefined && value.length > MAX_TEXT) entry[key] = `${value.slice(0, MAX_TEXT).toWellFormed()}…`
  }
  return entry
}
