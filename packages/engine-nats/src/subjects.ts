import type { ChannelType } from '@signalbox/broker-core/engine'
import { isReservedChannel } from '@signalbox/broker-core/engine'
import { createHash, randomBytes } from 'node:crypto'

/** The grain of due and expiry times in subjects, in milliseconds: bounds how many subjects a queue has. */
export const TIME_GRAIN_MS = 100

/**
 * Every name that NATS sees. Nothing that a caller gives is a subject: names are hashed, or encoded token by token
 * where wildcards must match.
 */
export class Subjects {
  readonly prefix: string

  constructor(prefix: string) {
    this.prefix = prefix
  }

  /** The stream of a stored channel. The incarnation tells a channel from one of the same name that was deleted. */
  stream(type: 'queues' | 'events_store', name: string, incarnation: string): string {
    return `${this.prefix}-${type === 'queues' ? 'q' : 'l'}-${hash(name)}-${incarnation}`
  }

  /** Bucket of the names and options of stored channels. */
  get channelBucket(): string {
    return `${this.prefix}-channels`
  }

  channelKey(type: ChannelType, name: string): string {
    return `${type}.${Buffer.from(name).toString('base64url')}`
  }

  /** Everything in a stored channel. */
  all(incarnation: string): string {
    return `${this.prefix}.s.${incarnation}.>`
  }

  /** A queue message. Due time and expiry are part of it, so that the server counts by them; 0 is none. */
  queueMessage(incarnation: string, dueAt: number, expiresAt: number): string {
    return `${this.prefix}.s.${incarnation}.${grain(dueAt)}.${grain(expiresAt)}`
  }

  /** An entry without a key. In a compacted log each needs a subject of its own, or only the last would be kept. */
  entry(incarnation: string, compacted: boolean): string {
    return `${this.prefix}.s.${incarnation}.e${compacted ? `.${unique()}` : ''}`
  }

  keyed(incarnation: string, key: string): string {
    return `${this.prefix}.s.${incarnation}.k.${hash(key)}`
  }

  /** Events. The broker's own have a space of their own, which no wildcard of users reaches (M8). */
  event(channelOrPattern: string): string {
    const space = isReservedChannel(channelOrPattern) ? 'r' : 'u'
    return `${this.prefix}.e.${space}.${channelOrPattern.split('.').map(patternToken).join('.')}`
  }

  request(type: 'commands' | 'queries', name: string): string {
    return `${this.prefix}.r.${type}.${hash(name)}`
  }

  /** Where subscribers to commands or queries announce themselves. */
  announcement(type: 'commands' | 'queries', name: string): string {
    return `${this.prefix}.a.${type}.${hash(name)}`
  }

  /** One node, for what only it can do. */
  node(id: string, what: string): string {
    return `${this.prefix}.node.${id}.${what}`
  }

  /** Every node. */
  nodes(what: string): string {
    return `${this.prefix}.nodes.${what}`
  }

  /** Answered as long as the group of a log has a member anywhere. */
  eventsStoreGroup(incarnation: string, group: string): string {
    return `${this.prefix}.g.${incarnation}.${hash(group)}`
  }

  keyedRecord(...tokens: readonly (string | number)[]): string {
    return `${this.prefix}.n.${tokens.join('.')}`
  }

  recent(incarnation: string, deduplicationId: string): string {
    return `${this.prefix}.d.${incarnation}.${hash(deduplicationId)}`
  }
}

/** 22 characters that stand for any text. */
export function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}

/** 16 characters that nobody else has. */
export function unique(): string {
  return randomBytes(12).toString('base64url')
}

/** A token as NATS takes it; tokens that are wildcards stay so. */
function patternToken(token: string): string {
  if (token === '*' || token === '>') return token
  // NATS knows no empty token.
  if (token === '') return '='
  return token.replaceAll(/[^A-Za-z0-9_-]+/g, (run) =>
    Array.from(Buffer.from(run), (byte) => `=${byte.toString(16).padStart(2, '0')}`).join(''),
  )
}

function grain(time: number): string {
  return Math.ceil(time / TIME_GRAIN_MS).toString(36)
}

/** Due time and expiry in the subject of a queue message, milliseconds since the epoch; 0 is none. */
export function timesOf(subject: string): { readonly dueAt: number; readonly expiresAt: number } {
  const tokens = subject.split('.')
  return { dueAt: timeOf(tokens.at(-2)), expiresAt: timeOf(tokens.at(-1)) }
}

function timeOf(token = '0'): number {
  return Number.parseInt(token, 36) * TIME_GRAIN_MS
}
