import type { ChannelType } from '@signalbox/broker-core/engine'
import { isReservedChannel } from '@signalbox/broker-core/engine'
import { createHash, randomBytes } from 'node:crypto'

/**
 * The resolution of due and expiry times in subjects, in milliseconds: it limits the number of subjects in a
 * queue.
 */
export const TIME_GRAIN_MS = 100

/**
 * All names that NATS sees. A caller's text is never used as a subject: names are hashed, or encoded token
 * by token if wildcards must match.
 */
export class Subjects {
  readonly prefix: string

  constructor(prefix: string) {
    this.prefix = prefix
  }

  /**
   * Returns the stream of a stored channel. The incarnation distinguishes it from a deleted channel of the
   * same name.
   */
  stream(type: 'queues' | 'events_store', name: string, incarnation: string): string {
    return `${this.prefix}-${type === 'queues' ? 'q' : 'l'}-${hash(name)}-${incarnation}`
  }

  /** The bucket with names and options of stored channels. */
  get channelBucket(): string {
    return `${this.prefix}-channels`
  }

  channelKey(type: ChannelType, name: string): string {
    return `${type}.${Buffer.from(name).toString('base64url')}`
  }

  /** Returns the filter for all messages of a stored channel. */
  all(incarnation: string): string {
    return `${this.prefix}.s.${incarnation}.>`
  }

  /** Returns the filter for the messages of a partition of a queue, or for those without one, that have no expiry. */
  withoutExpiry(incarnation: string, partition: number | undefined): string {
    return `${this.prefix}.s.${incarnation}.${partition === undefined ? '' : `p${partition}.`}*.${grain(0)}`
  }

  /**
   * Returns the subject of a queue message. It contains due time and expiry, so that the server counts by
   * them; 0 means none. With groups it also contains the partition of the message's group.
   */
  queueMessage(incarnation: string, dueAt: number, expiresAt: number, partition?: number): string {
    const start = partition === undefined ? incarnation : `${incarnation}.p${partition}`
    return `${this.prefix}.s.${start}.${grain(dueAt)}.${grain(expiresAt)}`
  }

  /** Returns the filter for the messages of a partition of a queue, or for those without one. */
  partition(incarnation: string, partition: number | undefined): string {
    return `${this.prefix}.s.${incarnation}.${partition === undefined ? '' : `p${partition}.`}*.*`
  }

  /**
   * Returns the subject of an entry without a key. In a compacted store each entry needs its own subject, or
   * only the last would be kept.
   */
  entry(incarnation: string, compacted: boolean): string {
    return `${this.prefix}.s.${incarnation}.e${compacted ? `.${unique()}` : ''}`
  }

  keyed(incarnation: string, key: string): string {
    return `${this.prefix}.s.${incarnation}.k.${hash(key)}`
  }

  /**
   * Returns the subject of events. The broker's own channels have a separate prefix, which no wildcard of a
   * user matches.
   */
  event(channelOrPattern: string): string {
    const space = isReservedChannel(channelOrPattern) ? 'r' : 'u'
    return `${this.prefix}.e.${space}.${channelOrPattern.split('.').map(patternToken).join('.')}`
  }

  request(type: 'commands' | 'queries', name: string): string {
    return `${this.prefix}.r.${type}.${hash(name)}`
  }

  /** Returns the subject on which subscribers to commands or queries announce themselves. */
  announcement(type: 'commands' | 'queries', name: string): string {
    return `${this.prefix}.a.${type}.${hash(name)}`
  }

  /** Returns a subject of one node, for requests that only it can serve. */
  node(id: string, what: string): string {
    return `${this.prefix}.node.${id}.${what}`
  }

  /** Returns a subject of all nodes. */
  nodes(what: string): string {
    return `${this.prefix}.nodes.${what}`
  }

  /** Returns a subject that has a responder as long as the group has a subscriber on any node. */
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

/** Returns 22 characters that represent any text. */
export function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}

/** Returns 16 random characters. */
export function unique(): string {
  return randomBytes(12).toString('base64url')
}

/** Encodes a token for NATS; wildcards remain wildcards. */
function patternToken(token: string): string {
  if (token === '*' || token === '>') return token
  // NATS has no empty tokens.
  if (token === '') return '='
  return token.replaceAll(/[^A-Za-z0-9_-]+/g, (run) =>
    Array.from(Buffer.from(run), (byte) => `=${byte.toString(16).padStart(2, '0')}`).join(''),
  )
}

function grain(time: number): string {
  return Math.ceil(time / TIME_GRAIN_MS).toString(36)
}

/** Parses the partition from the subject of a queue message; undefined if it has none. */
export function partitionOf(subject: string): number | undefined {
  const [, partition] = /^p(\d+)$/.exec(subject.split('.').at(-3) ?? '') ?? []
  return partition === undefined ? undefined : Number(partition)
}

/**
 * Parses due time and expiry from the subject of a queue message, in milliseconds since the epoch; 0 means
 * none.
 */
export function timesOf(subject: string): { readonly dueAt: number; readonly expiresAt: number } {
  const tokens = subject.split('.')
  return { dueAt: timeOf(tokens.at(-2)), expiresAt: timeOf(tokens.at(-1)) }
}

function timeOf(token = '0'): number {
  return Number.parseInt(token, 36) * TIME_GRAIN_MS
}
