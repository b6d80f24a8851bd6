import type { ChannelType } from '@signalbox/broker-core'
import { argument } from '@signalbox/http-kit'
import type { Static } from 'typebox'
import { Type } from 'typebox'

/** Where the audit log is kept: every engine stores, replicates and retains it. */
export const AUDIT_CHANNEL = '_AGENTS_.audit'

export const OUTCOMES = ['success', 'failure', 'denied'] as const

export type AuditOutcome = (typeof OUTCOMES)[number]

/**
 * Something worth remembering: who did what to what, from where, and how it ended. No body and no token ever stands in one.
 */
export interface AuditEvent {
  /** The verified client; empty where nobody was verified. */
  readonly client: string
  /** A management action's name, such as `purge_queue`, or what else happened, such as `authentication_failed`. */
  readonly action: string
  readonly outcome: AuditOutcome
  readonly type?: ChannelType
  readonly channel?: string
  readonly agent?: string
  /** The address it came from. */
  readonly address?: string
  /** The code of the error, where it failed. */
  readonly code?: string
  /** For people; short. */
  readonly detail?: string
  /** How often it happened, where one entry stands for many. @default 1 */
  readonly count?: number
}

export const outcomeSchema = Type.Unsafe<AuditOutcome>({ type: 'string', enum: [...OUTCOMES] })

const text = (description: string) => Type.String({ description })

/** An entry as it is stored, and shown. */
export const auditEntrySchema = Type.Object({
  time: text('When it happened, ISO 8601.'),
  node: text('The node on which it happened.'),
  client: text('The verified client; empty where nobody was verified.'),
  action: text('What was done, or attempted.'),
  outcome: outcomeSchema,
  type: Type.Optional(argument.channelType('The type of the channel.')),
  channel: Type.Optional(text('To which channel.')),
  agent: Type.Optional(text('To which agent.')),
  address: Type.Optional(text('From which address.')),
  code: Type.Optional(text('The code of the error.')),
  detail: Type.Optional(text('More, for people.')),
  count: Type.Optional(Type.Integer({ minimum: 1, description: 'How often, where one entry stands for many.' })),
})

export type AuditEntry = Static<typeof auditEntrySchema>

/** More of a name that somebody chose helps nobody. */
const MAX_TEXT = 512

export function auditEntry(event: AuditEvent, time: number, node: string): AuditEntry {
  const entry: AuditEntry = { time: new Date(time).toISOString(), node, ...event }
  for (const key of ['client', 'action', 'channel', 'agent', 'address', 'code', 'detail'] as const) {
    const value = entry[key]
    if (value !== undefined && value.length > MAX_TEXT) entry[key] = `${value.slice(0, MAX_TEXT).toWellFormed()}…`
  }
  return entry
}
